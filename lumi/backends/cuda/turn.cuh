/* Kernels in turn: all blocks of a launch wait for each other at a word of memory, as often as they like.
 *
 * The launch has no more blocks than run at once.  All of them together add 2^31 to the word, so that its
 * highest bit changes when the last has come, and the others are again what they were: nobody resets it.
 */
INLINE u32 add_release(u32 *p, u32 n) {
  u32 before;
  asm volatile("atom.add.release.gpu.global.u32 %0, [%1], %2;" : "=r"(before) : "l"(p), "r"(n) : "memory");
  return before;
}
INLINE u32 load_acquire(const u32 *p) {
  u32 x;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(x) : "l"(p) : "memory");
  return x;
}
INLINE void tell_block(u32 *p, u32 x) {
  asm volatile("st.release.cta.shared.u32 [%0], %1;" ::"r"(shared_place(p)), "r"(x) : "memory");
}
INLINE u32 heard_in_block(const u32 *p) {
  u32 x;
  asm volatile("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(x) : "r"(shared_place(p)) : "memory");
  return x;
}

/* The first THREADS threads of a block wait for each other, whatever fewer of them have waited for. */
template <int THREADS> INLINE void turn_wait() {
  asm volatile("bar.sync 0, %0;" ::"n"(THREADS) : "memory");
}
/* The first THREADS threads of a block are done with a turn: what thread 0 needs to wait for the others.
 * What they have written before they met is released with what thread 0 adds. */
template <int THREADS> INLINE u32 turn_end(u32 *met) {
  turn_wait<THREADS>();
  u32 before = 0;
  if (threadIdx.x == 0) before = add_release(met, blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1);
  return before;
}
/* They wait until all blocks are, and see what those have written.  Fillers of stages hear which turn begins. */
template <int THREADS> INLINE void turn_begin(const u32 *met, u32 before, u32 *begun, u32 turn) {
  if (threadIdx.x == 0) {
    while (!((load_acquire(met) ^ before) >> 31)) {
    }
    if (begun) tell_block(begun, turn);
  }
  turn_wait<THREADS>();
}
/* A filler waits for a turn: until then, what it is to copy may change. */
INLINE void turn_await(const u32 *begun, u32 turn) {
  while (heard_in_block(begun) < turn) {
  }
}
