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
#include <memory>
#include <ucontext.h>
#include <vector>

namespace {
const size_t STACK = 256 << 10;
const int PATIENCE = 16;

struct Copy { unsigned to; const void *from; int size, bytes; };
struct Sending { void *to; const void *from; unsigned bytes; };
struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  bool done;
  std::vector<Copy> pending;               /* copies of the group at hand */
  std::vector<std::vector<Copy>> groups;   /* groups on their way, the oldest first */
  std::vector<std::vector<Sending>> sent;  /* groups of copies out of shared memory, the last one open */
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
std::map<int, Meeting> named;
std::map<void *, Stage> stages;
ucontext_t home;
int current, threads;
bool early, waits;
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
extern "C" int emulated_size() { return threads; }

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
/* Wait for the first `count` threads of the block, or for all. */
void emulated_barrier(int count) {
  if (++all.came == (count ? count : threads)) {
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

/* Come to the barrier of a number, which opens when `count` threads have; wait for that or go on. */
void emulated_named(int number, int count, bool waits) {
  Meeting &barrier = named[number];
  const long before = barrier.times;
  if (++barrier.came == count) barrier.came = 0, barrier.times++;
  while (waits && barrier.times == before) yield();
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
void emulated_fill(void *to, const void *from, unsigned size, unsigned bytes, void *state) {
  const Copy copy = {(unsigned)((char *)to - emulated_pool), from, (int)size, (int)bytes};
  if (!early) return stages.at(state).pending.push_back(copy);
  carry_out(copy);
  emulated_arrive(state, 0, -(long)size);
}
void emulated_await(void *state, unsigned lap) {
  for (;;) {
    std::vector<Copy> pending;
    pending.swap(stages.at(state).pending);
    for (const Copy &copy : pending) {
      carry_out(copy);
      emulated_arrive(state, 0, -(long)copy.size);
    }
    if (stages.at(state).lap != lap) return;
    yield();
  }
}

/* Copies out of shared memory, in groups: made when they are asked for, or not before they are waited for. */
static void deliver(const Sending &one) {
  for (const Buffer &buffer : buffers) {
    const long long place = (const char *)one.to - buffer.from;
    if (place < 0 || place + one.bytes > buffer.size) continue;
    memcpy(one.to, one.from, one.bytes);
    return;
  }
  faults += one.bytes > 0;
}
void emulated_send(void *to, const void *from, unsigned bytes) {
  auto &sent = fibers[current].sent;
  if (early) return deliver({to, from, bytes});
  if (sent.empty()) sent.emplace_back();
  sent.back().push_back({to, from, bytes});
}
void emulated_sent() { fibers[current].sent.emplace_back(); }
void emulated_finish(int left) {
  auto &sent = fibers[current].sent;
  while ((int)sent.size() > left + 1) {
    for (const Sending &one : sent.front()) deliver(one);
    sent.erase(sent.begin());
  }
}

/* Let the other threads of the block have their turn, or, once these have come as far as they can, other blocks. */
void emulated_turn() { yield(); }
void emulated_elsewhere() {
  waits = true;
  yield();
}

/* What is put aside of a block while others run. */
struct Block {
  std::vector<Fiber> fibers;
  std::vector<Meeting> warps;
  Meeting all, users;
  std::map<int, Meeting> named;
  std::map<void *, Stage> stages;
  std::vector<char> pool;
  int left = 0;
  bool begun = false;
};

static void exchange(Block &block) {
  fibers.swap(block.fibers);
  warps.swap(block.warps);
  std::swap(all, block.all), std::swap(users, block.users);
  named.swap(block.named), stages.swap(block.stages);
}

/* Fibers of blocks that have ended, for those that begin. */
std::vector<Fiber> spare;

static void prepare(Block &block, int size) {
  block.fibers.swap(spare);
  block.fibers.resize(size);
  block.warps.assign(size / 32, Meeting());
  block.pool.assign(sizeof emulated_pool, (char)0xff);
  block.left = size, block.begun = true;
  for (Fiber &fiber : block.fibers) {
    if (!fiber.stack) fiber.stack.reset(new char[STACK]);
    fiber.done = false;
    fiber.pending.clear(), fiber.groups.clear(), fiber.sent.clear();
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = STACK;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, start, 0);
  }
}

/* Run a block until it has ended, or until one of its threads waits for other blocks and the others have had
 * `PATIENCE` turns since. */
static void advance(Block &block, int size, bool backwards) {
  exchange(block);
  memcpy(emulated_pool, block.pool.data(), sizeof emulated_pool);
  waits = false;
  for (int patience = PATIENCE; block.left > 0 && patience > 0; patience -= waits)
    for (int n = 0; n < size; n++) {
      current = backwards ? size - 1 - n : n;
      if (fibers[current].done) continue;
      swapcontext(&home, &fibers[current].context);
      block.left -= fibers[current].done;
    }
  memcpy(block.pool.data(), emulated_pool, sizeof emulated_pool);
  exchange(block);
}

/* Run all blocks of a kernel; `backwards` the threads of a block, and the blocks, take turns from the last to
 * the first.  Each block runs until it waits for others.  Returns how many faults a GPU would have found. */
extern "C" int emulated_launch(void (*kernel)(void **, const long long *), void **given, const long long *sizes,
                               int count, const long long *values, int many, int size, int copies_early,
                               int backwards) {
  buffers.clear(), faults = 0;
  for (int n = 0; n < count; n++) buffers.push_back({(const char *)given[n], sizes[n]});
  body = kernel, arguments = given, dims = values, threads = size, early = copies_early;
  emulated_grid.x = many;
  std::vector<Block> blocks(many);
  for (int running = many; running > 0;) {
    running = 0;
    for (int n = 0; n < many; n++) {
      const int number = backwards ? many - 1 - n : n;
      Block &block = blocks[number];
      emulated_block.x = number;
      if (!block.begun) prepare(block, size);
      if (block.left == 0) continue;
      advance(block, size, backwards);
      if (block.left == 0) block.fibers.swap(spare), std::vector<char>().swap(block.pool);
      running += block.left > 0;
    }
  }
  return faults;
}
