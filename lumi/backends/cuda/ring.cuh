/* A ring of stages in shared memory: one thread fills them in order, warps use them in order.
 *
 * A stage is full when all its bytes have come, and empty again when every warp has let go of it.
 */
INLINE void stage_open(u64 *state, u32 arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_place(state)), "r"(arrivals) : "memory");
}
INLINE void stage_announce(u64 *state, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_place(state)), "r"(bytes)
               : "memory");
}
/* A warp lets go of a stage once all it has read from there has come: copies go another way than reads. */
INLINE void stage_release(u64 *state) {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncwarp();
  if (threadIdx.x % 32 == 0)
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(shared_place(state)) : "memory");
}
INLINE void stage_await(u64 *state, u32 lap) {
  u32 done;
  do {
    asm volatile(
        "{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
        : "=r"(done)
        : "r"(shared_place(state)), "r"(lap)
        : "memory");
  } while (!done);
}
/* Makes what was written before, in this thread, visible to copies. */
INLINE void before_copies() { asm volatile("fence.proxy.async;" ::: "memory"); }
/* What is read once leaves the cache first. */
INLINE u64 read_once() {
  u64 policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
/* What is read to stay is the last to leave the cache. */
INLINE u64 read_to_stay() {
  u64 policy;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
INLINE words<4> wide_policed(const uint4 *p, u64 policy) {
  words<4> x;
  asm volatile("ld.global.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
               : "=r"(x.w[0]), "=r"(x.w[1]), "=r"(x.w[2]), "=r"(x.w[3])
               : "l"(p), "l"(policy)
               : "memory");
  return x;
}
INLINE void stage_copy(void *to, const void *from, u32 bytes, u64 *state, u64 policy) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
               " [%0], [%1], %2, [%3], %4;" ::"r"(shared_place(to)),
               "l"(from), "r"(bytes), "r"(shared_place(state)), "l"(policy)
               : "memory");
}
INLINE void fetch_early(const void *p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }

/* The stage whose turn it is, and whether an odd number of laps is behind it. */
template <int STAGES> struct Turn {
  int slot = 0;
  u32 lap = 0;
  __device__ __forceinline__ void next() {
    if (++slot == STAGES) slot = 0, lap ^= 1;
  }
};

/* The thread that fills stages, `FLIGHT` of which are on their way at most: more would delay others' loads. */
template <int STAGES, int BYTES, int FLIGHT> struct Filler {
  u8 *stages;
  u64 *full, *empty;
  u64 policy;
  Turn<STAGES> turn, oldest;
  int filled = 0;
  __device__ __forceinline__ Filler(u8 *stages, u64 *full, u64 *empty)
      : stages(stages), full(full), empty(empty), policy(read_once()) {}
  /* Where `bytes` can go as soon as a stage is empty. */
  __device__ __forceinline__ u8 *claim(u32 bytes) {
    if (filled >= STAGES) stage_await(empty + turn.slot, turn.lap ^ 1);
    if (FLIGHT < STAGES && filled >= FLIGHT) {
      stage_await(full + oldest.slot, oldest.lap);
      oldest.next();
    }
    filled++;
    stage_announce(full + turn.slot, bytes);
    return stages + turn.slot * BYTES;
  }
  __device__ __forceinline__ void copy(u8 *to, const void *from, u32 bytes) {
    stage_copy(to, from, bytes, full + turn.slot, policy);
  }
};

/* ---- the threads that use the stages ---- */

template <int THREADS> INLINE void users_wait() { threads_wait<THREADS>(); }
template <int COUNT> INLINE float total_of(const float *p) {
  float total = 0;
  if (COUNT % 4) {
#pragma unroll
    for (int k = 0; k < COUNT; k++) total += p[k];
    return total;
  }
#pragma unroll
  for (int k = 0; k < COUNT; k += 4) {
    const float4 v = *(const float4 *)(p + k);
    total += (v.x + v.y) + (v.z + v.w);
  }
  return total;
}
/* A byte of a word as a tiny float: where it stands, but for the last one, which would reach the exponent. */
template <int BYTE> INLINE float tiny_byte(u32 word) {
  return __uint_as_float(BYTE == 3 ? word >> 24 : word & 255u << 8 * BYTE);
}
/* The greatest power of two that is not greater; an inverse of it is a normal number. */
INLINE float power_within(float x) {
  const u32 bits = __float_as_uint(x) & 0x7f800000u;
  return __uint_as_float(bits < 1u << 23 ? 1u << 23 : bits > 253u << 23 ? 253u << 23 : bits);
}
INLINE float power_inverse(float power) { return __uint_as_float((254u << 23) - __float_as_uint(power)); }
/* The lowest four bits, each in a byte of its own. */
INLINE u32 bits_apart(u32 bits) { return (bits & 15) * 0x00204081u & 0x01010101u; }
/* Every user gets the combination over all of them; `parts` is memory for one value a warp. */
#define AMONG_USERS(op)                                                                           \
  template <int THREADS> INLINE float users_##op(float x, float *parts) {                         \
    x = across_##op##_f32<32>(x);                                                                 \
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;                                       \
    users_wait<THREADS>();                                                                        \
    if ((THREADS / 32 & (THREADS / 32 - 1)) == 0)                                                 \
      return across_##op##_f32<THREADS / 32>(parts[threadIdx.x % (THREADS / 32)]);                \
    x = parts[0];                                                                                 \
    for (int k = 1; k < THREADS / 32; k++) x = op##_f32(x, parts[k]);                             \
    return x;                                                                                     \
  }
AMONG_USERS(sum)
AMONG_USERS(max)
AMONG_USERS(mul)
