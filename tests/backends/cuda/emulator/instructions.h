/* What helpers of kernels do by instructions of a GPU, on a CPU: in the place of those helpers. */
static inline void let_next_start() {}
static inline void wait_for_previous() {}
template <typename T> static inline T *settled(T *p) { return p; }

static inline u16 to_bf16(float x) {
  const unsigned bits = __float_as_uint(x);
  return x != x ? 0x7fc0 : (u16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
static inline float from_f16(u16 raw) { return (float)same_bits<_Float16>(raw); }
static inline u16 to_f16(float x) { return x != x ? 0x7e00 : same_bits<u16>((_Float16)x); }
static inline float larger_of(float a, float b) { return a != a || a > b ? a : b; }
static inline float most(float a, float b) { return larger_of(a, b); }
static inline float larger(float a, float b) { return larger_of(a, b); }
static inline float power_of_two(float x) {
  const float y = exp2f(x);
  return y < 1.17549435e-38f ? 0.0f : y;
}
static inline u64 read_to_stay() { return 1; }
static inline u64 read_as_usual() { return 0; }
template <typename T> static inline auto wide_policed(const T *p, u64) { return wide_load(p); }
template <bool BF16> static inline u32 pack(float low, float high) {
  return BF16 ? to_bf16(low) | (u32)to_bf16(high) << 16 : to_f16(low) | (u32)to_f16(high) << 16;
}

template <int SIZE> static inline void async_copy(u32 to, const void *from, int bytes) {
  emulated_copy(to, from, SIZE, bytes);
}
static inline void async_commit() { emulated_commit(); }
template <int LEFT> static inline void async_wait() { emulated_wait(LEFT); }
static inline void store_piece(u32 to, const u32 (&words)[4]) { __builtin_memcpy(emulated_pool + to, words, 16); }

struct Matrices { u32 from; bool across; u32 (*r)[4]; };
template <bool ACROSS> static inline void load_matrices(u32 (&r)[4], u32 from) {
  Matrices mine = {from, ACROSS, &r};
  if (from % 16) emulated_fault();
  emulated_meet(&mine, [](void **all) {
    for (int lane = 0; lane < 32; lane++)
      for (int n = 0; n < 4; n++) {
        auto *const to = (Matrices *)all[lane];
        u16 pair[2];
        for (int k = 0; k < 2; k++) {
          const int line = to->across ? lane % 4 * 2 + k : lane / 4, place = to->across ? lane / 4 : lane % 4 * 2 + k;
          const u32 begin = ((Matrices *)all[n * 8 + line])->from;
          __builtin_memcpy(pair + k, emulated_pool + begin + place * 2, 2);
        }
        (*to->r)[n] = pair[0] | (u32)pair[1] << 16;
      }
  });
}

struct Factors { float *c[4]; const u32 *a; u32 b[2]; };
template <bool BF16> static inline float half_of(u32 word, int k) {
  const u16 raw = (u16)(word >> 16 * k);
  return BF16 ? __uint_as_float((u32)raw << 16) : from_f16(raw);
}
template <bool BF16>
static inline void multiply_16x8(float &c0, float &c1, float &c2, float &c3, const u32 (&a)[4], u32 b0, u32 b1) {
  Factors mine = {{&c0, &c1, &c2, &c3}, a, {b0, b1}};
  emulated_meet(&mine, [](void **all) {
    float rows[16][16], columns[16][8];
    for (int lane = 0; lane < 32; lane++) {
      auto *const from = (Factors *)all[lane];
      const int high = lane / 4, low = lane % 4 * 2;
      for (int k = 0; k < 2; k++) {
        for (int n = 0; n < 4; n++) rows[high + n % 2 * 8][low + n / 2 * 8 + k] = half_of<BF16>(from->a[n], k);
        for (int n = 0; n < 2; n++) columns[low + n * 8 + k][high] = half_of<BF16>(from->b[n], k);
      }
    }
    for (int lane = 0; lane < 32; lane++)
      for (int n = 0; n < 4; n++) {
        float sum = *((Factors *)all[lane])->c[n];
        for (int k = 0; k < 16; k++)
          sum += rows[lane / 4 + n / 2 * 8][k] * columns[k][lane % 4 * 2 + n % 2];
        *((Factors *)all[lane])->c[n] = sum;
      }
  });
}

static inline u32 to_tf32(float x) {
  const u32 bits = __float_as_uint(x);
  if ((bits & 0x7f800000) == 0x7f800000) return x != x ? 0x7fc00000 : bits;
  return (bits + 0x1000) & 0xffffe000;
}
static inline float load_float(u32 from) {
  float x;
  if (from % 4) emulated_fault();
  __builtin_memcpy(&x, emulated_pool + from, 4);
  return x;
}
/* Factors of which more than TF32 is left are a fault: devices leave bits out, each in its own way. */
static inline float tf32_of(u32 word) {
  if (word & 0x1fff) emulated_fault();
  return __uint_as_float(word);
}
static inline void multiply_16x8_tf32(float &c0, float &c1, float &c2, float &c3, const u32 (&a)[4], u32 b0, u32 b1) {
  Factors mine = {{&c0, &c1, &c2, &c3}, a, {b0, b1}};
  emulated_meet(&mine, [](void **all) {
    float rows[16][8], columns[8][8];
    for (int lane = 0; lane < 32; lane++) {
      auto *const from = (Factors *)all[lane];
      for (int n = 0; n < 4; n++) rows[lane / 4 + n % 2 * 8][lane % 4 + n / 2 * 4] = tf32_of(from->a[n]);
      for (int n = 0; n < 2; n++) columns[lane % 4 + n * 4][lane / 4] = tf32_of(from->b[n]);
    }
    for (int lane = 0; lane < 32; lane++)
      for (int n = 0; n < 4; n++) {
        float sum = *((Factors *)all[lane])->c[n];
        for (int k = 0; k < 8; k++) sum += rows[lane / 4 + n / 2 * 8][k] * columns[k][lane % 4 * 2 + n % 2];
        *((Factors *)all[lane])->c[n] = sum;
      }
  });
}

/* What walks do. */
static inline unsigned pool_place(const void *p) { return (unsigned)((const char *)p - emulated_pool); }
static inline void copy_piece(void *to, const void *from, u32 bytes) {
  emulated_copy(pool_place(to), from, 16, bytes);
}
static inline void close_lot() { emulated_commit(); }
template <int COUNT> static inline void await_lots() {
  emulated_wait(COUNT);
  __syncwarp();
}
static inline void read_tiles(u32 (&tiles)[4], const void *row) { load_matrices<false>(tiles, pool_place(row)); }
static inline void read_turned(u32 (&tiles)[4], const void *row) { load_matrices<true>(tiles, pool_place(row)); }
static inline void multiply_tiles(float (&sums)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  const u32 a[4] = {a0, a1, a2, a3};
  multiply_16x8<true>(sums[0], sums[1], sums[2], sums[3], a, b0, b1);
}
static inline bool comes_last(u32 *arrived, u32 count) {
  static bool last;
  __syncthreads();
  if (threadIdx.x == 0) {
    last = ++*arrived == count;
    if (last) *arrived = 0;
  }
  __syncthreads();
  return last;
}

/* What digits do. */
struct Bytes { int *c; u32 a[4], b[2]; };
static inline void multiply_bytes(int (&c)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  Bytes mine = {c, {a0, a1, a2, a3}, {b0, b1}};
  emulated_meet(&mine, [](void **all) {
    int rows[16][32], columns[32][8];
    for (int lane = 0; lane < 32; lane++) {
      auto *const from = (Bytes *)all[lane];
      for (int k = 0; k < 4; k++) {
        for (int n = 0; n < 4; n++)
          rows[lane / 4 + n % 2 * 8][lane % 4 * 4 + n / 2 * 16 + k] = (u8)(from->a[n] >> 8 * k);
        for (int n = 0; n < 2; n++) columns[lane % 4 * 4 + n * 16 + k][lane / 4] = (i8)(from->b[n] >> 8 * k);
      }
    }
    for (int lane = 0; lane < 32; lane++)
      for (int n = 0; n < 4; n++) {
        int sum = 0;
        for (int k = 0; k < 32; k++) sum += rows[lane / 4 + n / 2 * 8][k] * columns[k][lane % 4 * 2 + n % 2];
        ((Bytes *)all[lane])->c[n] += sum;
      }
  });
}

/* What rings do, and blocks whose threads share lines. */
static inline void stage_open(u64 *state, u32 arrivals) { emulated_open(state, arrivals); }
static inline void stage_announce(u64 *state, u32 bytes) { emulated_arrive(state, 1, bytes); }
static inline void stage_release(u64 *state) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) emulated_arrive(state, 1, 0);
}
static inline void stage_await(u64 *state, u32 lap) { emulated_await(state, lap); }
static inline void stage_copy(void *to, const void *from, u32 bytes, u64 *state, u64) {
  emulated_fill(to, from, bytes, bytes, state);
}
static inline void before_copies() {}
static inline u64 read_once() { return 0; }
static inline void fetch_early(const void *) {}
template <int THREADS> static inline void threads_wait() { emulated_users(THREADS); }

template <int THREADS> static inline void turn_wait() { emulated_barrier(THREADS); }
/* Blocks that wait for each other: the others go on meanwhile. */
static inline u32 add_release(u32 *p, u32 n) {
  const u32 before = *p;
  *p += n;
  return before;
}
static inline u32 load_acquire(const u32 *p) {
  emulated_elsewhere();
  return *(const volatile u32 *)p;
}
static inline void tell_block(u32 *p, u32 x) { *p = x; }
static inline u32 heard_in_block(const u32 *p) {
  emulated_turn();
  return *(const volatile u32 *)p;
}

/* What groups of warps do: their stages, and products, which are done when they are issued. */
static inline void *signal_state(u32 signal) { return emulated_pool + signal; }
static inline void signal_open(u32 signal, u32 arrivals) { emulated_open(signal_state(signal), arrivals); }
static inline void signal_give(u32 signal) { emulated_arrive(signal_state(signal), 1, 0); }
static inline void signal_await(u32 signal, u32 lap) { emulated_await(signal_state(signal), lap); }
template <int COUNT> static inline void take_registers() {}
template <int COUNT> static inline void give_registers() {}
static inline void products_begin() {}
static inline void products_end() {}
template <int LEFT> static inline void products_await() { __syncwarp(); }
template <int COLUMNS> static inline void settle(float (&)[2][COLUMNS]) {}
template <int COUNT> static inline void settle(u32 (&)[COUNT][1][4]) {}
static inline void tell_cleared(u32 full) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) signal_give(full);
}
static inline void signal_expect(u32 signal, u32 bytes) { emulated_arrive(signal_state(signal), 1, bytes); }
template <int THREADS> static inline void order_await(int group) { emulated_named(group + 1, THREADS, true); }
template <int THREADS> static inline void order_pass(int group) { emulated_named(group + 1, THREADS, false); }

/* A buffer as the copy engine sees it, in the place of a map of the driver. */
struct Seen { const char *from; long long width, lines, line_step, planes, plane_step, height, open, size; };
alignas(16) static const unsigned char not_a_number[16] = {255, 255, 255, 255, 255, 255, 255, 255,
                                                           255, 255, 255, 255, 255, 255, 255, 255};
/* Calls `work` with each piece of 16 bytes of a box: its place in shared memory, in the buffer, and its bytes. */
template <typename Map, typename F>
static inline void each_piece(u32 area, const Map *map, int element, int line, int plane, const F &work) {
  Seen seen;
  __builtin_memcpy(&seen, map, sizeof seen);
  if (area % 1024) emulated_fault();
  for (int n = 0; n < seen.height; n++)
    for (int piece = 0; piece < 8; piece++) {
      const int first = element + piece * (int)(16 / seen.size), at = line + n;
      const bool inside = at >= 0 && at < seen.lines && plane >= 0 && plane < seen.planes;
      const long long left = inside ? (seen.width - first) * seen.size : 0;
      const u32 place = area + n * 128;
      char *const there = (char *)seen.from + (plane * seen.plane_step + at * seen.line_step + first) * seen.size;
      work(emulated_pool + place + ((piece ^ place >> 7 & 7) << 4), there, (u32)(left < 0 ? 0 : left < 16 ? left : 16),
           seen.open && at >= seen.lines);
    }
}
template <typename Map> static inline void fetch_map(const Map *) {}
template <typename Map>
static inline void fetch_box(u32 to, const Map *map, u32 signal, int element, int line, int plane) {
  each_piece(to, map, element, line, plane, [&](char *place, const char *from, u32 bytes, bool unknown) {
    emulated_fill(place, unknown ? (const char *)not_a_number : from, 16, unknown ? 16 : bytes, signal_state(signal));
  });
}
template <typename Map> static inline void send_box(u32 from, const Map *map, int element, int line, int plane) {
  each_piece(from, map, element, line, plane,
             [&](char *place, char *to, u32 bytes, bool) { emulated_send(to, place, bytes); });
}
static inline void sent_next() { emulated_sent(); }
template <int LEFT> static inline void sent_read() { emulated_finish(LEFT); }
static inline void sent_all() { emulated_finish(0); }
static inline void group_meet(int group) { emulated_named(group + 1, 128, true); }
static inline void read_one(u32 at, u32 &a) { __builtin_memcpy(&a, emulated_pool + at, 4); }
static inline void read_two(u32 at, u32 &a, u32 &b) {
  read_one(at, a);
  read_one(at + 4, b);
}
static inline void write_pair(u32 at, u32 a) { __builtin_memcpy(emulated_pool + at, &a, 4); }
static inline void write_pair(u32 at, u32 a, u32 b) {
  write_pair(at, a);
  write_pair(at + 4, b);
}

/* An element of a described tile: pieces of 16 bytes change places by the number of their line. */
template <bool BF16, bool ACROSS> static inline float tile_element(u32 tile, int outer, int k) {
  const u32 place = (tile & 0x3fff) << 4, apart = (tile >> 16 & 0x3fff) << 4;
  u32 at = place + (ACROSS ? outer / 64 * apart + k * 128 + outer % 64 * 2 : outer * 128 + k * 2);
  at ^= (at >> 7 & 7) << 4;
  u16 raw;
  __builtin_memcpy(&raw, emulated_pool + at, 2);
  return half_of<BF16>(raw, 0);
}
template <int COLUMNS, bool BF16, bool A_ACROSS, bool B_ACROSS>
static inline void group_multiply(float (&v)[2][COLUMNS / 4], u32 a, u32 b, int keep) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < COLUMNS / 4; j++) {
      const int row = warp * 16 + i * 8 + lane / 4, column = j / 2 * 8 + lane % 4 * 2 + j % 2;
      float sum = keep ? v[i][j] : 0;
      for (int k = 0; k < 16; k++)
        sum += tile_element<BF16, A_ACROSS>(a, row, k) * tile_element<BF16, B_ACROSS>(b, column, k);
      v[i][j] = sum;
    }
}

/* The same, the rows being in the registers of their warps. */
template <int COLUMNS, bool BF16, bool B_ACROSS>
static inline void group_multiply_computed(float (&v)[2][COLUMNS / 4], const u32 (&a)[4], u32 b, int keep) {
  struct Mine { float (*v)[COLUMNS / 4]; const u32 *a; u32 b; int keep; } mine = {v, a, b, keep};
  emulated_meet(&mine, [](void **all) {
    float rows[16][16];
    for (int lane = 0; lane < 32; lane++)
      for (int n = 0; n < 4; n++)
        for (int k = 0; k < 2; k++)
          rows[lane / 4 + n % 2 * 8][lane % 4 * 2 + n / 2 * 8 + k] = half_of<BF16>(((Mine *)all[lane])->a[n], k);
    for (int lane = 0; lane < 32; lane++) {
      auto *const to = (Mine *)all[lane];
      for (int i = 0; i < 2; i++)
        for (int j = 0; j < COLUMNS / 4; j++) {
          float sum = to->keep ? to->v[i][j] : 0;
          for (int k = 0; k < 16; k++)
            sum += rows[lane / 4 + i * 8][k] * tile_element<BF16, B_ACROSS>(to->b, j / 2 * 8 + lane % 4 * 2 + j % 2, k);
          to->v[i][j] = sum;
        }
    }
  });
}
