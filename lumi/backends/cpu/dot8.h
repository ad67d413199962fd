/* Sixteen or thirty-two bytes at a time, and exact sums of products of signed bytes in eight partial sums. */
typedef uint8_t u8x16 __attribute__((vector_size(16)));
typedef uint8_t u8x32 __attribute__((vector_size(32)));

#define BYTES(count)                                                                              \
  INLINE u8x##count ld_bytes##count(const void *p) {                                              \
    u8x##count v;                                                                                 \
    memcpy(&v, p, count);                                                                         \
    return v;                                                                                     \
  }                                                                                               \
  INLINE u8x##count splat_bytes##count(int32_t x) { return (u8x##count){0} + (uint8_t)x; }        \
  INLINE u8x##count shift_bytes##count(u8x##count v, int32_t n) {                                 \
    return n < 0 || n > 7 ? (u8x##count){0} : v >> (uint8_t)n;                                    \
  }
BYTES(16)
BYTES(32)

#if defined(HAS_AVX2_BUILTINS)
typedef char c8x16 __attribute__((vector_size(16)));
typedef char c8x32 __attribute__((vector_size(32)));
typedef int16_t i16x16 __attribute__((vector_size(32)));
typedef int32_t d32x4 __attribute__((vector_size(16)));
typedef long long q64x2 __attribute__((vector_size(16)));
typedef long long q64x4 __attribute__((vector_size(32)));

INLINE u8x32 join_bytes(u8x16 a, u8x16 b) {
  q64x4 low = (q64x4)__builtin_ia32_si256_si((d32x4)a);
  return (u8x32)__builtin_ia32_insert128i256(low, (q64x2)b, 1);
}
#define HALF(v, upper) ((u8x16)__builtin_ia32_extract128i256((q64x4)(v), upper))

#define EIGHT(x) x, x, x, x, x, x, x, x
#define EACH_BIT 1, 2, 4, 8, 16, 32, 64, 128
/* Byte l is 255 where bit l is set, of 16 bits and of twice 16. */
INLINE u8x16 bits_bytes16(int32_t bits) {
  const u8x16 bit = {EACH_BIT, EACH_BIT};
  d32x4 all = {bits, bits, bits, bits};
  u8x16 each = (u8x16)__builtin_ia32_pshufb128((c8x16)all, (c8x16){EIGHT(0), EIGHT(1)});
  return (u8x16)((each & bit) == bit);
}
INLINE u8x32 bits_bytes32(int32_t low, int32_t high) {
  const u8x32 bit = {EACH_BIT, EACH_BIT, EACH_BIT, EACH_BIT};
  i32x8 all = splat_i32((int32_t)((uint32_t)(low & 0xffff) | (uint32_t)high << 16));
  u8x32 each = (u8x32)__builtin_ia32_pshufb256((c8x32)all, (c8x32){EIGHT(0), EIGHT(1), EIGHT(2), EIGHT(3)});
  return (u8x32)((each & bit) == bit);
}

/* Pairs of 16-bit products are added in 32 bits: exact for all bytes. */
INLINE i32x8 dot_bytes16(i32x8 sum, u8x16 a, u8x16 b) {
  i16x16 x = (i16x16)__builtin_ia32_pmovsxbw256((c8x16)a), y = (i16x16)__builtin_ia32_pmovsxbw256((c8x16)b);
  return sum + (i32x8)__builtin_ia32_pmaddwd256(x, y);
}
INLINE i32x8 dot_bytes32(i32x8 sum, u8x32 a, u8x32 b) {
  return dot_bytes16(dot_bytes16(sum, HALF(a, 0), HALF(b, 0)), HALF(a, 1), HALF(b, 1));
}
/* Pairs of products are added in 16 bits, which saturate: 2 * 127 * 128 fits, so b must not be negative. */
INLINE i32x8 dot_whole32(i32x8 sum, u8x32 a, u8x32 b) {
  const i16x16 one = (i16x16){EIGHT(1), EIGHT(1)};
  i16x16 pairs = (i16x16)__builtin_ia32_pmaddubsw256((c8x32)b, (c8x32)a);
  return sum + (i32x8)__builtin_ia32_pmaddwd256(pairs, one);
}
/* The same of |a| and b with the sign of a: b must not be -128. */
INLINE i32x8 dot_narrow32(i32x8 sum, u8x32 a, u8x32 b) {
  c8x32 size = (c8x32)__builtin_ia32_pabsb256((c8x32)a);
  c8x32 turned = (c8x32)__builtin_ia32_psignb256((c8x32)b, (c8x32)a);
  i16x16 pairs = (i16x16)__builtin_ia32_pmaddubsw256(size, turned);
  return sum + (i32x8)__builtin_ia32_pmaddwd256(pairs, (i16x16){EIGHT(1), EIGHT(1)});
}
#else
INLINE u8x32 join_bytes(u8x16 a, u8x16 b) {
  u8x32 v;
  memcpy(&v, &a, 16);
  memcpy((char *)&v + 16, &b, 16);
  return v;
}
INLINE u8x16 bits_bytes16(int32_t bits) {
  u8x16 v;
  for (int l = 0; l < 16; l++) v[l] = (uint8_t)-(bits >> l & 1);
  return v;
}
INLINE u8x32 bits_bytes32(int32_t low, int32_t high) { return join_bytes(bits_bytes16(low), bits_bytes16(high)); }
#define DOT(name, count)                                                                          \
  INLINE i32x8 name(i32x8 sum, u8x##count a, u8x##count b) {                                      \
    for (int l = 0; l < count; l++) sum[l % LANES] += (int8_t)a[l] * (int8_t)b[l];                \
    return sum;                                                                                   \
  }
DOT(dot_bytes16, 16)
DOT(dot_bytes32, 32)
DOT(dot_whole32, 32)
DOT(dot_narrow32, 32)
#endif
