/* Products of bytes by tensor cores: vectors as digits.
 *
 * A float of a chunk is, over the chunk's unit, a number of DIGITS signed bytes, the lowest first: exact where
 * it is at least 2^-6 of the chunk's largest, else to within 2^-31 of that.  So sums of products with bytes are
 * exact in integers.
 */

/* 16 rows of 32 bytes without a sign, times 32 signed bytes in each of 8 columns. */
INLINE void multiply_bytes(int (&c)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9},"
      " {%0, %1, %2, %3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
/* The digits of a number of at most 30 bits, each in a byte. */
INLINE u32 digits_of(int x) { return ((u32)x + 0x00808080u) ^ 0x00808080u; }
/* Four neighbours' digits, each digit of all of them in a word. */
INLINE void digits_apart(u32 (&d)[4]) {
  const u32 a = __byte_perm(d[0], d[1], 0x5140), b = __byte_perm(d[2], d[3], 0x5140);
  const u32 c = __byte_perm(d[0], d[1], 0x7362), e = __byte_perm(d[2], d[3], 0x7362);
  d[0] = __byte_perm(a, b, 0x5410), d[1] = __byte_perm(a, b, 0x7632);
  d[2] = __byte_perm(c, e, 0x5410), d[3] = __byte_perm(c, e, 0x7632);
}
/* Keep four neighbours of each of COPIES parts of a chunk, number n of all, in a record: for each digit the
 * words of all parts, WIDTH neighbours each; then the unit, and the sum of each part over the unit.  All threads
 * of a warp take part; the unit of a chunk with numbers that are not finite is NaN. */
template <int COPIES, int WIDTH, int PITCH>
INLINE void digits_keep(const float (&x)[4 * COPIES], u8 *records, int n, bool inside) {
  constexpr int THREADS = WIDTH / 4;
  float largest = 0;
#pragma unroll
  for (int k = 0; k < 4 * COPIES; k++) largest = most(largest, fabsf(x[k]));
#pragma unroll
  for (int step = THREADS / 2; step > 0; step /= 2)
    largest = most(largest, __shfl_xor_sync(FULL_WARP, largest, step));
  const float unit = power_within(largest), inverse = power_inverse(unit);
  u8 *const record = records + n / THREADS * PITCH;
  float *const tail = (float *)(record + 4 * COPIES * WIDTH);
#pragma unroll
  for (int c = 0; c < COPIES; c++) {
    u32 d[4];
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 4; k++) {
      const float y = x[4 * c + k] * inverse;
      d[k] = digits_of(__float2int_rn(y * 0x1p29f));
      sum += y;
    }
    sum = across_sum_f32<THREADS>(sum);
    digits_apart(d);
#pragma unroll
    for (int k = 0; k < 4; k++)
      if (inside) *(u32 *)(record + (k * COPIES + c) * WIDTH + n % THREADS * 4) = d[k];
    if (inside && n % THREADS == 0) tail[1 + c] = sum;
  }
  if (inside && n % THREADS == 0) tail[0] = largest < INFINITY ? unit : largest - largest;
}
/* A sum over neighbours, from those with each digit, the lowest first, times a power of two. */
INLINE float digits_sum(int a, int b, int c, int d, float unit) {
  return fmaf((float)(c + 256 * d), 0x1p16f * unit, (float)(a + 256 * b) * unit);
}
