/* What CUDA gives a kernel, on a CPU: before the helpers of kernels. */
#define __device__
#define __forceinline__ inline
#define __global__
#define __shared__ static
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __restrict__
#define __launch_bounds__(...)
#define __grid_constant__
#define __CUDA_ARCH__ 800
typedef __SIZE_TYPE__ size_t;
struct Index { int x; };
struct uint4 { unsigned x, y, z, w; };
struct uint2 { unsigned x, y; };
struct float4 { float x, y, z, w; };
struct float2 { float x, y; };
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
static inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }

extern char emulated_pool[];
extern Index emulated_block, emulated_grid;
extern "C" int emulated_thread(), emulated_size();
void emulated_meet(void *given, void (*work)(void **));
void emulated_barrier(int count = 0);
void emulated_turn();
void emulated_elsewhere();
void emulated_copy(unsigned to, const void *from, int size, int bytes);
void emulated_commit();
void emulated_wait(int left);
void emulated_fault();
void emulated_users(int count);
void emulated_named(int number, int count, bool waits);
void emulated_open(void *state, int arrivals);
void emulated_arrive(void *state, int arrived, long bytes);
void emulated_fill(void *to, const void *from, unsigned size, unsigned bytes, void *state);
void emulated_await(void *state, unsigned lap);
void emulated_send(void *to, const void *from, unsigned bytes);
void emulated_sent();
void emulated_finish(int left);
#define threadIdx (Index{emulated_thread()})
#define blockDim (Index{emulated_size()})
#define blockIdx emulated_block
#define gridDim emulated_grid
#define __syncthreads emulated_barrier
#define __cvta_generic_to_shared(p) ((const char *)(p)-emulated_pool)

extern "C" {
float fmaf(float, float, float);
double fma(double, double, double);
float truncf(float), fmodf(float, float), floorf(float), fabsf(float), fmaxf(float, float);
float exp2f(float), log2f(float), sinf(float), sqrtf(float);
double trunc(double), fmod(double, double), floor(double), fabs(double), exp2(double), log2(double), sin(double),
    sqrt(double);
double fmin(double, double), fmax(double, double);
}
template <typename To, typename From> static inline To same_bits(From from) {
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}
#define __int_as_float same_bits<float, int>
#define __uint_as_float same_bits<float, unsigned>
#define __float_as_uint same_bits<unsigned, float>
#define __float_as_int same_bits<int, float>
#define __double_as_longlong same_bits<long long, double>
#define __longlong_as_double same_bits<double, long long>
template <typename T> static inline T __ldcs(const T *p) { return *p; }
template <typename T> static inline void __stcs(T *p, T x) { *p = x; }
template <typename T> static inline T __ldcg(const T *p) { return *p; }
static inline int __ffs(unsigned x) { return __builtin_ffs((int)x); }
static inline int __float2int_rn(float x) { return x != x ? 0 : (int)__builtin_rintf(x); }
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned by) {
  const unsigned long long both = (unsigned long long)y << 32 | x;
  unsigned found = 0;
  for (int k = 0; k < 4; k++) found |= (unsigned)(both >> 8 * (by >> 4 * k & 7) & 255) << 8 * k;
  return found;
}
static inline int __clz(unsigned x) { return x ? __builtin_clz(x) : 32; }

template <typename T> struct Exchange { T value; int lane; T got; };
template <typename T> static inline T __shfl_xor_sync(unsigned, T value, int mask) {
  Exchange<T> mine = {value, mask, value};
  emulated_meet(&mine, [](void **all) {
    for (int lane = 0; lane < 32; lane++) {
      auto *const to = (Exchange<T> *)all[lane];
      to->got = ((Exchange<T> *)all[lane ^ to->lane])->value;
    }
  });
  return mine.got;
}
template <typename T> static inline T __shfl_sync(unsigned, T value, int lane) {
  Exchange<T> mine = {value, lane, value};
  emulated_meet(&mine, [](void **all) {
    for (int lane = 0; lane < 32; lane++) {
      auto *const to = (Exchange<T> *)all[lane];
      to->got = ((Exchange<T> *)all[to->lane % 32])->value;
    }
  });
  return mine.got;
}
static inline void __syncwarp() {
  emulated_meet(nullptr, [](void **) {});
}
static inline unsigned __ballot_sync(unsigned, bool value) {
  Exchange<unsigned> mine = {value, 0, 0};
  emulated_meet(&mine, [](void **all) {
    unsigned mask = 0;
    for (int lane = 0; lane < 32; lane++) mask |= ((Exchange<unsigned> *)all[lane])->value << lane;
    for (int lane = 0; lane < 32; lane++) ((Exchange<unsigned> *)all[lane])->got = mask;
  });
  return mine.got;
}
