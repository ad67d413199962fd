/* Products of tiles in shared memory by groups of four warps, and the stages such tiles come in (sm_90a).
 *
 * A tile lies in panels of LINES lines of 64 halves, 128 bytes, from a multiple of 1024 on; the eight pieces
 * of 16 bytes of a line change places by the last digit of its number.  A group has 64 rows of a result, each
 * thread `float v[2][COLUMNS]` as in mma.cuh.
 */

/* ---- roles ---- */

template <int COUNT> INLINE void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}
template <int COUNT> INLINE void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}
/* The number of a group of four warps, the same in all lanes as far as the compiler sees. */
INLINE int group_of_warps() { return __shfl_sync(FULL_WARP, (int)threadIdx.x / 128, 0); }
INLINE u32 aligned_pool(const u8 *pool) { return (shared_address(pool) + 1023) & ~1023u; }

/* ---- stages ---- */

INLINE void signal_open(u32 signal, u32 arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(signal), "r"(arrivals) : "memory");
}
INLINE void signal_give(u32 signal) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(signal) : "memory");
}
INLINE void signal_await(u32 signal, u32 lap) {
  u32 done;
  do {
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                 : "=r"(done)
                 : "r"(signal), "r"(lap)
                 : "memory");
  } while (!done);
}
/* Signals of COUNT stages that FILLERS threads tell to be full and USERS warps use: first those of full ones. */
template <int COUNT, int FILLERS, int USERS> INLINE void open_signals(u32 first) {
  for (int n = threadIdx.x; n < COUNT; n += blockDim.x) {
    signal_open(first + 8 * n, FILLERS);
    signal_open(first + 8 * (COUNT + n), USERS);
  }
}

INLINE void signal_expect(u32 signal, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(signal), "r"(bytes) : "memory");
}

/* A ring of stages, seen by those who fill it or by those who use it. */
template <int STAGES> struct Ring {
  u32 full, empty;
  int slot = 0, count = 0;
  u32 lap = 0;
  __device__ __forceinline__ Ring(u32 signals, int first, int all)
      : full(signals + 8 * first), empty(signals + 8 * (all + first)) {}
  __device__ __forceinline__ void next() {
    if (++slot == STAGES) slot = 0, lap ^= 1;
  }
  /* For those who fill: wait until the stage at hand is empty. */
  __device__ __forceinline__ void claim() {
    if (count >= STAGES)
      signal_await(empty + 8 * slot, lap ^ 1);
    else
      count++;
  }
  /* For those who use: wait until the stage at hand is full. */
  __device__ __forceinline__ void await() { signal_await(full + 8 * slot, lap); }
  /* Let go of a stage. */
  __device__ __forceinline__ void release(int stage) {
    if (threadIdx.x % 32 == 0) signal_give(empty + 8 * stage);
  }
};

/* Tells that stages are full once copies have come, BEHIND stages later: copies go another way than products,
 * so that a fence of the thread that copied stands between them. */
template <int BEHIND> struct Feed {
  u32 waiting[BEHIND] = {};
  __device__ __forceinline__ void tell(u32 signal) {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    signal_give(signal);
  }
  __device__ __forceinline__ void sent(u32 full) {
    async_commit();
    if (waiting[0]) {
      async_wait<BEHIND>();
      tell(waiting[0]);
    }
#pragma unroll
    for (int n = 0; n + 1 < BEHIND; n++) waiting[n] = waiting[n + 1];
    waiting[BEHIND - 1] = full;
  }
  __device__ __forceinline__ void finish() {
    async_wait<0>();
#pragma unroll
    for (int n = 0; n < BEHIND; n++)
      if (waiting[n]) tell(waiting[n]);
  }
};

/* Copies LINES lines of CHUNKS pieces into panels by 128 threads, 16 lines at once; `step` elements lie between
 * lines in memory.  Lines from `lines` on, and what lies behind `length` elements of a line, become 0. */
template <int LINES, int CHUNKS, bool WHOLE>
INLINE void copy_panels(u32 to, const u16 *from, i64 step, int lines, int length) {
  const int chunk = threadIdx.x % 8, line = threadIdx.x / 8;
  to += line * 128 + ((chunk ^ line) & 7) * 16;
  const u16 *source = from + line * step + chunk * 8;
  const i64 stride = 16 * step;
#pragma unroll
  for (int panel = 0; panel < CHUNKS / 8; panel++, source += 64) {
    const int bytes = WHOLE ? 16 : within(length - panel * 64 - chunk * 8, 0, 8) * 2;
    const u16 *place = source;
#pragma unroll
    for (int n = 0; n < LINES; n += 16, place += stride) {
      const int size = WHOLE || line + n < lines ? bytes : 0;
      async_copy<16>(to + (panel * LINES + n) * 128, WHOLE || size ? place : from, size);
    }
  }
}

/* The same where each line begins at `lines(number)`, or is 0 where that is null. */
template <int LINES, int CHUNKS, bool WHOLE, typename F>
INLINE void copy_panels(u32 to, const u16 *base, const F &lines, int length) {
  const int chunk = threadIdx.x % 8, line = threadIdx.x / 8;
  to += line * 128 + ((chunk ^ line) & 7) * 16;
#pragma unroll 2
  for (int n = 0; n < LINES; n += 16) {
    const u16 *const from = lines(line + n);
#pragma unroll
    for (int panel = 0; panel < CHUNKS / 8; panel++) {
      const int place = panel * 64 + chunk * 8, left = from ? within(length - place, 0, 8) : 0;
      async_copy<16>(to + (panel * LINES + n) * 128, left ? from + place : base, left * 2);
    }
  }
}

/* The same where each element is `element(line, place in it)`; neighbouring threads take neighbouring lines. */
template <int LINES, int CHUNKS, bool WHOLE, typename F> INLINE void copy_panels(u32 to, const F &element) {
#pragma unroll 1
  for (int n = threadIdx.x; n < LINES * CHUNKS; n += 128) {
    const int line = n % LINES, chunk = n / LINES;
    u16 part[8];
#pragma unroll
    for (int k = 0; k < 8; k++) part[k] = element(line, chunk * 8 + k);
    const u32 words[4] = {two(part[0], part[1]), two(part[2], part[3]), two(part[4], part[5]), two(part[6], part[7])};
    store_piece(to + ((chunk / 8) * LINES + line) * 128 + ((chunk ^ line) & 7) * 16, words);
  }
}

/* ---- boxes ---- */

struct __align__(64) TensorMap { u8 bytes[128]; };

INLINE void fetch_map(const TensorMap *map) { asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory"); }
INLINE void fetch_box(u32 to, const TensorMap *map, u32 signal, int half, int line, int plane) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
               " [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(to), "l"(map), "r"(signal), "r"(half), "r"(line), "r"(plane)
               : "memory");
}

/* Lines from `first` on of a tile of LINES lines, by a warp: what copies brought from behind the end becomes 0. */
template <int LINES, int PANELS> INLINE void clear_lines(u32 to, int first) {
  const u32 nothing[4] = {};
  for (int n = first * 8 + threadIdx.x % 32; n < LINES * 8; n += 32)
#pragma unroll
    for (int panel = 0; panel < PANELS; panel++) store_piece(to + (panel * LINES * 8 + n) * 16, nothing);
}
/* A stage is full that a warp has cleared lines of: products see what it wrote. */
INLINE void tell_cleared(u32 full) {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncwarp();
  if (threadIdx.x % 32 == 0) signal_give(full);
}

/* ---- results ---- */

INLINE void read_two(u32 at, u32 &a, u32 &b) {
  asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "r"(at) : "memory");
}
INLINE void read_one(u32 at, u32 &a) { asm volatile("ld.shared.b32 %0, [%1];" : "=r"(a) : "r"(at) : "memory"); }
INLINE void write_pair(u32 at, u32 a, u32 b) {
  asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(at), "r"(a), "r"(b) : "memory");
}
INLINE void write_pair(u32 at, u32 a) { asm volatile("st.shared.b32 [%0], %1;" ::"r"(at), "r"(a) : "memory"); }
/* Two neighbours of SIZE bytes each. */
template <int SIZE> INLINE words<SIZE / 2> read_pair(u32 at) {
  words<SIZE / 2> found;
  if constexpr (SIZE == 4)
    read_two(at, found.w[0], found.w[1]);
  else
    read_one(at, found.w[0]);
  return found;
}
/* Where the J-th pair of a thread lies in a line of 64 elements of SIZE bytes, of which panels hold 128 bytes. */
template <int SIZE, int LINES> INLINE u32 pair_place(u32 area, int line, int j) {
  const int byte = j * 8 * SIZE, own = threadIdx.x % 4 * 2 * SIZE;
  return area + (byte / 128 * LINES + line) * 128 + ((byte % 128 + own) ^ (line & 7) << 4);
}
/* A group has left its results in shared memory, and the copy engine sees them. */
INLINE void group_meet(int group) {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
}
INLINE void send_box(u32 from, const TensorMap *map, int element, int line, int plane) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%1, {%2, %3, %4}], [%0];" ::"r"(from), "l"(map),
               "r"(element), "r"(line), "r"(plane)
               : "memory");
}
INLINE void sent_next() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
/* All but the LEFT last boxes of a thread have been read. */
template <int LEFT> INLINE void sent_read() { asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(LEFT) : "memory"); }
INLINE void sent_all() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

/* ---- products ---- */

INLINE void products_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
INLINE void products_end() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int LEFT> INLINE void products_await() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}
/* Values that products write or read while other code runs: none of it may move across this. */
template <int COLUMNS> INLINE void settle(float (&v)[2][COLUMNS]) {
#pragma unroll
  for (int i = 0; i < 2; i++)
#pragma unroll
    for (int j = 0; j < COLUMNS; j++) asm volatile("" : "+f"(v[i][j])::"memory");
}
template <int COUNT> INLINE void settle(u32 (&v)[COUNT][1][4]) {
#pragma unroll
  for (int k = 0; k < COUNT; k++)
#pragma unroll
    for (int n = 0; n < 4; n++) asm volatile("" : "+r"(v[k][0][n])::"memory");
}
/* The lower half of the description of a tile; `apart` bytes lie between panels where lines are summed over. */
INLINE u32 tile_at(u32 place, u32 apart) { return (place & 0x3ffff) >> 4 | (apart >> 4) << 16; }

/* What all threads of a block have alike, known to be. */
INLINE void settle(Span &s) {
  s.first = __shfl_sync(FULL_WARP, s.first, 0);
  s.last = __shfl_sync(FULL_WARP, s.last, 0);
}

/* ---- groups in order ---- */

/* A group waits until it may issue products, and lets another one do so: one computes while another multiplies. */
template <int THREADS> INLINE void order_await(int group) {
  asm volatile("bar.sync %0, %1;" ::"r"(group + 1), "n"(THREADS) : "memory");
}
template <int THREADS> INLINE void order_pass(int group) {
  asm volatile("bar.arrive %0, %1;" ::"r"(group + 1), "n"(THREADS) : "memory");
}
INLINE int most_of(int a, int b) { return a > b ? a : b; }
