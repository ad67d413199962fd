INLINE void both_0_fill(const u16 *__restrict__ b0_X512bf16, const u16 *__restrict__ b1_W0, u16 *__restrict__ b2_O0, const i64 *__restrict__ dims, Filler<6, 8192, 2> &filler, const int first, const int last) {
  for (int row = first; row < last; row += 8) {
    const u32 bytes = least(8, last - row) * 1024;
    u8 *const to = filler.claim(1 * bytes);
    filler.copy(to, b1_W0 + (i64)row * 512, bytes);
    filler.turn.next();
  }
}
INLINE void both_0_fetch(const u16 *__restrict__ b0_X512bf16, const u16 *__restrict__ b1_W0, u16 *__restrict__ b2_O0, const i64 *__restrict__ dims, u32 constant) {
  for (int t = 0; t < 1; t++) {
    const int n = (t * 256 + (int)threadIdx.x) * 8;
    if (n < 512) {
      const int x_k_1 = n;
      if (constant >> 0 & 1) fetch_early(b0_X512bf16 + 0 * 512 + x_k_1);
    }
  }
}
INLINE void both_0_use(const u16 *__restrict__ b0_X512bf16, const u16 *__restrict__ b1_W0, u16 *__restrict__ b2_O0, const i64 *__restrict__ dims, Turn<6> &turn, u8 *stages, u64 *full, u64 *empty, float *parts, float *results, const int first, const int last) {
  float x0[8] = {};
  #pragma unroll
  for (int t = 0; t < 1; t++) {
    const int n = (t * 256 + (int)threadIdx.x) * 8;
    if (n < 512) {
      const int x_k_2 = n;
      const auto w3 = wide_load((const uint4 *)(b0_X512bf16 + 0 * 512 + x_k_2));
      const float v4 = from_bf16((u16)(w3.w[0] >> 0));
      const float v5 = from_bf16((u16)(w3.w[0] >> 16));
      const float v6 = from_bf16((u16)(w3.w[1] >> 0));
      const float v7 = from_bf16((u16)(w3.w[1] >> 16));
      const float v8 = from_bf16((u16)(w3.w[2] >> 0));
      const float v9 = from_bf16((u16)(w3.w[2] >> 16));
      const float v10 = from_bf16((u16)(w3.w[3] >> 0));
      const float v11 = from_bf16((u16)(w3.w[3] >> 16));
      x0[t * 8 + 0] = v4;
      x0[t * 8 + 1] = v5;
      x0[t * 8 + 2] = v6;
      x0[t * 8 + 3] = v7;
      x0[t * 8 + 4] = v8;
      x0[t * 8 + 5] = v9;
      x0[t * 8 + 6] = v10;
      x0[t * 8 + 7] = v11;
    }
  }
  for (int row = first; row < last; row += 8) {
    stage_await(full + turn.slot, turn.lap);
    const u8 *const stage = stages + turn.slot * 8192;
    float v[8] = {};
    #pragma unroll
    for (int r = 0; r < 8; r++) {
      #pragma unroll
      for (int t = 0; t < 1; t++) {
        const int n = (t * 256 + (int)threadIdx.x) * 8;
        if (n < 512) {
          const int x_k_12 = n;
          const auto w13 = wide_load((const uint4 *)(stage + (0 + r) * 1024 + n * 2));
          const float v14 = from_bf16((u16)(w13.w[0] >> 0));
          const float v15 = from_bf16((u16)(w13.w[0] >> 16));
          const float v16 = from_bf16((u16)(w13.w[1] >> 0));
          const float v17 = from_bf16((u16)(w13.w[1] >> 16));
          const float v18 = from_bf16((u16)(w13.w[2] >> 0));
          const float v19 = from_bf16((u16)(w13.w[2] >> 16));
          const float v20 = from_bf16((u16)(w13.w[3] >> 0));
          const float v21 = from_bf16((u16)(w13.w[3] >> 16));
          v[r * 1 + 0] = fma_f32(x0[t * 8 + 0], v14, v[r * 1 + 0]);
          v[r * 1 + 0] = fma_f32(x0[t * 8 + 1], v15, v[r * 1 + 0]);
          v[r * 1 + 0] = fma_f32(x0[t * 8 + 2], v16, v[r * 1 + 0]);
          v[r * 1 + 0] = fma_f32(x0[t * 8 + 3], v17, v[r * 1 + 0]);
          v[r * 1 + 0] = fma_f32(x0[t * 8 + 4], v18, v[r * 1 + 0]);
          v[r * 1 + 0] = fma_f32(x0[t * 8 + 5], v19, v[r * 1 + 0]);
          v[r * 1 + 0] = fma_f32(x0[t * 8 + 6], v20, v[r * 1 + 0]);
          v[r * 1 + 0] = fma_f32(x0[t * 8 + 7], v21, v[r * 1 + 0]);
        }
      }
    }
    stage_release(empty + turn.slot);
    turn.next();
    const float total = spread_sums<8>(v);
    const int place = threadIdx.x % 32 / 4;
    if (row + place / 1 < last && threadIdx.x % 4 == 0) results[((row - first) * 1 + place) * 8 + threadIdx.x / 32] = total;
  }
  users_wait<256>();
  for (int k = threadIdx.x; k < last - first; k += 256) {
    const int row23 = first + k;
    const int x_n_22 = row23;
    const float v24 = round_bf16(total_of<8>(results + (k * 1 + 0) * 8));
    *(b2_O0 + 0 * 300 + x_n_22) = held_bf16(v24);
  }
  users_wait<256>();
}
INLINE void both_1_fill(const u16 *__restrict__ b0_X512bf16, const u16 *__restrict__ b3_W1, u16 *__restrict__ b4_O1, const i64 *__restrict__ dims, Filler<6, 8192, 2> &filler, const int first, const int last) {
  for (int row = first; row < last; row += 8) {
    const u32 bytes = least(8, last - row) * 1024;
    u8 *const to = filler.claim(1 * bytes);
    filler.copy(to, b3_W1 + (i64)row * 512, bytes);
    filler.turn.next();
  }
}
INLINE void both_1_fetch(const u16 *__restrict__ b0_X512bf16, const u16 *__restrict__ b3_W1, u16 *__restrict__ b4_O1, const i64 *__restrict__ dims, u32 constant) {
  for (int t = 0; t < 1; t++) {
    const int n = (t * 256 + (int)threadIdx.x) * 8;
    if (n < 512) {
      const int x_k_1 = n;
      if (constant >> 0 & 1) fetch_early(b0_X512bf16 + 0 * 512 + x_k_1);
    }
  }
}
INLINE void both_1_use(const u16 *__restrict__ b0_X512bf16, const u16 *__restrict__ b3_W1, u16 *__restrict__ b4_O1, const i64 *__restrict__ dims, Turn<6> &turn, u8 *stages, u64 *full, u64 *empty, float *parts, float *results, const int first, const int last) {
  float x0[8] = {};
  #pragma unroll
  for (int t = 0; t < 1; t++) {
    const int n = (t * 256 + (int)threadIdx.x) * 8;
    if (n < 512) {
      const int x_k_2 = n;
      const auto w3 = wide_load((const uint4 *)(b0_X512bf16 + 0 * 512 + x_k_2));
      const float v4 = from_bf16((u16)(w3.w[0] >> 0));
      const float v5 = from_bf16((u16)(w3.w[0] >> 16));
      const float v6 = from_bf16((u16)(w3.w[1] >> 0));
      const float v7 = from_bf16((u16)(w3.w[1] >> 16));
      const float v8 = from_bf16((u16)(w3.w[2] >> 0));
      const float v9 = from_bf16((u16)(w3.w[2] >> 16));
      const float v10 = from_bf16((u16)(w3.w[3] >> 0));
      const float v11 = from_bf16((u16)(w3.w[3] >> 16));
      x0[t * 8 + 0] = v4;
      x0[t * 8 + 1] = v5;
      x0[t * 8 + 2] = v6;
      x0[t * 8 + 3] = v7;
      x0[t * 8 + 4] = v8;
      x0[t * 8 + 5] = v9;
      x0[t * 8 + 6] = v10;
      x0[t * 8 + 7] = v11;
    }
  }
  for (int row = first; row < last; row += 8) {
    stage_await(full + turn.slot, turn.lap);
    const u8 *const stage = stages + turn.slot * 8192;
    float v[8] = {};
    #pragma unroll
    for (int r = 0; r < 8; r++) {
      #pragma unroll
      for (int t = 0; t < 1; t++) {
        const int n = (t * 256 + (int)threadIdx.x) * 8;
        if (n < 512) {
          const int x_k_12 = n;
          const auto w13 = wide_load((const uint4 *)(stage + (0 + r) * 1024 + n * 2));
          const float v14 = from_bf16((u16)(w13.w[0] >> 0));
          const float v15 = from_bf16((u16)(w13.w[0] >> 16));
          const float v16 = from_bf16((u16)(w13.w[1] >> 0));
          const float v17 = from_bf16((u16)(w13.w[1] >> 16));
          const float v18 = from_bf16((u16)(w13.w[2] >> 0));
          const float v19 = from_bf16((u16)(w13.w[2] >> 16));
          const float v20 = from_bf16((u16)(w13.w[3] >> 0));
          const float v21 = from_bf16((u16)(w13.w[3] >> 16));
          v[r * 1 + 0] = fma_f32(x0[t * 8 + 0], v14, v[r * 1 + 0]);
          v[r * 1 + 0] = fma_f32(x0[t * 8 + 1], v15, v[r * 1 + 0]);
          v[r * 1 + 0] = fma_f32(x0[t * 8 + 2], v16, v[r * 1 + 0]);
          v[r * 1 + 0] = fma_f32(x0[t * 8 + 3], v17, v[r * 1 + 0]);
          v[r * 1 + 0] = fma_f32(x0[t * 8 + 4], v18, v[r * 1 + 0]);
          v[r * 1 + 0] = fma_f32(x0[t * 8 + 5], v19, v[r * 1 + 0]);
          v[r * 1 + 0] = fma_f32(x0[t * 8 + 6], v20, v[r * 1 + 0]);
          v[r * 1 + 0] = fma_f32(x0[t * 8 + 7], v21, v[r * 1 + 0]);
        }
      }
    }
    stage_release(empty + turn.slot);
    turn.next();
    const float total = spread_sums<8>(v);
    const int place = threadIdx.x % 32 / 4;
    if (row + place / 1 < last && threadIdx.x % 4 == 0) results[((row - first) * 1 + place) * 8 + threadIdx.x / 32] = total;
  }
  users_wait<256>();
  for (int k = threadIdx.x; k < last - first; k += 256) {
    const int row23 = first + k;
    const int x_n_22 = row23;
    const float v24 = round_bf16(total_of<8>(results + (k * 1 + 0) * 8));
    *(b4_O1 + 0 * 33 + x_n_22) = held_bf16(v24);
  }
  users_wait<256>();
}
INLINE void both_fill(const u16 *__restrict__ b0_X512bf16, const u16 *__restrict__ b1_W0, u16 *__restrict__ b2_O0, const u16 *__restrict__ b3_W1, u16 *__restrict__ b4_O1, const i64 *__restrict__ dims, u8 *stages, u64 *full, u64 *empty) {
  Filler<6, 8192, 2> filler(stages, full, empty);
  for (int cell = blockIdx.x; cell < 132; cell += gridDim.x) {
    const int from = (int)((i64)cell * 333 / 132);
    const int to = (int)((i64)(cell + 1) * 333 / 132);
    {
      const int first = from > 0 ? from - 0 : 0;
      const int last = least(to - 0, 300);
      if (first < last) both_0_fill(b0_X512bf16, b1_W0, b2_O0, dims + 0, filler, first, last);
    }
    {
      const int first = from > 300 ? from - 300 : 0;
      const int last = least(to - 300, 33);
      if (first < last) both_1_fill(b0_X512bf16, b3_W1, b4_O1, dims + 0, filler, first, last);
    }
  }
}
INLINE void both_fetch(const u16 *__restrict__ b0_X512bf16, const u16 *__restrict__ b1_W0, u16 *__restrict__ b2_O0, const u16 *__restrict__ b3_W1, u16 *__restrict__ b4_O1, const i64 *__restrict__ dims, u32 constant) {
  for (int cell = blockIdx.x; cell < 132; cell += gridDim.x) {
    const int from = (int)((i64)cell * 333 / 132);
    const int to = (int)((i64)(cell + 1) * 333 / 132);
    {
      const int first = from > 0 ? from - 0 : 0;
      const int last = least(to - 0, 300);
      if (first < last) both_0_fetch(b0_X512bf16, b1_W0, b2_O0, dims + 0, constant);
    }
    {
      const int first = from > 300 ? from - 300 : 0;
      const int last = least(to - 300, 33);
      if (first < last) both_1_fetch(b0_X512bf16, b3_W1, b4_O1, dims + 0, constant);
    }
  }
}
INLINE void both_use(const u16 *__restrict__ b0_X512bf16, const u16 *__restrict__ b1_W0, u16 *__restrict__ b2_O0, const u16 *__restrict__ b3_W1, u16 *__restrict__ b4_O1, const i64 *__restrict__ dims, u8 *stages, u64 *full, u64 *empty, float *parts, float *results) {
  Turn<6> turn;
  for (int cell = blockIdx.x; cell < 132; cell += gridDim.x) {
    const int from = (int)((i64)cell * 333 / 132);
    const int to = (int)((i64)(cell + 1) * 333 / 132);
    {
      const int first = from > 0 ? from - 0 : 0;
      const int last = least(to - 0, 300);
      if (first < last) both_0_use(b0_X512bf16, b1_W0, b2_O0, dims + 0, turn, stages, full, empty, parts, results, first, last);
    }
    {
      const int first = from > 300 ? from - 300 : 0;
      const int last = least(to - 300, 33);
      if (first < last) both_1_use(b0_X512bf16, b3_W1, b4_O1, dims + 0, turn, stages, full, empty, parts, results, first, last);
    }
  }
}
extern "C" __global__ void __launch_bounds__(288) both(const u16 *__restrict__ b0_X512bf16, const u16 *__restrict__ b1_W0, u16 *__restrict__ b2_O0, const u16 *__restrict__ b3_W1, u16 *__restrict__ b4_O1, const i64 *__restrict__ dims, u32 constant) {
  extern __shared__ __align__(128) u8 pool[];
  u64 *const full = (u64 *)pool, *const empty = full + 6;
  float *const parts = (float *)(pool + 256);
  u8 *const stages = pool + 1024;
  float *const results = (float *)(stages + 49152);
  if (threadIdx.x == 256) {
    for (int k = 0; k < 6; k++) stage_open(full + k, 1), stage_open(empty + k, 8);
    before_copies();
  }
  __syncthreads();
  let_next_start();
  if (threadIdx.x >= 256) {
    if (threadIdx.x > 256) return;
    if ((constant & 10) != 10) {
      wait_for_previous();
      before_copies();
    }
    both_fill(b0_X512bf16, b1_W0, b2_O0, b3_W1, b4_O1, dims, stages, full, empty);
    return;
  }
  both_fetch(b0_X512bf16, b1_W0, b2_O0, b3_W1, b4_O1, dims, constant);
  wait_for_previous();
  both_use(settled(b0_X512bf16), settled(b1_W0), settled(b2_O0), settled(b3_W1), settled(b4_O1), dims, stages, full, empty, parts, results);
}
