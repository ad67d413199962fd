/* ---- memory of a cell ----
 *
 * Cells take memory and give it back in the opposite order.  A thread keeps as much as its largest cell took
 * until it ends, so that later calls take none from the system.
 */
#include <pthread.h>

typedef struct {
  char *base;
  size_t room, used, most;
} Memory;

static pthread_key_t memory_key;
static pthread_once_t memory_once = PTHREAD_ONCE_INIT;

static void end_memory(void *kept) {
  free(((Memory *)kept)->base);
  free(kept);
}

static void begin_memories(void) {
  if (pthread_key_create(&memory_key, end_memory)) abort();
}

/* That of this thread. */
static Memory *own_memory(void) {
  pthread_once(&memory_once, begin_memories);
  Memory *m = pthread_getspecific(memory_key);
  if (!m) {
    m = calloc(1, sizeof *m);
    if (!m || pthread_setspecific(memory_key, m)) abort();
  }
  return m;
}

static size_t whole_lines(size_t size) { return (size + 63) & ~(size_t)63; }

/* What the thread has no room for yet comes from the system for once. */
static __attribute__((unused)) void *scratch(size_t size) {
  Memory *m = own_memory();
  m->used += whole_lines(size);
  if (m->used > m->most) m->most = m->used;
  void *p = m->used <= m->room ? m->base + (m->used - whole_lines(size)) : malloc(size);
  if (!p) abort();
  return p;
}

/* Room grows when nothing lies in it. */
static __attribute__((unused)) void release(void *p, size_t size) {
  Memory *m = own_memory();
  if (m->used > m->room) free(p);
  m->used -= whole_lines(size);
  if (m->used || m->most <= m->room) return;
  free(m->base);
  m->base = malloc(m->most);
  m->room = m->base ? m->most : 0;
}
