/* Blocks of threads on a CPU: every thread is a fiber, and what threads do together is done by the last to come.
 *
 * Copies into shared memory happen when they are asked for, or not before they are waited for, so that both a
 * missing wait and a place that is taken too early show.  Those that are not aligned, or that leave the buffers,
 * are counted and not made.
 */
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <ucontext.h>
#include <vector>

namespace {
const size_t STACK = 256 << 10;

struct Copy { unsigned to; const void *from; int size, bytes; };
struct Fiber {
  ucontext_t context;
  std::vector<char> stack;
  bool done;
  std::vector<Copy> pending;               /* copies of the group at hand */
  std::vector<std::vector<Copy>> groups;   /* groups on their way, the oldest first */
};
struct Meeting { int came = 0; long times = 0; void *given[32]; };
struct Stage {
  int arrivals, left;
  long bytes;
  unsigned lap;
  std::vector<Copy> pending;
};

struct Buffer { const char *from; long long size; };

std::vector<Buffer> buffers;
int faults;
std::vector<Fiber> fibers;
std::vector<Meeting> warps;
Meeting all, users;
std::map<void *, Stage> stages;
ucontext_t home;
int current, threads;
bool early;
void (*body)(void **, const long long *);
void **arguments;
const long long *dims;

void yield() { swapcontext(&fibers[current].context, &home); }
void start() {
  body(arguments, dims);
  fibers[current].done = true;
  yield();
}
}  // namespace

struct Index { int x; };
char emulated_pool[1 << 18];
Index emulated_block, emulated_grid;
extern "C" int emulated_thread() { return current; }

/* Wait for all lanes of a warp; the last one calls `work` on what all have given. */
void emulated_meet(void *given, void (*work)(void **)) {
  Meeting &warp = warps[current / 32];
  warp.given[current % 32] = given;
  if (++warp.came == 32) {
    work(warp.given);
    warp.came = 0;
    warp.times++;
    return;
  }
  for (const long before = warp.times; warp.times == before;) yield();
}
void emulated_barrier() {
  if (++all.came == threads) {
    all.came = 0;
    all.times++;
    return;
  }
  for (const long before = all.times; all.times == before;) yield();
}

/* Wait for the first `count` threads of the block. */
void emulated_users(int count) {
  if (++users.came == count) {
    users.came = 0;
    users.times++;
    return;
  }
  for (const long before = users.times; users.times == before;) yield();
}

/* Note what a GPU would not do. */
void emulated_fault() { faults++; }

static bool is_fine(const Copy &copy) {
  if (copy.to % copy.size || (uintptr_t)copy.from % copy.size || copy.bytes > copy.size) return false;
  if (copy.to + copy.size > sizeof emulated_pool) return false;
  for (const Buffer &buffer : buffers) {
    const long long place = (const char *)copy.from - buffer.from;
    if (place >= 0 && place + copy.bytes <= buffer.size) return true;
  }
  return false;
}

static void carry_out(const Copy &copy) {
  char *const to = emulated_pool + copy.to;
  memcpy(to, copy.from, copy.bytes);
  memset(to + copy.bytes, 0, copy.size - copy.bytes);
}
void emulated_copy(unsigned to, const void *from, int size, int bytes) {
  const Copy copy = {to, from, size, bytes};
  if (!is_fine(copy)) faults++;
  else if (early) carry_out(copy);
  else fibers[current].pending.push_back(copy);
}
void emulated_commit() {
  fibers[current].groups.push_back(fibers[current].pending);
  fibers[current].pending.clear();
}
void emulated_wait(int left) {
  auto &groups = fibers[current].groups;
  while ((int)groups.size() > left) {
    for (const Copy &copy : groups.front()) carry_out(copy);
    groups.erase(groups.begin());
  }
}

/* States of stages: a lap ends when all have arrived and all bytes that were announced have come. */
void emulated_open(void *state, int arrivals) { stages[state] = {arrivals, arrivals, 0, 0, {}}; }
void emulated_arrive(void *state, int arrived, long bytes) {
  Stage &stage = stages.at(state);
  stage.left -= arrived, stage.bytes += bytes;
  if (stage.left == 0 && stage.bytes == 0) stage.lap ^= 1, stage.left = stage.arrivals;
}
void emulated_fill(void *to, const void *from, unsigned bytes, void *state) {
  const Copy copy = {(unsigned)((char *)to - emulated_pool), from, (int)bytes, (int)bytes};
  if (!early) return stages.at(state).pending.push_back(copy);
  carry_out(copy);
  emulated_arrive(state, 0, -(long)bytes);
}
void emulated_await(void *state, unsigned lap) {
  for (;;) {
    std::vector<Copy> pending;
    pending.swap(stages.at(state).pending);
    for (const Copy &copy : pending) {
      carry_out(copy);
      emulated_arrive(state, 0, -(long)copy.bytes);
    }
    if (stages.at(state).lap != lap) return;
    yield();
  }
}

/* Run all blocks of a kernel; `backwards` the threads of a block take turns from the last to the first.
 * Returns how many faults a GPU would have found. */
extern "C" int emulated_launch(void (*kernel)(void **, const long long *), void **given, const long long *sizes,
                               int count, const long long *values, int blocks, int size, int copies_early,
                               int backwards) {
  buffers.clear(), faults = 0;
  for (int n = 0; n < count; n++) buffers.push_back({(const char *)given[n], sizes[n]});
  body = kernel, arguments = given, dims = values, threads = size, early = copies_early;
  fibers.resize(size);
  emulated_grid.x = blocks;
  for (int block = 0; block < blocks; block++) {
    emulated_block.x = block;
    memset(emulated_pool, 0xff, sizeof emulated_pool);
    warps.assign(size / 32, Meeting());
    all = users = Meeting();
    stages.clear();
    for (Fiber &fiber : fibers) {
      fiber.stack.resize(STACK);
      fiber.done = false;
      fiber.pending.clear(), fiber.groups.clear();
      getcontext(&fiber.context);
      fiber.context.uc_stack.ss_sp = fiber.stack.data();
      fiber.context.uc_stack.ss_size = STACK;
      fiber.context.uc_link = nullptr;
      makecontext(&fiber.context, start, 0);
    }
    for (int running = size; running > 0;)
      for (int n = 0; n < size; n++) {
        current = backwards ? size - 1 - n : n;
        if (fibers[current].done) continue;
        swapcontext(&home, &fibers[current].context);
        running -= fibers[current].done;
      }
  }
  return faults;
}
