/* Walks along the rows of a cache: copies by single threads, and products of bf16 on tensor cores.
 *
 * Two numbers of a pair lie in one word, the first below.
 */

INLINE int most(int a, int b) { return a > b ? a : b; }

/* A block's share of units: from `begin` to `end` of the line of a cell, or of all cells, which `parts` blocks
 * share; this one has part number `part`.  Parts have `each` units, the first ones, `more`, one more.  A cell
 * has `units`, the first of them being unit `first` of all positions; `cell` is the first cell of the line. */
struct Share {
  int first, units, parts, part, cell, each, more, begin, end;
  __device__ __forceinline__ int begin_of(int n) const { return n * each + least(n, more); }
  __device__ __forceinline__ int part_of(int unit) const {
    const int larger = more * (each + 1);
    return unit < larger ? unit / (each + 1) : more + (unit - larger) / each;
  }
  /* Deal out the units of `cells` to blocks, at least `few` to each that shares a cell. */
  __device__ __forceinline__ void deal(int cells, int blocks, int few) {
    const bool alone = cells <= blocks;
    parts = alone ? least(blocks / most(cells, 1), (units + few - 1) / few) : blocks;
    cell = alone ? blockIdx.x / parts : 0, part = alone ? blockIdx.x % parts : blockIdx.x;
    const int total = alone ? units : cells * units;
    each = total / parts, more = total % parts;
    begin = begin_of(part), end = begin_of(part + 1);
    if (cell >= cells || part >= parts) end = begin;
  }
};

/* Copy 16 bytes, or with `bytes` 0 put zeros there.  Memory is read by whole lines of the cache. */
INLINE void copy_piece(void *to, const void *from, u32 bytes) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared_place(to)), "l"(from),
               "r"(bytes)
               : "memory");
}
/* All copies that a thread asked for since the last call are one lot. */
INLINE void close_lot() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/* Wait until at most COUNT lots of this thread are on their way, and let the warp see the others. */
template <int COUNT> INLINE void await_lots() {
  asm volatile("cp.async.wait_group %0;" ::"n"(COUNT) : "memory");
  __syncwarp();
}

/* Four tiles of 8 rows of 16 bytes, thread t naming row t % 8 of tile t / 8; turned, rows become columns. */
INLINE void read_tiles(u32 (&tiles)[4], const void *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(tiles[0]), "=r"(tiles[1]), "=r"(tiles[2]), "=r"(tiles[3])
               : "r"(shared_place(row))
               : "memory");
}
INLINE void read_turned(u32 (&tiles)[4], const void *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(tiles[0]), "=r"(tiles[1]), "=r"(tiles[2]), "=r"(tiles[3])
               : "r"(shared_place(row))
               : "memory");
}
/* Adds the product of a tile of 16 by 16 and one of 16 by 8 to sums of 16 by 8. */
INLINE void multiply_tiles(float (&sums)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
               " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
               : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

/* One of the three bf16 that add up to a number, as the upper half of a word; 0 for other parts.  Those of
 * an infinity, or of no number, are itself and zeros. */
INLINE u32 part_of(float x, int part) {
  const u32 bits = __float_as_uint(x) | (x != x ? 0x00400000u : 0u);
  const bool finite = (bits & 0x7f800000u) != 0x7f800000u;
  const u32 high = bits & 0xffff0000u;
  const float rest = finite ? x - __uint_as_float(high) : 0.0f;
  const u32 middle = __float_as_uint(rest) & 0xffff0000u;
  const u32 low = __float_as_uint(rest - __uint_as_float(middle)) & 0xffff0000u;
  return part == 0 ? high : part == 1 ? middle : part == 2 ? low : 0u;
}
INLINE u32 parts_of(float a, float b, int part) { return part_of(a, part) >> 16 | part_of(b, part); }

/* Whether this block is the last of `count` to come here; all threads call it, after what they wrote. */
INLINE bool comes_last(u32 *arrived, u32 count) {
  __shared__ u32 before;
  __syncthreads();
  if (threadIdx.x == 0) {
    u32 seen;
    asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], 1;" : "=r"(seen) : "l"(arrived) : "memory");
    if (seen == count - 1) *arrived = 0;
    before = seen;
  }
  __syncthreads();
  return before == count - 1;
}
/* What other blocks wrote. */
INLINE float written_by_others(const float *p) { return __ldcg(p); }
INLINE float2 written_by_others(const float2 *p) { return __ldcg(p); }
INLINE float4 written_by_others(const float4 *p) { return __ldcg(p); }
INLINE float shared_value(const float *p) { return *p; }
INLINE float2 shared_value(const float2 *p) { return *p; }
INLINE float4 shared_value(const float4 *p) { return *p; }
/* The sum of this thread's number and that of the thread STEP away. */
template <int STEP> INLINE float sum_across(float x) { return x + __shfl_xor_sync(FULL_WARP, x, STEP); }
