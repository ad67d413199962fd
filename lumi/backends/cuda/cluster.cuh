/* Blocks of a cluster, which run at the same time and can write into each other's shared memory. */
INLINE u32 cluster_rank() {
  u32 rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
INLINE u32 cluster_size() {
  u32 size;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  return size;
}
INLINE int cluster_number() { return (int)(blockIdx.x / cluster_size()); }
INLINE int clusters() { return (int)(gridDim.x / cluster_size()); }
/* Every thread of a cluster waits for all others, and sees what they have written. */
INLINE void cluster_wait() {
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n"
      "barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
/* Writes where block `rank` of the cluster has what lies at `p` here. */
INLINE void cluster_write(float *p, u32 rank, float x) {
  u32 there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_place(p)), "r"(rank));
  asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(there), "f"(x) : "memory");
}
/* Every thread gets the combination over all threads of the cluster; `parts` is memory for one value a warp
 * of each block, which all blocks must have let go of. */
#define AMONG_BLOCKS(op)                                                                          \
  template <int THREADS, int BLOCKS> INLINE float blocks_##op(float x, float *parts) {            \
    constexpr int WARPS = THREADS / 32, VALUES = WARPS * BLOCKS, LANES = VALUES < 32 ? VALUES : 32; \
    const int lane = threadIdx.x % 32;                                                            \
    x = across_##op##_f32<32>(x);                                                                 \
    if (lane < BLOCKS) cluster_write(parts + cluster_rank() * WARPS + threadIdx.x / 32, lane, x); \
    cluster_wait();                                                                               \
    x = parts[lane % LANES];                                                                      \
    _Pragma("unroll") for (int k = LANES; k < VALUES; k += LANES)                                 \
      x = op##_f32(x, parts[k + lane]);                                                           \
    return across_##op##_f32<LANES>(x);                                                           \
  }
AMONG_BLOCKS(sum)
AMONG_BLOCKS(max)
AMONG_BLOCKS(mul)
