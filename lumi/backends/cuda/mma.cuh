/* Tiles of halves, or of f32, in shared memory, and their products by tensor cores.
 *
 * A tile in shared memory is LINES lines of CHUNKS pieces of 16 bytes.  A warp's part of a result is
 * `float v[ROWS][COLUMNS]` in each thread: row i is lane / 4 + 8 i, column j is lane % 4 * 2 + j / 2 * 8 + j % 2.
 */

/* ---- tiles in shared memory ---- */

/* Pieces from one line to the next.  Eight lines lie apart in banks: where pieces change places from line to line
 * within groups of eight, or where lines are an odd number of pieces apart. */
template <int CHUNKS> struct Lines {
  static const bool turned = CHUNKS % 8 == 0;
  static const int step = turned ? CHUNKS : CHUNKS | 1;
};

template <int CHUNKS> INLINE u32 place(int line, int chunk) {
  return (u32)(line * Lines<CHUNKS>::step + (Lines<CHUNKS>::turned ? chunk ^ (line & 7) : chunk)) * 16;
}
/* The place so many lines, a multiple of 8, and pieces behind another one; no bit of the pieces may be set in the
 * number of its own piece. */
template <int CHUNKS> INLINE u32 behind(u32 place, int lines, int chunks) {
  const u32 far = (u32)(lines * Lines<CHUNKS>::step) * 16;
  return Lines<CHUNKS>::turned ? (place ^ (chunks & 7) * 16) + (u32)(chunks >> 3) * 128 + far
                               : place + (u32)chunks * 16 + far;
}

INLINE u32 shared_address(const void *p) { return (u32)__cvta_generic_to_shared(p); }

/* Copies of SIZE bytes that are on their way when this returns; those from `bytes` on become 0. */
template <int SIZE> INLINE void async_copy(u32 to, const void *from, int bytes) {
  if (SIZE == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(to), "l"(from), "r"(bytes), "n"(SIZE)
                 : "memory");
}
INLINE void async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT> INLINE void async_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory"); }

INLINE void store_piece(u32 to, const u32 (&words)[4]) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(words[0]), "r"(words[1]), "r"(words[2]),
               "r"(words[3])
               : "memory");
}

INLINE int within(int x, int low, int high) { return x < low ? low : x > high ? high : x; }

/* Copies a tile by all THREADS; `step` elements lie between lines in memory, of which WIDTH are aligned.
 * Lines from `lines` on, and what lies behind `length` elements of a line, become 0. */
template <int LINES, int CHUNKS, int THREADS, int WIDTH, bool WHOLE, typename T>
INLINE void copy_tile(u32 to, const T *from, i64 step, int lines, int length) {
  const int SIZE = sizeof(T), PIECE = 16 / SIZE;
#pragma unroll
  for (int n = threadIdx.x; n < LINES * CHUNKS; n += THREADS) {
    const int line = n / CHUNKS, chunk = n % CHUNKS;
    const u32 target = to + place<CHUNKS>(line, chunk);
    if (WHOLE && WIDTH == PIECE) {
      async_copy<16>(target, from + line * step + chunk * PIECE, 16);
      continue;
    }
    const int left = line < lines ? within(length - chunk * PIECE, 0, PIECE) : 0;
    const T *const source = left ? from + line * step + chunk * PIECE : from;
    if constexpr (WIDTH * SIZE >= 4) {
#pragma unroll
      for (int k = 0; k < PIECE; k += WIDTH)
        async_copy<WIDTH * SIZE>(target + k * SIZE, left > k ? source + k : from, within(left - k, 0, WIDTH) * SIZE);
    } else {
      u32 words[4];
#pragma unroll
      for (int k = 0; k < 4; k++)
        words[k] = two(left > 2 * k ? source[2 * k] : 0, left > 2 * k + 1 ? source[2 * k + 1] : 0);
      store_piece(target, words);
    }
  }
}

/* The same where each line begins at `lines(number)`, or is 0 where that is null. */
template <int LINES, int CHUNKS, int THREADS, int WIDTH, bool WHOLE, typename T, typename F>
INLINE void copy_tile(u32 to, const T *base, const F &lines, int length) {
  const int PIECE = 16 / sizeof(T);
#pragma unroll
  for (int n = threadIdx.x; n < LINES * CHUNKS; n += THREADS) {
    const int line = n / CHUNKS, chunk = n % CHUNKS;
    const T *const from = lines(line);
    const int left = from ? within(length - chunk * PIECE, 0, PIECE) : 0;
    async_copy<16>(to + place<CHUNKS>(line, chunk), left ? from + chunk * PIECE : base, left * sizeof(T));
  }
}

/* The same where each element is `element(line, place in it)`; neighbouring threads take neighbouring lines. */
template <int LINES, int CHUNKS, int THREADS, int WIDTH, bool WHOLE, typename F>
INLINE void copy_tile(u32 to, const F &element) {
#pragma unroll 1
  for (int n = threadIdx.x; n < LINES * CHUNKS; n += THREADS) {
    const int line = n % LINES, chunk = n / LINES;
    u16 part[8];
#pragma unroll
    for (int k = 0; k < 8; k++) part[k] = element(line, chunk * 8 + k);
    const u32 words[4] = {two(part[0], part[1]), two(part[2], part[3]), two(part[4], part[5]), two(part[6], part[7])};
    store_piece(to + place<CHUNKS>(line, chunk), words);
  }
}

/* ---- factors in registers ---- */

template <bool ACROSS> INLINE void load_matrices(u32 (&r)[4], u32 from) {
  if (ACROSS)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(from));
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(from));
}

/* Rows `row` … + 16 TILES of a tile at the summed positions 16 k … + 16.  Lines are rows, or with ACROSS
 * summed positions.  `row` is a multiple of 16 TILES, a power of two if it is not 0. */
template <int CHUNKS, bool ACROSS, int TILES> INLINE void load_rows(u32 (&a)[TILES][4], u32 tile, int row, int k) {
  const int lane = threadIdx.x % 32;
  const u32 first = ACROSS ? place<CHUNKS>((lane >> 4) * 8 + lane % 8, row / 8 + (lane >> 3) % 2)
                           : place<CHUNKS>(row + lane % 16, lane >> 4);
#pragma unroll
  for (int m = 0; m < TILES; m++)
    load_matrices<ACROSS>(a[m], tile + (ACROSS ? behind<CHUNKS>(first, k * 16, m * 2)
                                               : behind<CHUNKS>(first, m * 16, k * 2)));
}

/* Columns `column` … + 16 PAIRS at the summed positions 16 k … + 16, `column` being as `row` above. */
template <int CHUNKS, bool ACROSS, int PAIRS> INLINE void load_columns(u32 (&b)[PAIRS][4], u32 tile, int column, int k) {
  const int lane = threadIdx.x % 32;
  const u32 first = ACROSS ? place<CHUNKS>((lane >> 3) % 2 * 8 + lane % 8, column / 8 + (lane >> 4))
                           : place<CHUNKS>(column + (lane >> 4) * 8 + lane % 8, (lane >> 3) % 2);
#pragma unroll
  for (int n = 0; n < PAIRS; n++)
    load_matrices<ACROSS>(b[n], tile + (ACROSS ? behind<CHUNKS>(first, k * 16, n * 2)
                                               : behind<CHUNKS>(first, n * 16, k * 2)));
}

template <bool BF16> INLINE u32 pack(float low, float high) {
  u32 both;
  if (BF16)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}

/* Columns 16 k … + 16 of a result as a factor, of which `v` keeps what its halves leave over. */
template <bool BF16, bool KEEP, int TILES, int COLUMNS>
INLINE void take_rows(u32 (&a)[TILES][4], float (&v)[2 * TILES][COLUMNS], int k) {
#pragma unroll
  for (int m = 0; m < TILES; m++)
#pragma unroll
    for (int n = 0; n < 4; n++) {
      float &low = v[2 * m + n % 2][4 * k + n / 2 * 2], &high = v[2 * m + n % 2][4 * k + n / 2 * 2 + 1];
      a[m][n] = pack<BF16>(low, high);
      if (KEEP) {
        low -= BF16 ? from_bf16((u16)a[m][n]) : from_f16((u16)a[m][n]);
        high -= BF16 ? from_bf16((u16)(a[m][n] >> 16)) : from_f16((u16)(a[m][n] >> 16));
      }
    }
}

/* ---- factors of f32 in registers, rounded to TF32 ---- */

INLINE float load_float(u32 from) {
  float x;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(from));
  return x;
}

template <int COUNT> INLINE void round_to_tf32(u32 (&a)[COUNT][4]) {
#pragma unroll
  for (int n = 0; n < COUNT; n++)
#pragma unroll
    for (int k = 0; k < 4; k++) a[n][k] = to_tf32(__uint_as_float(a[n][k]));
}

/* Rows as of `load_rows` at the summed positions 8 k … + 8: a piece holds 4, where there are 8 halves. */
template <int CHUNKS, bool ACROSS, int TILES> INLINE void load_rows_tf32(u32 (&a)[TILES][4], u32 tile, int row, int k) {
  if constexpr (!ACROSS) {
    load_rows<CHUNKS, false>(a, tile, row, k);
    round_to_tf32(a);
  } else {
    const int lane = threadIdx.x % 32, across = row + lane / 4;
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const u32 first = place<CHUNKS>(lane % 4 + h * 4, across / 4) + across % 4 * 4;
#pragma unroll
      for (int m = 0; m < TILES; m++)
#pragma unroll
        for (int n = 0; n < 2; n++)
          a[m][h * 2 + n] = to_tf32(load_float(tile + behind<CHUNKS>(first, k * 8, m * 4 + n * 2)));
    }
  }
}

/* Columns as of `load_columns` at the summed positions 8 k … + 8; with TAKEN in the order of `take_rows_tf32`. */
template <int CHUNKS, bool ACROSS, bool TAKEN, int PAIRS>
INLINE void load_columns_tf32(u32 (&b)[PAIRS][4], u32 tile, int column, int k) {
  if constexpr (!ACROSS && !TAKEN) {
    load_columns<CHUNKS, false>(b, tile, column, k);
    round_to_tf32(b);
  } else {
    const int lane = threadIdx.x % 32, across = column + lane / 4;
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int summed = TAKEN ? lane % 4 * 2 + h : lane % 4 + h * 4;
      const u32 first = ACROSS ? place<CHUNKS>(summed, across / 4) + across % 4 * 4
                               : place<CHUNKS>(across, summed / 4) + summed % 4 * 4;
#pragma unroll
      for (int n = 0; n < 2 * PAIRS; n++)
        b[n / 2][n % 2 * 2 + h] = to_tf32(load_float(tile + (ACROSS ? behind<CHUNKS>(first, k * 8, n * 2)
                                                                    : behind<CHUNKS>(first, n * 8, k * 2))));
    }
  }
}

/* Columns 8 k … + 8 of a result as a factor: first the four even ones, then the odd ones. */
template <int TILES, int COLUMNS> INLINE void take_rows_tf32(u32 (&a)[TILES][4], const float (&v)[2 * TILES][COLUMNS], int k) {
#pragma unroll
  for (int m = 0; m < TILES; m++)
#pragma unroll
    for (int n = 0; n < 4; n++) a[m][n] = to_tf32(v[2 * m + n % 2][2 * k + n / 2]);
}

/* ---- products ---- */

template <bool BF16>
INLINE void multiply_16x8(float &c0, float &c1, float &c2, float &c3, const u32 (&a)[4], u32 b0, u32 b1) {
  if (BF16)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Adds the products of rows and columns at the same summed positions. */
template <bool BF16, int TILES, int PAIRS>
INLINE void multiply(float (&v)[2 * TILES][4 * PAIRS], const u32 (&a)[TILES][4], const u32 (&b)[PAIRS][4]) {
#pragma unroll
  for (int n = 0; n < PAIRS; n++)
#pragma unroll
    for (int m = 0; m < TILES; m++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        const int j = n * 4 + h * 2;
        multiply_16x8<BF16>(v[2 * m][j], v[2 * m][j + 1], v[2 * m + 1][j], v[2 * m + 1][j + 1], a[m], b[n][h * 2],
                            b[n][h * 2 + 1]);
      }
}

INLINE void multiply_16x8_tf32(float &c0, float &c1, float &c2, float &c3, const u32 (&a)[4], u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* The same at 8 summed positions. */
template <int TILES, int PAIRS>
INLINE void multiply_tf32(float (&v)[2 * TILES][4 * PAIRS], const u32 (&a)[TILES][4], const u32 (&b)[PAIRS][4]) {
#pragma unroll
  for (int n = 0; n < PAIRS; n++)
#pragma unroll
    for (int m = 0; m < TILES; m++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        const int j = n * 4 + h * 2;
        multiply_16x8_tf32(v[2 * m][j], v[2 * m][j + 1], v[2 * m + 1][j], v[2 * m + 1][j + 1], a[m], b[n][h * 2],
                           b[n][h * 2 + 1]);
      }
}

/* Four threads that share a row have two columns of each of four tiles of eight; each gets the eight of one. */
INLINE uint4 gather_tile(u32 a, u32 b, u32 c, u32 d) {
  const bool odd = threadIdx.x % 2, high = threadIdx.x / 2 % 2;
  const u32 first = __shfl_xor_sync(FULL_WARP, odd ? a : b, 1), second = __shfl_xor_sync(FULL_WARP, odd ? c : d, 1);
  const u32 low0 = odd ? first : a, low1 = odd ? b : first, high0 = odd ? second : c, high1 = odd ? d : second;
  const u32 x = __shfl_xor_sync(FULL_WARP, high ? low0 : high0, 2), y = __shfl_xor_sync(FULL_WARP, high ? low1 : high1, 2);
  return high ? make_uint4(x, y, high0, high1) : make_uint4(low0, low1, x, y);
}

/* ---- elements ---- */

/* The larger, NaN if either is: one instruction. */
INLINE float larger(float a, float b) {
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
/* 2^x to two units in the last place; what is smaller than every normal number is 0. */
INLINE float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
/* Minus k · b where b is a number, else 0: what is added to k · a for k · (a - b), a never being above b. */
INLINE float shift(float b, float k) { return b == -INFINITY ? 0.0f : -b * k; }

/* Combinations over the four threads that share a row. */
INLINE float quad_sum(float x) {
  x += __shfl_xor_sync(FULL_WARP, x, 1);
  return x + __shfl_xor_sync(FULL_WARP, x, 2);
}
INLINE float quad_max(float x) {
  x = larger(x, __shfl_xor_sync(FULL_WARP, x, 1));
  return larger(x, __shfl_xor_sync(FULL_WARP, x, 2));
}

/* ---- tiles of a loop ---- */

struct Span { int first, last; };

/* From the first to the last of `count` tiles for which `holds`, tested by a warp side by side. */
template <typename F> INLINE Span all_that(int count, F holds) {
  Span found = {count, 0};
  for (int from = 0; from < count; from += 32) {
    const int tile = from + threadIdx.x % 32;
    const u32 mask = __ballot_sync(FULL_WARP, tile < count && holds(tile));
    if (mask) {
      found.first = least(found.first, from + __ffs(mask) - 1);
      found.last = from + 32 - __clz(mask);
    }
  }
  return found;
}
/* The first tiles in a row for which `holds`, between two tiles. */
template <typename F> INLINE Span first_that(Span of, F holds) {
  Span found = {of.last, of.last};
  for (int from = of.first; from < of.last; from += 32) {
    const int tile = from + threadIdx.x % 32;
    const u32 mask = __ballot_sync(FULL_WARP, tile < of.last && holds(tile));
    if (found.first == of.last) {
      if (!mask) continue;
      found.first = from + __ffs(mask) - 1;
    }
    const u32 ended = ~mask & (found.first > from ? ~0u << (found.first - from) : ~0u);
    if (ended) {
      found.last = least(from + __ffs(ended) - 1, of.last);
      break;
    }
  }
  return found;
}
