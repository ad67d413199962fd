/* Runs a table of kernels, one after another, on all threads of one team.
 *
 * A kernel shares its cells among the threads and does not wait; here they wait for each other between
 * kernels.  Kernels follow each other within microseconds, so a thread first spins, and gives its core
 * away only when another process seems to hold the thread it waits for.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>
#if defined(_OPENMP)
#include <omp.h>
#endif

#define SPINS 20000

typedef struct {
  void (*run)(void *const *, const int64_t *);
  void *const *buffers;
  const int64_t *dims;
} Launch;

typedef struct {
  _Alignas(64) atomic_int waiting;
  _Alignas(64) atomic_int turn;
} Barrier;

static void pause_briefly(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static int64_t nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* The last thread to arrive notes the moment, if asked to: one that waits may be woken much later. */
static void wait_for_all(Barrier *barrier, int threads, int64_t *moment) {
  int turn = atomic_load_explicit(&barrier->turn, memory_order_relaxed);
  if (atomic_fetch_add_explicit(&barrier->waiting, 1, memory_order_acq_rel) == threads - 1) {
    if (moment) *moment = nanoseconds();
    atomic_store_explicit(&barrier->waiting, 0, memory_order_relaxed);
    atomic_store_explicit(&barrier->turn, turn + 1, memory_order_release);
    return;
  }
  for (int spins = 0; atomic_load_explicit(&barrier->turn, memory_order_acquire) == turn; spins++) {
    if (spins < SPINS) pause_briefly();
    else sched_yield();
  }
}

/* The number of threads that run a table. */
int lumi_threads(void) {
#if defined(_OPENMP)
  return omp_get_max_threads();
#else
  return 1;
#endif
}

/* Runs launches in order; `times`, if given, takes the moment after each, in nanoseconds, after that of
 * the start. */
void lumi_run(const Launch *launches, int64_t count, int64_t *times) {
  Barrier barrier = {0};
#pragma omp parallel
  {
    int threads = 1, first = 1;
#if defined(_OPENMP)
    threads = omp_get_num_threads();
    first = omp_get_thread_num() == 0;
#endif
    if (times && first) times[0] = nanoseconds();
    for (int64_t n = 0; n < count; n++) {
      launches[n].run(launches[n].buffers, launches[n].dims);
      wait_for_all(&barrier, threads, times ? times + n + 1 : 0);
    }
  }
}
