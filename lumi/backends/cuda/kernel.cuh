/* What generated kernels are written in: helpers with the exact semantics of HLIR.
 *
 * Values in registers: floats but f64 are `float`, i8, u8, i32 are `int`, bool is 0 or 1 in `int`.
 * Compile with --fmad=false: only `fma_*` contracts.
 */
typedef signed char i8;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef int int32_t;
typedef i64 int64_t;
typedef u8 uint8_t;
typedef u32 uint32_t;
typedef u64 uint64_t;

#define INLINE static __device__ __forceinline__
#define INFINITY __int_as_float(0x7f800000)
#define FULL_WARP 0xffffffffu
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define INT64_MIN (-9223372036854775807LL - 1)
#define INT64_MAX 9223372036854775807LL

/* ---- kernels in order ----
 *
 * A kernel may be launched to start before the one before it has ended.  It lets the next one do so, and
 * waits until everything before it has ended before it touches memory that changes.  A pointer comes out of
 * the wait anew, so that no load through it can stand before, nor take the way of memory that never changes.
 */
INLINE void let_next_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
INLINE void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
template <typename T> INLINE T *settled(T *p) {
  size_t place = __cvta_generic_to_global(p);
  asm volatile("" : "+l"(place)::"memory");
  return (T *)__cvta_global_to_generic(place);
}

/* Where something lies in shared memory. */
INLINE u32 shared_place(const void *p) { return (u32)__cvta_generic_to_shared(p); }

/* ---- halves and TF32 ---- */

INLINE float from_bf16(u16 raw) { return __uint_as_float((u32)raw << 16); }
INLINE u16 to_bf16(float x) {
  u16 raw;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(raw) : "f"(x));
  return x != x ? 0x7fc0 : raw;
}
/* Of a number that is one of bf16. */
INLINE u16 held_bf16(float x) { return (u16)(__float_as_uint(x) >> 16); }
INLINE float from_f16(u16 raw) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(raw));
  return x;
}
INLINE u16 to_f16(float x) {
  u16 raw;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(raw) : "f"(x));
  return x != x ? 0x7e00 : raw;
}
INLINE u32 to_tf32(float x) {
  u32 raw;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(raw) : "f"(x));
  return raw;
}
INLINE u32 bits_of(float x) { return __float_as_uint(x); }
INLINE float float_of(u32 bits) { return __uint_as_float(bits); }
#include "byte_float.h"
#if __CUDA_ARCH__ >= 890
/* The device's conversions bring what is beyond the greatest value, from BEYOND on, back to it, and have
 * another code for NaN. */
#define BYTE_FLOAT(name, ptx, BEYOND, ABOVE, NAN_CODE)                                            \
  INLINE float from_##name(u8 raw) {                                                              \
    u32 pair;                                                                                     \
    asm("cvt.rn.f16x2." ptx "x2 %0, %1;" : "=r"(pair) : "h"((u16)raw));                           \
    return from_f16((u16)pair);                                                                   \
  }                                                                                               \
  INLINE u8 to_##name(float x) {                                                                  \
    u16 pair;                                                                                     \
    asm("cvt.rn.satfinite." ptx "x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));           \
    return (u8)(x != x ? NAN_CODE : fabsf(x) >= BEYOND ? (bits_of(x) >> 24 & 128) | ABOVE : pair); \
  }
BYTE_FLOAT(f8e4m3, "e4m3", 464.00003f, 0x7f, 0x7f)
BYTE_FLOAT(f8e5m2, "e5m2", 61440.0f, 0x7c, 0x7e)
#else
E4M3(FROM_BYTE)
E4M3(TO_BYTE)
E5M2(FROM_BYTE)
E5M2(TO_BYTE)
#endif

INLINE float round_bf16(float x) { return from_bf16(to_bf16(x)); }
INLINE float round_f16(float x) { return from_f16(to_f16(x)); }
INLINE float round_f8e4m3(float x) { return from_f8e4m3(to_f8e4m3(x)); }
INLINE float round_f8e5m2(float x) { return from_f8e5m2(to_f8e5m2(x)); }

/* ---- arithmetic ---- */

#include "arithmetic.h"

INLINE float tf32_f32(float a) { return float_of(to_tf32(a)); }
/* The same of what a reference computes: 10 bits of 52, the nearest, of two the one farther from 0. */
INLINE double tf32_f64(double a) {
  return fabs(a) < INFINITY ? __longlong_as_double((__double_as_longlong(a) + (1ll << 41)) & -1ll << 42) : a;
}

/* The larger of two numbers, of two zeros any; NaN if one is. */
INLINE float most(float a, float b) {
  float x;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(x) : "f"(a), "f"(b));
  return x;
}
INLINE float fma_f32(float a, float b, float c) { return fmaf(a, b, c); }
INLINE double fma_f64(double a, double b, double c) { return fma(a, b, c); }

/* Combinations of a reduction, by the name of its operator. */
#define COMBINE(type, name)                                                                       \
  INLINE type sum_##name(type a, type b) { return a + b; }                                        \
  INLINE type mul_##name(type a, type b) { return a * b; }
COMBINE(float, f32)
COMBINE(double, f64)
INLINE int sum_i32(int a, int b) { return add_i32(a, b); }
INLINE i64 sum_i64(i64 a, i64 b) { return add_i64(a, b); }
INLINE int sum_bool(int a, int b) { return a | b; }
INLINE int max_bool(int a, int b) { return a | b; }
INLINE int mul_bool(int a, int b) { return a & b; }

#define BITS(from, to, from_type, to_type, function)                                              \
  INLINE to_type bits_##from##_to_##to(from_type x) { return function(x); }
BITS(f32, i32, float, int, __float_as_int)
BITS(i32, f32, int, float, __int_as_float)
BITS(f64, i64, double, i64, __double_as_longlong)
BITS(i64, f64, i64, double, __longlong_as_double)

/* ---- indices ---- */

INLINE i64 clamp(i64 i, i64 size) { return i < 0 || size < 1 ? 0 : i >= size ? size - 1 : i; }
template <typename T> INLINE T floor_div(T a, int b) { return a / b - (a % b < 0); }
template <typename T> INLINE T floor_mod(T a, int b) { return a % b + (a % b < 0 ? b : 0); }
INLINE int least(int a, int b) { return a < b ? a : b; }
/* Positions of an axis that each chunk covers, the last perhaps fewer. */
INLINE int chunk_length(i64 size, i64 chunks) { return (int)((size + chunks - 1) / chunks); }

/* ---- several neighbours at once ---- */

template <int COUNT> struct words { u32 w[COUNT]; };

INLINE words<4> wide_load(const uint4 *p) { const uint4 v = *p; return {v.x, v.y, v.z, v.w}; }
INLINE words<2> wide_load(const uint2 *p) { const uint2 v = *p; return {v.x, v.y}; }
INLINE words<1> wide_load(const u32 *p) { return {*p}; }
/* What is read once passes through the caches. */
INLINE words<4> wide_pass(const uint4 *p) { const uint4 v = __ldcs(p); return {v.x, v.y, v.z, v.w}; }
INLINE words<2> wide_pass(const uint2 *p) { const uint2 v = __ldcs(p); return {v.x, v.y}; }
INLINE words<1> wide_pass(const u32 *p) { return {__ldcs(p)}; }
INLINE void wide_store(uint4 *p, u32 a, u32 b, u32 c, u32 d) { *p = make_uint4(a, b, c, d); }
INLINE void wide_store(uint2 *p, u32 a, u32 b) { *p = make_uint2(a, b); }
INLINE void wide_store(u32 *p, u32 a) { *p = a; }
INLINE u32 two(u16 a, u16 b) { return (u32)a | (u32)b << 16; }
/* Two numbers rounded to halves: the device does both at once, with another NaN. */
#if __CUDA_ARCH__ >= 900
#define TWO_HALVES(name, extra)                                                                   \
  INLINE u32 two_##name(float a, float b) {                                                       \
    u32 both, nan;                                                                                \
    asm("cvt.rn." #name "x2.f32 %0, %1, %2;" : "=r"(both) : "f"(b), "f"(a));                      \
    asm("set.neu.u32." #name "x2 %0, %1, %1;" : "=r"(nan) : "r"(both));                           \
    return both & ~(nan & extra);                                                                 \
  }
#else
#define TWO_HALVES(name, extra)                                                                   \
  INLINE u32 two_##name(float a, float b) { return two(to_##name(a), to_##name(b)); }
#endif
TWO_HALVES(bf16, 0x003f003fu)
TWO_HALVES(f16, 0x01ff01ffu)
INLINE u32 four(int a, int b, int c, int d) {
  return (u32)(u8)a | (u32)(u8)b << 8 | (u32)(u8)c << 16 | (u32)(u8)d << 24;
}
INLINE i64 join(u32 low, u32 high) { return (i64)((u64)low | (u64)high << 32); }

/* ---- threads together ---- */

/* The first THREADS threads of a block wait for each other. */
template <int THREADS> INLINE void threads_wait() {
  asm volatile("bar.sync 1, %0;" ::"n"(THREADS) : "memory");
}

/* Every thread of each group of LANES neighbours gets the combination over the group; of each group of TEAM
 * threads that are as far apart as they can be; of the block. */
#define ACROSS(type, name, op)                                                                    \
  template <int LANES> INLINE type across_##op##_##name(type x) {                                 \
    _Pragma("unroll") for (int step = LANES / 2; step > 0; step /= 2)                             \
      x = op##_##name(x, __shfl_xor_sync(FULL_WARP, x, step));                                    \
    return x;                                                                                     \
  }                                                                                               \
  template <int TEAM, int THREADS> INLINE type apart_##op##_##name(type x) {                      \
    constexpr int groups = THREADS / TEAM, rows = THREADS / (groups < 32 ? 32 : groups);          \
    __shared__ type parts[rows * groups];                                                         \
    _Pragma("unroll") for (int step = groups; step < 32; step *= 2)                               \
      x = op##_##name(x, __shfl_xor_sync(FULL_WARP, x, step));                                    \
    threads_wait<THREADS>();                                                                      \
    parts[threadIdx.x * rows / THREADS * groups + threadIdx.x % groups] = x;                      \
    threads_wait<THREADS>();                                                                      \
    x = parts[threadIdx.x % groups];                                                              \
    _Pragma("unroll") for (int row = 1; row < rows; row++)                                        \
      x = op##_##name(x, parts[row * groups + threadIdx.x % groups]);                             \
    return x;                                                                                     \
  }                                                                                               \
  template <int THREADS> INLINE type block_##op##_##name(type x) {                                \
    __shared__ type parts[THREADS / 32];                                                          \
    x = across_##op##_##name<32>(x);                                                              \
    threads_wait<THREADS>();                                                                      \
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;                                       \
    threads_wait<THREADS>();                                                                      \
    x = parts[threadIdx.x % (THREADS / 32)];                                                      \
    return across_##op##_##name<THREADS / 32>(x);                                                 \
  }
#define ALL_ACROSS(type, name) ACROSS(type, name, sum) ACROSS(type, name, max) ACROSS(type, name, mul)
#define max_f32 most /* threads may take either of two zeros, as each of them has */
ALL_ACROSS(float, f32)
ALL_ACROSS(double, f64)
ALL_ACROSS(int, i32)
ALL_ACROSS(i64, i64)
ALL_ACROSS(int, bool)

/* The combination over the threads of a warp whose numbers agree below LOW, a power of two. */
#define ABOVE(op)                                                                                 \
  template <int LOW> INLINE float above_##op##_f32(float x) {                                     \
    _Pragma("unroll") for (int step = LOW; step < 32; step *= 2)                                  \
      x = op##_f32(x, __shfl_xor_sync(FULL_WARP, x, step));                                       \
    return x;                                                                                     \
  }
ABOVE(sum)
ABOVE(max)
ABOVE(mul)
#undef max_f32
/* Every thread gives half of its sums to the one STEP away, and takes in what that one gives, until one is left. */
template <int HALF, int STEP, int SUMS> INLINE void spread_halves(float (&v)[SUMS]) {
  if constexpr (HALF > 0) {
    const bool upper = threadIdx.x & STEP;
#pragma unroll
    for (int j = 0; j < HALF; j++) {
      const float given = upper ? v[j] : v[j + HALF], kept = upper ? v[j + HALF] : v[j];
      v[j] = kept + __shfl_xor_sync(FULL_WARP, given, STEP);
    }
    spread_halves<HALF / 2, STEP / 2>(v);
  }
}
/* Of SUMS sums over groups of LANES threads, a power of two, thread t of a group gets number t / (LANES / SUMS). */
template <int SUMS, int LANES = 32> INLINE float spread_sums(float (&v)[SUMS]) {
  spread_halves<SUMS / 2, LANES / 2>(v);
  float total = v[0];
#pragma unroll
  for (int step = LANES / 2 / SUMS; step > 0; step /= 2) total += __shfl_xor_sync(FULL_WARP, total, step);
  return total;
}
