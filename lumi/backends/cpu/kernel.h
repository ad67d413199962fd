/* What generated kernels are written in: scalar and eight-lane helpers with the exact semantics of HLIR.
 *
 * Values in registers: floats but f64 are `float`, i8, u8, i32 are `int32_t`, bool is 0 or 1 in
 * `int32_t`; in eight lanes bool is a mask of 0 or -1.  Everything is GCC vector extensions; intrinsics
 * stand in only where the compiler's own code for a conversion is many times slower.
 * Compile with -fwrapv -ffp-contract=off: integers wrap, and only `fma_*` contracts.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if !defined(__has_builtin)
#define __has_builtin(name) 0
#endif
/* GCC widens narrow vectors element by element, so its own builtins are used; clang does it well, and
 * has other builtins.  <immintrin.h> would take longer to read than a kernel to compile. */
#if defined(__AVX2__) && !defined(__clang__)
#define HAS_AVX2_BUILTINS 1
#endif

#define LANES 8
#define INLINE static inline __attribute__((always_inline, unused))
#define VECTOR(type, name) typedef type name __attribute__((vector_size(LANES * sizeof(type))))

VECTOR(float, f32x8);
VECTOR(double, f64x8);
VECTOR(int8_t, i8x8);
VECTOR(uint8_t, u8x8);
VECTOR(uint16_t, u16x8);
VECTOR(int32_t, i32x8);
VECTOR(uint32_t, u32x8);
VECTOR(int64_t, i64x8);
typedef int16_t i16x8 __attribute__((vector_size(16)));
typedef int8_t i8x16 __attribute__((vector_size(16)));
typedef float f32x4 __attribute__((vector_size(16)));

#if defined(__x86_64__)
/* Keeps an operand in a register: compilers else load it again for each instruction that reads it. */
#define KEEP(x) __asm__("" : "+x"(x))
#elif defined(__aarch64__)
#define KEEP(x) (void)(x)
#else
#define KEEP(x) (void)(x)
#endif

/* ---- halves ---- */

INLINE float from_bf16(uint16_t raw) {
  uint32_t bits = (uint32_t)raw << 16;
  float x;
  memcpy(&x, &bits, 4);
  return x;
}

INLINE uint16_t to_bf16(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  return x != x ? 0x7fc0 : (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

#if defined(__F16C__)
INLINE float from_f16(uint16_t raw) {
  return __builtin_ia32_vcvtph2ps((i16x8){(int16_t)raw, 0, 0, 0, 0, 0, 0, 0})[0];
}
INLINE uint16_t to_f16(float x) {
  return (uint16_t)((i16x8)__builtin_ia32_vcvtps2ph((f32x4){x, 0, 0, 0}, 0))[0];
}
#else
INLINE float from_f16(uint16_t raw) {
  uint32_t sign = (uint32_t)(raw & 0x8000) << 16, exponent = (raw >> 10) & 31, mantissa = raw & 1023, bits;
  float x;
  if (exponent == 31) bits = sign | 0x7f800000 | mantissa << 13;
  else if (exponent) bits = sign | (exponent + 112) << 23 | mantissa << 13;
  else { /* zero or subnormal: an exact product */
    x = (float)mantissa * 0x1p-24f;
    memcpy(&bits, &x, 4);
    bits |= sign;
  }
  memcpy(&x, &bits, 4);
  return x;
}

INLINE uint16_t to_f16(float x) {
  uint32_t bits, sign;
  memcpy(&bits, &x, 4);
  sign = bits >> 16 & 0x8000;
  bits &= 0x7fffffff;
  if (bits > 0x7f800000) return (uint16_t)(sign | 0x7e00 | (bits >> 13 & 0x1ff));
  if (bits >= 0x477ff000) return (uint16_t)(sign | 0x7c00);
  if (bits < 0x38800000) { /* below the least normal: adding 0.5 rounds at the right place */
    float y;
    memcpy(&y, &bits, 4);
    y += 0.5f;
    memcpy(&bits, &y, 4);
    return (uint16_t)(sign | (bits - 0x3f000000));
  }
  return (uint16_t)(sign | ((bits - 0x38000000 + 0xfff + (bits >> 13 & 1)) >> 13));
}
#endif

INLINE uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  return bits;
}
INLINE float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, 4);
  return x;
}
#include "byte_float.h"
E4M3(FROM_BYTE)
E4M3(TO_BYTE)
E5M2(FROM_BYTE)
E5M2(TO_BYTE)

INLINE float round_bf16(float x) { return from_bf16(to_bf16(x)); }
INLINE float round_f16(float x) { return from_f16(to_f16(x)); }
INLINE float round_f8e4m3(float x) { return from_f8e4m3(to_f8e4m3(x)); }
INLINE float round_f8e5m2(float x) { return from_f8e5m2(to_f8e5m2(x)); }

/* ---- scalar arithmetic ---- */

#include "arithmetic.h"

/* Half a spacing is added to the bits of the size, and what is below a spacing cut off; infinities and NaN stay. */
INLINE float tf32_f32(float a) { return fabsf(a) < INFINITY ? float_of((bits_of(a) + 0x1000) & 0xffffe000) : a; }

#if defined(__FMA__) || defined(__aarch64__)
INLINE float fma_f32(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
INLINE double fma_f64(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
INLINE float fma_f32(float a, float b, float c) { return a * b + c; }
INLINE double fma_f64(double a, double b, double c) { return a * b + c; }
#endif

#define BITS(from, to, from_type, to_type)                                                        \
  INLINE to_type bits_##from##_to_##to(from_type x) {                                             \
    to_type y;                                                                                    \
    memcpy(&y, &x, sizeof y);                                                                     \
    return y;                                                                                     \
  }
BITS(f32, i32, float, int32_t)
BITS(i32, f32, int32_t, float)
BITS(f64, i64, double, int64_t)
BITS(i64, f64, int64_t, double)

/* ---- index arithmetic ---- */

INLINE int64_t clamp(int64_t i, int64_t size) { return i < 0 || size < 1 ? 0 : i >= size ? size - 1 : i; }
INLINE int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }
INLINE int64_t floor_mod(int64_t a, int64_t b) { return a % b + (a % b < 0 ? b : 0); }
/* Positions of an axis that each chunk covers, the last perhaps fewer. */
INLINE int64_t chunk_length(int64_t size, int64_t chunks) { return (size + chunks - 1) / chunks; }
INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- eight lanes: memory ---- */

#define PLAIN(type, name, vector)                                                                 \
  INLINE vector ld_##name(const type *p) {                                                        \
    vector v;                                                                                     \
    memcpy(&v, p, sizeof v);                                                                      \
    return v;                                                                                     \
  }                                                                                               \
  INLINE void st_##name(type *p, vector v) { memcpy(p, &v, sizeof v); }                           \
  INLINE vector splat_##name(type x) { return (vector){x, x, x, x, x, x, x, x}; }
PLAIN(float, f32, f32x8)
PLAIN(double, f64, f64x8)
PLAIN(int32_t, i32, i32x8)
PLAIN(int64_t, i64, i64x8)

#define NARROW(type, vector)                                                                      \
  INLINE vector ld_##vector(const type *p) {                                                      \
    vector v;                                                                                     \
    memcpy(&v, p, sizeof v);                                                                      \
    return v;                                                                                     \
  }                                                                                               \
  INLINE void st_##vector(type *p, vector v) { memcpy(p, &v, sizeof v); }
NARROW(int8_t, i8x8)
NARROW(uint8_t, u8x8)
NARROW(uint16_t, u16x8)

#if defined(HAS_AVX2_BUILTINS)
INLINE i8x16 eight_bytes(const void *p) {
  int64_t bytes;
  memcpy(&bytes, p, 8);
  return (i8x16)(int64_t __attribute__((vector_size(16)))){bytes, 0};
}
INLINE i32x8 ld_i8(const int8_t *p) { return (i32x8)__builtin_ia32_pmovsxbd256((char __attribute__((vector_size(16))))eight_bytes(p)); }
INLINE i32x8 ld_u8(const uint8_t *p) { return (i32x8)__builtin_ia32_pmovzxbd256((char __attribute__((vector_size(16))))eight_bytes(p)); }
INLINE f32x8 ld_bf16(const uint16_t *p) {
  i16x8 raw;
  memcpy(&raw, p, 16);
  return (f32x8)((u32x8)__builtin_ia32_pmovzxwd256(raw) << 16);
}
#else
INLINE i32x8 ld_i8(const int8_t *p) { return __builtin_convertvector(ld_i8x8(p), i32x8); }
INLINE i32x8 ld_u8(const uint8_t *p) { return __builtin_convertvector(ld_u8x8(p), i32x8); }
INLINE f32x8 ld_bf16(const uint16_t *p) { return (f32x8)(__builtin_convertvector(ld_u16x8(p), u32x8) << 16); }
#endif
INLINE void st_i8(int8_t *p, i32x8 v) { st_i8x8(p, __builtin_convertvector(v, i8x8)); }
INLINE void st_u8(uint8_t *p, i32x8 v) { st_u8x8(p, __builtin_convertvector(v, u8x8)); }
INLINE i32x8 ld_bool(const uint8_t *p) { return ld_u8(p) != 0; }
INLINE void st_bool(uint8_t *p, i32x8 v) { st_u8(p, v & 1); }
INLINE void st_bf16(uint16_t *p, f32x8 v) {
  u32x8 bits = (u32x8)v, nan = (u32x8)(v != v);
  bits = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  bits = (bits & ~nan) | (nan & 0x7fc0);
  st_u16x8(p, __builtin_convertvector(bits, u16x8));
}
#if defined(__F16C__)
INLINE f32x8 ld_f16(const uint16_t *p) {
  i16x8 raw;
  memcpy(&raw, p, 16);
  return __builtin_ia32_vcvtph2ps256(raw);
}
INLINE void st_f16(uint16_t *p, f32x8 v) {
  i16x8 raw = (i16x8)__builtin_ia32_vcvtps2ph256(v, 0);
  memcpy(p, &raw, 16);
}
#else
INLINE f32x8 ld_f16(const uint16_t *p) {
  f32x8 v;
  for (int l = 0; l < LANES; l++) v[l] = from_f16(p[l]);
  return v;
}
INLINE void st_f16(uint16_t *p, f32x8 v) {
  for (int l = 0; l < LANES; l++) p[l] = to_f16(v[l]);
}
#endif

#define BYTE_FLOAT8(name)                                                                         \
  INLINE f32x8 ld_##name(const uint8_t *p) {                                                      \
    f32x8 v;                                                                                      \
    for (int l = 0; l < LANES; l++) v[l] = from_##name(p[l]);                                     \
    return v;                                                                                     \
  }                                                                                               \
  INLINE void st_##name(uint8_t *p, f32x8 v) {                                                    \
    for (int l = 0; l < LANES; l++) p[l] = to_##name(v[l]);                                       \
  }                                                                                               \
  INLINE f32x8 round_##name##x8(f32x8 v) {                                                        \
    for (int l = 0; l < LANES; l++) v[l] = round_##name(v[l]);                                    \
    return v;                                                                                     \
  }
BYTE_FLOAT8(f8e4m3)
BYTE_FLOAT8(f8e5m2)

/* Eight in a row of `size` that may begin before it or end behind it: each is clamped into the row. */
#define CLAMPED(type, name, vector)                                                               \
  static __attribute__((noinline)) vector edge_##name(const type *p, int64_t start, int64_t size) { \
    type t[LANES];                                                                                \
    for (int l = 0; l < LANES; l++) t[l] = p[clamp(start + l, size)];                             \
    return ld_##name(t);                                                                          \
  }                                                                                               \
  INLINE vector row_##name(const type *p, int64_t start, int64_t size) {                          \
    return start >= 0 && start + LANES <= size ? ld_##name(p + start) : edge_##name(p, start, size); \
  }
CLAMPED(float, f32, f32x8)
CLAMPED(double, f64, f64x8)
CLAMPED(int32_t, i32, i32x8)
CLAMPED(int64_t, i64, i64x8)
CLAMPED(int8_t, i8, i32x8)
CLAMPED(uint8_t, u8, i32x8)
CLAMPED(uint8_t, bool, i32x8)
CLAMPED(uint16_t, bf16, f32x8)
CLAMPED(uint16_t, f16, f32x8)
CLAMPED(uint8_t, f8e4m3, f32x8)
CLAMPED(uint8_t, f8e5m2, f32x8)

/* ---- eight lanes: arithmetic ---- */

#define IOTA ((i32x8){0, 1, 2, 3, 4, 5, 6, 7})
INLINE i32x8 splat_bool(int32_t x) { return splat_i32(-x); }
INLINE i32x8 narrow_mask(i64x8 mask) { return __builtin_convertvector(mask, i32x8); }
INLINE i64x8 widen_mask(i32x8 mask) { return __builtin_convertvector(mask, i64x8); }

INLINE f32x8 select_f32x8(i32x8 c, f32x8 a, f32x8 b) { return (f32x8)((c & (i32x8)a) | (~c & (i32x8)b)); }
INLINE i32x8 select_i32x8(i32x8 c, i32x8 a, i32x8 b) { return (c & a) | (~c & b); }
INLINE f64x8 select_f64x8(i32x8 c, f64x8 a, f64x8 b) {
  i64x8 m = widen_mask(c);
  return (f64x8)((m & (i64x8)a) | (~m & (i64x8)b));
}
INLINE i64x8 select_i64x8(i32x8 c, i64x8 a, i64x8 b) {
  i64x8 m = widen_mask(c);
  return (m & a) | (~m & b);
}

#define EACH(vector, name, expression)                                                            \
  INLINE vector name(vector a) {                                                                  \
    for (int l = 0; l < LANES; l++) a[l] = expression(a[l]);                                      \
    return a;                                                                                     \
  }
#define EACH2(vector, name, expression)                                                           \
  INLINE vector name(vector a, vector b) {                                                        \
    for (int l = 0; l < LANES; l++) a[l] = expression(a[l], b[l]);                                \
    return a;                                                                                     \
  }
#define FLOATS8(vector, name, mask)                                                               \
  INLINE vector max_##name##x8(vector a, vector b) { return select_##name##x8(mask((a > b) | (a != a)), a, b); } \
  INLINE vector subni_##name##x8(vector a, vector b) {                                            \
    return select_##name##x8(mask(a == -INFINITY), a, a - b);                                     \
  }                                                                                               \
  INLINE vector mulz_##name##x8(vector a, vector b) { return select_##name##x8(mask(a == 0), (vector){0}, a * b); } \
  INLINE vector recip_##name##x8(vector a) { return 1 / a; }                                      \
  INLINE vector recipz_##name##x8(vector a) { return select_##name##x8(mask(a == 0), (vector){0}, 1 / a); } \
  EACH2(vector, div_##name##x8, div_##name)                                                       \
  EACH2(vector, rem_##name##x8, rem_##name)                                                       \
  EACH2(vector, mod_##name##x8, mod_##name)
#define SAME(x) (x)
FLOATS8(f32x8, f32, SAME)
FLOATS8(f64x8, f64, narrow_mask)
EACH(f64x8, exp2_f64x8, exp2_f64)
EACH(f64x8, log2_f64x8, log2_f64)
EACH(f64x8, sin_f64x8, sin_f64)
EACH(f64x8, sqrt_f64x8, sqrt_f64)
EACH(f64x8, floor_f64x8, floor_f64)
EACH(f64x8, abs_f64x8, abs_f64)
EACH(f32x8, log2_f32x8, log2_f32)
EACH(f32x8, sin_f32x8, sin_f32)
INLINE f32x8 abs_f32x8(f32x8 a) { return (f32x8)((i32x8)a & 0x7fffffff); }
INLINE f32x8 tf32_f32x8(f32x8 a) {
  return select_f32x8(abs_f32x8(a) < INFINITY, (f32x8)(((u32x8)a + 0x1000) & 0xffffe000), a);
}
#if defined(HAS_AVX2_BUILTINS)
INLINE f32x8 sqrt_f32x8(f32x8 a) { return __builtin_ia32_sqrtps256(a); }
INLINE f32x8 floor_f32x8(f32x8 a) { return __builtin_ia32_roundps256(a, 1); }
#elif __has_builtin(__builtin_elementwise_sqrt) && __has_builtin(__builtin_elementwise_floor)
INLINE f32x8 sqrt_f32x8(f32x8 a) { return __builtin_elementwise_sqrt(a); }
INLINE f32x8 floor_f32x8(f32x8 a) { return __builtin_elementwise_floor(a); }
#else
EACH(f32x8, sqrt_f32x8, sqrt_f32)
EACH(f32x8, floor_f32x8, floor_f32)
#endif

#define INTS8(vector, name, bits, mask)                                                                 \
  INLINE vector max_##name##x8(vector a, vector b) { return select_##name##x8(mask(a > b), a, b); } \
  INLINE vector abs_##name##x8(vector a) { return max_##name##x8(a, -a); }                        \
  EACH2(vector, div_##name##x8, div_##name)                                                       \
  EACH2(vector, rem_##name##x8, rem_##name)                                                       \
  EACH2(vector, mod_##name##x8, mod_##name)                                                       \
  INLINE vector shr_##name##x8(vector a, vector n) {                                              \
    vector far = (n < 0) | (n >= bits);                                                           \
    return a >> ((n & ~far) | (far & (bits - 1)));                                                \
  }                                                                                               \
  INLINE vector shift_##name##x8(vector a, int32_t n) { return a >> (n < 0 || n >= bits ? bits - 1 : n); } \
  INLINE vector fma_##name##x8(vector a, vector b, vector c) { return a * b + c; }
INTS8(i32x8, i32, 32, SAME)
INTS8(i64x8, i64, 64, narrow_mask)

#if __has_builtin(__builtin_elementwise_fma)
INLINE f32x8 fma_f32x8(f32x8 a, f32x8 b, f32x8 c) { return __builtin_elementwise_fma(a, b, c); }
#elif defined(__FMA__)
INLINE f32x8 fma_f32x8(f32x8 a, f32x8 b, f32x8 c) { return __builtin_ia32_vfmaddps256(a, b, c); }
#else
INLINE f32x8 fma_f32x8(f32x8 a, f32x8 b, f32x8 c) {
  for (int l = 0; l < LANES; l++) c[l] = fma_f32(a[l], b[l], c[l]);
  return c;
}
#endif
INLINE f64x8 fma_f64x8(f64x8 a, f64x8 b, f64x8 c) {
  for (int l = 0; l < LANES; l++) c[l] = fma_f64(a[l], b[l], c[l]);
  return c;
}

/* 2ˣ = 2ⁿ · 2ᶠ with n the nearest integer and |f| ≤ ½; the polynomial for 2ᶠ is that of Cephes (exp2f),
 * off by less than one spacing.  2ⁿ is two factors, so that subnormal results and overflow come out right. */
INLINE f32x8 power_of_two(i32x8 n) { return (f32x8)((n + 127) << 23); }
INLINE f32x8 exp2_f32x8(f32x8 x) {
  x = select_f32x8(x > 129, splat_f32(129), select_f32x8(x < -151, splat_f32(-151), x));
  f32x8 whole = (x + 0x1.8p23f) - 0x1.8p23f, f = x - whole, p;
  p = fma_f32x8(splat_f32(1.535336188319500e-4f), f, splat_f32(1.339887440266574e-3f));
  p = fma_f32x8(p, f, splat_f32(9.618437357674640e-3f));
  p = fma_f32x8(p, f, splat_f32(5.550332471162809e-2f));
  p = fma_f32x8(p, f, splat_f32(2.402264791363012e-1f));
  p = fma_f32x8(p, f, splat_f32(6.931472028550421e-1f));
  p = fma_f32x8(p, f, splat_f32(1));
  i32x8 n = __builtin_convertvector(whole, i32x8), half = n >> 1;
  return p * power_of_two(half) * power_of_two(n - half);
}

/* ---- eight lanes: conversions ---- */

INLINE f32x8 round_bf16x8(f32x8 v) {
  u32x8 bits = (u32x8)v;
  i32x8 nan = v != v;
  bits = (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000;
  return select_f32x8(nan, splat_f32(from_bf16(0x7fc0)), (f32x8)bits);
}
INLINE f32x8 round_f16x8(f32x8 v) {
  uint16_t raw[LANES];
  st_f16(raw, v);
  return ld_f16(raw);
}
#define AS(from, to)                                                                              \
  INLINE f32x8 from##_as_##to##x8(f32x8 v) {                                                      \
    for (int l = 0; l < LANES; l++) v[l] = from_##to(to_##from(v[l]));                            \
    return v;                                                                                     \
  }
AS(f16, bf16)
AS(bf16, f16)
AS(f8e4m3, f8e5m2)
AS(f8e5m2, f8e4m3)
#define TO_INT8(from, from_type, to, vector)                                                      \
  INLINE vector from##x8_to_##to(from_type v) {                                                   \
    vector r;                                                                                     \
    for (int l = 0; l < LANES; l++) r[l] = from##_to_##to(v[l]);                                  \
    return r;                                                                                     \
  }
TO_INT8(f32, f32x8, i8, i32x8)
TO_INT8(f32, f32x8, u8, i32x8)
TO_INT8(f32, f32x8, i32, i32x8)
TO_INT8(f32, f32x8, i64, i64x8)
TO_INT8(f64, f64x8, i8, i32x8)
TO_INT8(f64, f64x8, u8, i32x8)
TO_INT8(f64, f64x8, i32, i32x8)
TO_INT8(f64, f64x8, i64, i64x8)

/* ---- eight lanes: across ---- */

#define ACROSS(type, vector, name)                                                                \
  INLINE type prod_##name(vector v) {                                                             \
    return ((v[0] * v[4]) * (v[2] * v[6])) * ((v[1] * v[5]) * (v[3] * v[7]));                     \
  }                                                                                               \
  INLINE type top_##name(vector v) {                                                              \
    type m = v[0];                                                                                \
    for (int l = 1; l < LANES; l++) m = max_##name(m, v[l]);                                      \
    return m;                                                                                     \
  }
#define SUM(type, vector, name)                                                                   \
  INLINE type sum_##name(vector v) {                                                              \
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));                     \
  }
ACROSS(float, f32x8, f32)
ACROSS(double, f64x8, f64)
ACROSS(int32_t, i32x8, i32)
ACROSS(int64_t, i64x8, i64)
SUM(double, f64x8, f64)
SUM(int32_t, i32x8, i32)
SUM(int64_t, i64x8, i64)
#if __has_builtin(__builtin_shufflevector)
INLINE float sum_f32(f32x8 v) {
  f32x4 s = __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
  s += __builtin_shufflevector(s, s, 2, 3, 0, 1);
  return s[0] + s[1];
}
#else
SUM(float, f32x8, f32)
#endif
INLINE int32_t any_bool(i32x8 v) { return (top_i32(-v) != 0); }
INLINE int32_t all_bool(i32x8 v) { return (top_i32(v) != 0); }
