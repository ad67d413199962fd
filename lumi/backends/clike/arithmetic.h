/* Operators of one element with the exact semantics of HLIR, in C and CUDA alike.
 *
 * The file around it defines INLINE, INFINITY, and the types and limits of <stdint.h>.  Nothing contracts.
 */
#define FLOATS(type, name, suffix)                                                                \
  INLINE type max_##name(type a, type b) { return a > b || a != a ? a : b; }                      \
  INLINE type subni_##name(type a, type b) { return a == -(type)INFINITY ? a : a - b; }           \
  INLINE type mulz_##name(type a, type b) { return a == 0 ? 0 : a * b; }                          \
  INLINE type recip_##name(type a) { return 1 / a; }                                              \
  INLINE type recipz_##name(type a) { return a == 0 ? 0 : 1 / a; }                                \
  INLINE type div_##name(type a, type b) { return trunc##suffix(a / b); }                         \
  INLINE type rem_##name(type a, type b) { return fmod##suffix(a, b); }                           \
  INLINE type mod_##name(type a, type b) { return a - b * floor##suffix(a / b); }                 \
  INLINE type abs_##name(type a) { return fabs##suffix(a); }                                      \
  INLINE type exp2_##name(type a) { return exp2##suffix(a); }                                     \
  INLINE type log2_##name(type a) { return log2##suffix(a); }                                     \
  INLINE type sin_##name(type a) { return sin##suffix(a); }                                       \
  INLINE type sqrt_##name(type a) { return sqrt##suffix(a); }                                     \
  INLINE type floor_##name(type a) { return floor##suffix(a); }
FLOATS(float, f32, f)
FLOATS(double, f64, )

/* Integers wrap.  Division rounds toward zero; by zero it gives 0, a remainder by zero the dividend. */
#define INTS(type, wide, name, bits)                                                              \
  INLINE type add_##name(type a, type b) { return (type)((wide)a + (wide)b); }                    \
  INLINE type sub_##name(type a, type b) { return (type)((wide)a - (wide)b); }                    \
  INLINE type mul_##name(type a, type b) { return (type)((wide)a * (wide)b); }                    \
  INLINE type max_##name(type a, type b) { return a > b ? a : b; }                                \
  INLINE type abs_##name(type a) { return a < 0 ? sub_##name(0, a) : a; }                         \
  INLINE type div_##name(type a, type b) { return b == 0 ? 0 : b == -1 ? sub_##name(0, a) : a / b; } \
  INLINE type rem_##name(type a, type b) { return b == 0 ? a : b == -1 ? 0 : a % b; }             \
  INLINE type mod_##name(type a, type b) {                                                        \
    type r = rem_##name(a, b);                                                                    \
    return b != 0 && r != 0 && (r < 0) != (b < 0) ? r + b : r;                                    \
  }                                                                                               \
  INLINE type shr_##name(type a, type b) { return a >> (b < 0 || b >= bits ? bits - 1 : b); }     \
  INLINE type fma_##name(type a, type b, type c) { return add_##name(mul_##name(a, b), c); }
INTS(int32_t, uint32_t, i32, 32)
INTS(int64_t, uint64_t, i64, 64)

/* The nearest integer toward zero; beyond the type its end, NaN is 0. */
#define TO_INT(from, name, type, to, low, high)                                                   \
  INLINE type name##_to_##to(from x) {                                                            \
    return x != x ? 0 : x <= (from)low ? (type)low : x >= (from)high ? (type)high : (type)x;      \
  }
TO_INT(float, f32, int32_t, i8, -128, 127)
TO_INT(float, f32, int32_t, u8, 0, 255)
TO_INT(float, f32, int32_t, i32, INT32_MIN, INT32_MAX)
TO_INT(float, f32, int64_t, i64, INT64_MIN, INT64_MAX)
TO_INT(double, f64, int32_t, i8, -128, 127)
TO_INT(double, f64, int32_t, u8, 0, 255)
TO_INT(double, f64, int32_t, i32, INT32_MIN, INT32_MAX)
TO_INT(double, f64, int64_t, i64, INT64_MIN, INT64_MAX)
