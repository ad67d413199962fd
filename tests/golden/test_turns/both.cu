INLINE u32 both_1_0_cells(const u16 *__restrict__ b2_y, const u16 *__restrict__ b5_W_5f_z, u16 *__restrict__ b6_z, const i64 *__restrict__ dims, const u32 before, u8 *const pool) {
  const int first1 = (blockIdx.x + gridDim.x - before % gridDim.x) % gridDim.x;
  if (first1 >= 136) return before + 136;
  #pragma unroll 1
  for (int cell = first1; cell < 136; cell += gridDim.x) {
    const int x_n_2 = cell;
    const int x_m_3 = 0;
    float a23 = 0.0f;
    float a24 = 0.0f;
    if (const int x_k_4 = (int)threadIdx.x * 8; x_k_4 < 48) {
      const auto w5 = wide_load((const uint4 *)(b2_y + x_m_3 * 48 + x_k_4));
      const float v6 = from_bf16((u16)(w5.w[0] >> 0));
      const float v7 = from_bf16((u16)(w5.w[0] >> 16));
      const float v8 = from_bf16((u16)(w5.w[1] >> 0));
      const float v9 = from_bf16((u16)(w5.w[1] >> 16));
      const float v10 = from_bf16((u16)(w5.w[2] >> 0));
      const float v11 = from_bf16((u16)(w5.w[2] >> 16));
      const float v12 = from_bf16((u16)(w5.w[3] >> 0));
      const float v13 = from_bf16((u16)(w5.w[3] >> 16));
      const auto w14 = wide_pass((const uint4 *)(b5_W_5f_z + x_n_2 * 48 + x_k_4));
      const float v15 = from_bf16((u16)(w14.w[0] >> 0));
      const float v16 = from_bf16((u16)(w14.w[0] >> 16));
      const float v17 = from_bf16((u16)(w14.w[1] >> 0));
      const float v18 = from_bf16((u16)(w14.w[1] >> 16));
      const float v19 = from_bf16((u16)(w14.w[2] >> 0));
      const float v20 = from_bf16((u16)(w14.w[2] >> 16));
      const float v21 = from_bf16((u16)(w14.w[3] >> 0));
      const float v22 = from_bf16((u16)(w14.w[3] >> 16));
      a23 = fma_f32(v6, v15, a23);
      a24 = fma_f32(v7, v16, a24);
      a23 = fma_f32(v8, v17, a23);
      a24 = fma_f32(v9, v18, a24);
      a23 = fma_f32(v10, v19, a23);
      a24 = fma_f32(v11, v20, a24);
      a23 = fma_f32(v12, v21, a23);
      a24 = fma_f32(v13, v22, a24);
    }
    const float v25 = round_bf16(block_sum_f32<128>(sum_f32(a23, a24)));
    if (threadIdx.x == 0) {
      *(b6_z + x_m_3 * 136 + x_n_2) = held_bf16(v25);
    }
  }
  return before + 136;
}
INLINE u32 both_1_1_cells(const u16 *__restrict__ b4_q, const u16 *__restrict__ b7_W_5f_s, u16 *__restrict__ b8_s, const i64 *__restrict__ dims, const u32 before, u8 *const pool) {
  const int first1 = (blockIdx.x + gridDim.x - before % gridDim.x) % gridDim.x;
  if (first1 >= 13) return before + 13;
  #pragma unroll 1
  for (int cell = first1; cell < 13; cell += gridDim.x) {
    const int x_n_2 = cell;
    const int x_m_3 = 0;
    float a23 = 0.0f;
    float a24 = 0.0f;
    if (const int x_k_4 = (int)threadIdx.x * 8; x_k_4 < 40) {
      const auto w5 = wide_load((const uint4 *)(b4_q + x_m_3 * 40 + x_k_4));
      const float v6 = from_bf16((u16)(w5.w[0] >> 0));
      const float v7 = from_bf16((u16)(w5.w[0] >> 16));
      const float v8 = from_bf16((u16)(w5.w[1] >> 0));
      const float v9 = from_bf16((u16)(w5.w[1] >> 16));
      const float v10 = from_bf16((u16)(w5.w[2] >> 0));
      const float v11 = from_bf16((u16)(w5.w[2] >> 16));
      const float v12 = from_bf16((u16)(w5.w[3] >> 0));
      const float v13 = from_bf16((u16)(w5.w[3] >> 16));
      const auto w14 = wide_pass((const uint4 *)(b7_W_5f_s + x_n_2 * 40 + x_k_4));
      const float v15 = from_bf16((u16)(w14.w[0] >> 0));
      const float v16 = from_bf16((u16)(w14.w[0] >> 16));
      const float v17 = from_bf16((u16)(w14.w[1] >> 0));
      const float v18 = from_bf16((u16)(w14.w[1] >> 16));
      const float v19 = from_bf16((u16)(w14.w[2] >> 0));
      const float v20 = from_bf16((u16)(w14.w[2] >> 16));
      const float v21 = from_bf16((u16)(w14.w[3] >> 0));
      const float v22 = from_bf16((u16)(w14.w[3] >> 16));
      a23 = fma_f32(v6, v15, a23);
      a24 = fma_f32(v7, v16, a24);
      a23 = fma_f32(v8, v17, a23);
      a24 = fma_f32(v9, v18, a24);
      a23 = fma_f32(v10, v19, a23);
      a24 = fma_f32(v11, v20, a24);
      a23 = fma_f32(v12, v21, a23);
      a24 = fma_f32(v13, v22, a24);
    }
    const float v25 = round_bf16(block_sum_f32<128>(sum_f32(a23, a24)));
    if (threadIdx.x == 0) {
      *(b8_s + x_m_3 * 13 + x_n_2) = held_bf16(v25);
    }
  }
  return before + 13;
}
INLINE u32 both_3_0_cells(const u16 *__restrict__ b8_s, const u16 *__restrict__ b13_W_5f_t, u16 *__restrict__ b14_t, const i64 *__restrict__ dims, const u32 before, u8 *const pool) {
  const int first1 = (blockIdx.x + gridDim.x - before % gridDim.x) % gridDim.x;
  if (first1 >= 7) return before + 7;
  #pragma unroll 1
  for (int cell = first1; cell < 7; cell += gridDim.x) {
    const int x_n_2 = cell;
    const int x_m_3 = 0;
    float a7 = 0.0f;
    if (const int x_k_4 = (int)threadIdx.x; x_k_4 < 13) {
      const float v5 = from_bf16(*(b8_s + x_m_3 * 13 + x_k_4));
      const float v6 = from_bf16(*(b13_W_5f_t + x_n_2 * 13 + x_k_4));
      a7 = fma_f32(v5, v6, a7);
    }
    const float v8 = round_bf16(block_sum_f32<256>(a7));
    if (threadIdx.x == 0) {
      *(b14_t + x_m_3 * 7 + x_n_2) = held_bf16(v8);
    }
  }
  return before + 7;
}
INLINE void both_0_0_fill(const u16 *__restrict__ b0_x, const u16 *__restrict__ b1_W_5f_y, u16 *__restrict__ b2_y, const i64 *__restrict__ dims, Filler<6, 8192, 2> &filler, const int first, const int last) {
  for (int row = first; row < last; row += 8) {
    const u32 bytes = least(8, last - row) * 1024;
    u8 *const to = filler.claim(1 * bytes);
    filler.copy(to, b1_W_5f_y + (i64)row * 512, bytes);
    filler.turn.next();
  }
}
INLINE void both_0_0_fetch(const u16 *__restrict__ b0_x, const u16 *__restrict__ b1_W_5f_y, u16 *__restrict__ b2_y, const i64 *__restrict__ dims, u32 constant) {
  for (int t = 0; t < 1; t++) {
    const int n = (t * 256 + (int)threadIdx.x) * 8;
    if (n < 512) {
      const int x_k_1 = n;
      if (constant >> 0 & 1) fetch_early(b0_x + 0 * 512 + x_k_1);
    }
  }
}
INLINE void both_0_0_use(const u16 *__restrict__ b0_x, const u16 *__restrict__ b1_W_5f_y, u16 *__restrict__ b2_y, const i64 *__restrict__ dims, Turn<6> &turn, u8 *stages, u64 *full, u64 *empty, float *parts, float *results, const int first, const int last) {
  float x0[8] = {};
  #pragma unroll
  for (int t = 0; t < 1; t++) {
    const int n = (t * 256 + (int)threadIdx.x) * 8;
    if (n < 512) {
      const int x_k_2 = n;
      const auto w3 = wide_load((const uint4 *)(b0_x + 0 * 512 + x_k_2));
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
    *(b2_y + 0 * 48 + x_n_22) = held_bf16(v24);
  }
  users_wait<256>();
}
INLINE void both_0_1_fill(const u16 *__restrict__ b0_x, const u16 *__restrict__ b3_W_5f_q, u16 *__restrict__ b4_q, const i64 *__restrict__ dims, Filler<6, 8192, 2> &filler, const int first, const int last) {
  for (int row = first; row < last; row += 8) {
    const u32 bytes = least(8, last - row) * 1024;
    u8 *const to = filler.claim(1 * bytes);
    filler.copy(to, b3_W_5f_q + (i64)row * 512, bytes);
    filler.turn.next();
  }
}
INLINE void both_0_1_fetch(const u16 *__restrict__ b0_x, const u16 *__restrict__ b3_W_5f_q, u16 *__restrict__ b4_q, const i64 *__restrict__ dims, u32 constant) {
  for (int t = 0; t < 1; t++) {
    const int n = (t * 256 + (int)threadIdx.x) * 8;
    if (n < 512) {
      const int x_k_1 = n;
      if (constant >> 0 & 1) fetch_early(b0_x + 0 * 512 + x_k_1);
    }
  }
}
INLINE void both_0_1_use(const u16 *__restrict__ b0_x, const u16 *__restrict__ b3_W_5f_q, u16 *__restrict__ b4_q, const i64 *__restrict__ dims, Turn<6> &turn, u8 *stages, u64 *full, u64 *empty, float *parts, float *results, const int first, const int last) {
  float x0[8] = {};
  #pragma unroll
  for (int t = 0; t < 1; t++) {
    const int n = (t * 256 + (int)threadIdx.x) * 8;
    if (n < 512) {
      const int x_k_2 = n;
      const auto w3 = wide_load((const uint4 *)(b0_x + 0 * 512 + x_k_2));
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
    *(b4_q + 0 * 40 + x_n_22) = held_bf16(v24);
  }
  users_wait<256>();
}
INLINE void both_0_fill(const u16 *__restrict__ b0_x, const u16 *__restrict__ b1_W_5f_y, u16 *__restrict__ b2_y, const u16 *__restrict__ b3_W_5f_q, u16 *__restrict__ b4_q, const i64 *__restrict__ dims, Filler<6, 8192, 2> &filler) {
  for (int cell = blockIdx.x; cell < 88; cell += gridDim.x) {
    const int from = (int)((i64)cell * 88 / 88);
    const int to = (int)((i64)(cell + 1) * 88 / 88);
    {
      const int first = from > 0 ? from - 0 : 0;
      const int last = least(to - 0, 48);
      if (first < last) both_0_0_fill(b0_x, b1_W_5f_y, b2_y, dims + 0, filler, first, last);
    }
    {
      const int first = from > 48 ? from - 48 : 0;
      const int last = least(to - 48, 40);
      if (first < last) both_0_1_fill(b0_x, b3_W_5f_q, b4_q, dims + 0, filler, first, last);
    }
  }
}
INLINE void both_0_fetch(const u16 *__restrict__ b0_x, const u16 *__restrict__ b1_W_5f_y, u16 *__restrict__ b2_y, const u16 *__restrict__ b3_W_5f_q, u16 *__restrict__ b4_q, const i64 *__restrict__ dims, u32 constant) {
  for (int cell = blockIdx.x; cell < 88; cell += gridDim.x) {
    const int from = (int)((i64)cell * 88 / 88);
    const int to = (int)((i64)(cell + 1) * 88 / 88);
    {
      const int first = from > 0 ? from - 0 : 0;
      const int last = least(to - 0, 48);
      if (first < last) both_0_0_fetch(b0_x, b1_W_5f_y, b2_y, dims + 0, constant);
    }
    {
      const int first = from > 48 ? from - 48 : 0;
      const int last = least(to - 48, 40);
      if (first < last) both_0_1_fetch(b0_x, b3_W_5f_q, b4_q, dims + 0, constant);
    }
  }
}
INLINE void both_0_use(const u16 *__restrict__ b0_x, const u16 *__restrict__ b1_W_5f_y, u16 *__restrict__ b2_y, const u16 *__restrict__ b3_W_5f_q, u16 *__restrict__ b4_q, const i64 *__restrict__ dims, Turn<6> &turn, u8 *stages, u64 *full, u64 *empty, float *parts, float *results) {
  for (int cell = blockIdx.x; cell < 88; cell += gridDim.x) {
    const int from = (int)((i64)cell * 88 / 88);
    const int to = (int)((i64)(cell + 1) * 88 / 88);
    {
      const int first = from > 0 ? from - 0 : 0;
      const int last = least(to - 0, 48);
      if (first < last) both_0_0_use(b0_x, b1_W_5f_y, b2_y, dims + 0, turn, stages, full, empty, parts, results, first, last);
    }
    {
      const int first = from > 48 ? from - 48 : 0;
      const int last = least(to - 48, 40);
      if (first < last) both_0_1_use(b0_x, b3_W_5f_q, b4_q, dims + 0, turn, stages, full, empty, parts, results, first, last);
    }
  }
}
INLINE void both_2_0_fill(const u16 *__restrict__ b6_z, const u16 *__restrict__ b9_W_5f_o, u16 *__restrict__ b10_o, const i64 *__restrict__ dims, Filler<6, 8192, 2> &filler, const int first, const int last) {
  for (int row = first; row < last; row += 8) {
    const u32 bytes = least(8, last - row) * 272;
    u8 *const to = filler.claim(1 * bytes);
    filler.copy(to, b9_W_5f_o + (i64)row * 136, bytes);
    filler.turn.next();
  }
}
INLINE void both_2_0_fetch(const u16 *__restrict__ b6_z, const u16 *__restrict__ b9_W_5f_o, u16 *__restrict__ b10_o, const i64 *__restrict__ dims, u32 constant) {
  for (int t = 0; t < 1; t++) {
    const int n = (t * 256 + (int)threadIdx.x) * 8;
    if (n < 136) {
      const int x_k_1 = n;
      if (constant >> 6 & 1) fetch_early(b6_z + 0 * 136 + x_k_1);
    }
  }
}
INLINE void both_2_0_use(const u16 *__restrict__ b6_z, const u16 *__restrict__ b9_W_5f_o, u16 *__restrict__ b10_o, const i64 *__restrict__ dims, Turn<6> &turn, u8 *stages, u64 *full, u64 *empty, float *parts, float *results, const int first, const int last) {
  float x0[8] = {};
  #pragma unroll
  for (int t = 0; t < 1; t++) {
    const int n = (t * 256 + (int)threadIdx.x) * 8;
    if (n < 136) {
      const int x_k_2 = n;
      const auto w3 = wide_load((const uint4 *)(b6_z + 0 * 136 + x_k_2));
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
        if (n < 136) {
          const int x_k_12 = n;
          const auto w13 = wide_load((const uint4 *)(stage + (0 + r) * 272 + n * 2));
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
    *(b10_o + 0 * 24 + x_n_22) = held_bf16(v24);
  }
  users_wait<256>();
}
INLINE void both_2_1_fill(const u16 *__restrict__ b2_y, const u16 *__restrict__ b11_W_5f_p, u16 *__restrict__ b12_p, const i64 *__restrict__ dims, Filler<6, 8192, 2> &filler, const int first, const int last) {
  for (int row = first; row < last; row += 8) {
    const u32 bytes = least(8, last - row) * 96;
    u8 *const to = filler.claim(1 * bytes);
    filler.copy(to, b11_W_5f_p + (i64)row * 48, bytes);
    filler.turn.next();
  }
}
INLINE void both_2_1_fetch(const u16 *__restrict__ b2_y, const u16 *__restrict__ b11_W_5f_p, u16 *__restrict__ b12_p, const i64 *__restrict__ dims, u32 constant) {
  for (int t = 0; t < 1; t++) {
    const int n = (t * 256 + (int)threadIdx.x) * 8;
    if (n < 48) {
      const int x_k_1 = n;
      if (constant >> 2 & 1) fetch_early(b2_y + 0 * 48 + x_k_1);
    }
  }
}
INLINE void both_2_1_use(const u16 *__restrict__ b2_y, const u16 *__restrict__ b11_W_5f_p, u16 *__restrict__ b12_p, const i64 *__restrict__ dims, Turn<6> &turn, u8 *stages, u64 *full, u64 *empty, float *parts, float *results, const int first, const int last) {
  float x0[8] = {};
  #pragma unroll
  for (int t = 0; t < 1; t++) {
    const int n = (t * 256 + (int)threadIdx.x) * 8;
    if (n < 48) {
      const int x_k_2 = n;
      const auto w3 = wide_load((const uint4 *)(b2_y + 0 * 48 + x_k_2));
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
        if (n < 48) {
          const int x_k_12 = n;
          const auto w13 = wide_load((const uint4 *)(stage + (0 + r) * 96 + n * 2));
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
    *(b12_p + 0 * 11 + x_n_22) = held_bf16(v24);
  }
  users_wait<256>();
}
INLINE void both_2_fill(const u16 *__restrict__ b6_z, const u16 *__restrict__ b9_W_5f_o, u16 *__restrict__ b10_o, const u16 *__restrict__ b2_y, const u16 *__restrict__ b11_W_5f_p, u16 *__restrict__ b12_p, const i64 *__restrict__ dims, Filler<6, 8192, 2> &filler) {
  for (int cell = blockIdx.x; cell < 35; cell += gridDim.x) {
    const int from = (int)((i64)cell * 35 / 35);
    const int to = (int)((i64)(cell + 1) * 35 / 35);
    {
      const int first = from > 0 ? from - 0 : 0;
      const int last = least(to - 0, 24);
      if (first < last) both_2_0_fill(b6_z, b9_W_5f_o, b10_o, dims + 0, filler, first, last);
    }
    {
      const int first = from > 24 ? from - 24 : 0;
      const int last = least(to - 24, 11);
      if (first < last) both_2_1_fill(b2_y, b11_W_5f_p, b12_p, dims + 0, filler, first, last);
    }
  }
}
INLINE void both_2_fetch(const u16 *__restrict__ b6_z, const u16 *__restrict__ b9_W_5f_o, u16 *__restrict__ b10_o, const u16 *__restrict__ b2_y, const u16 *__restrict__ b11_W_5f_p, u16 *__restrict__ b12_p, const i64 *__restrict__ dims, u32 constant) {
  for (int cell = blockIdx.x; cell < 35; cell += gridDim.x) {
    const int from = (int)((i64)cell * 35 / 35);
    const int to = (int)((i64)(cell + 1) * 35 / 35);
    {
      const int first = from > 0 ? from - 0 : 0;
      const int last = least(to - 0, 24);
      if (first < last) both_2_0_fetch(b6_z, b9_W_5f_o, b10_o, dims + 0, constant);
    }
    {
      const int first = from > 24 ? from - 24 : 0;
      const int last = least(to - 24, 11);
      if (first < last) both_2_1_fetch(b2_y, b11_W_5f_p, b12_p, dims + 0, constant);
    }
  }
}
INLINE void both_2_use(const u16 *__restrict__ b6_z, const u16 *__restrict__ b9_W_5f_o, u16 *__restrict__ b10_o, const u16 *__restrict__ b2_y, const u16 *__restrict__ b11_W_5f_p, u16 *__restrict__ b12_p, const i64 *__restrict__ dims, Turn<6> &turn, u8 *stages, u64 *full, u64 *empty, float *parts, float *results) {
  for (int cell = blockIdx.x; cell < 35; cell += gridDim.x) {
    const int from = (int)((i64)cell * 35 / 35);
    const int to = (int)((i64)(cell + 1) * 35 / 35);
    {
      const int first = from > 0 ? from - 0 : 0;
      const int last = least(to - 0, 24);
      if (first < last) both_2_0_use(b6_z, b9_W_5f_o, b10_o, dims + 0, turn, stages, full, empty, parts, results, first, last);
    }
    {
      const int first = from > 24 ? from - 24 : 0;
      const int last = least(to - 24, 11);
      if (first < last) both_2_1_use(b2_y, b11_W_5f_p, b12_p, dims + 0, turn, stages, full, empty, parts, results, first, last);
    }
  }
}
extern "C" __global__ void __launch_bounds__(288) both(const u16 * b0_x, const u16 * b1_W_5f_y, u16 * b2_y, const u16 * b3_W_5f_q, u16 * b4_q, const u16 * b5_W_5f_z, u16 * b6_z, const u16 * b7_W_5f_s, u16 * b8_s, const u16 * b9_W_5f_o, u16 * b10_o, const u16 * b11_W_5f_p, u16 * b12_p, const u16 * b13_W_5f_t, u16 * b14_t, const i64 * dims, const u32 constant, u32 *met) {
  extern __shared__ __align__(128) u8 pool[];
  u64 *const full = (u64 *)pool, *const empty = full + 6;
  float *const parts = (float *)(pool + 256);
  u8 *const stages = pool + 1024, *const rest = stages + 49152;
  float *const results = (float *)rest;
  u32 *const begun = (u32 *)(pool + 118768);
  if (threadIdx.x == 256) {
    for (int k = 0; k < 6; k++)
      stage_open(full + k, 1), stage_open(empty + k, 8);
    before_copies();
    *begun = 0;
  }
  __syncthreads();
  let_next_start();
  if (threadIdx.x >= 256) {
    if (threadIdx.x >= 257) return;
    Filler<6, 8192, 2> filler(stages, full, empty);
    if ((constant & 10u) != 10u) {
      wait_for_previous();
      before_copies();
    }
    both_0_fill(b0_x, b1_W_5f_y, b2_y, b3_W_5f_q, b4_q, dims + 0, filler);
    if ((constant & 2560u) != 2560u) {
      turn_await(begun, 2);
      before_copies();
    }
    both_2_fill(b6_z, b9_W_5f_o, b10_o, b2_y, b11_W_5f_p, b12_p, dims + 0, filler);
    return;
  }
  Turn<6> turn;
  both_0_fetch(b0_x, b1_W_5f_y, b2_y, b3_W_5f_q, b4_q, dims + 0, constant);
  wait_for_previous();
  both_0_use(settled(b0_x), settled(b1_W_5f_y), settled(b2_y), settled(b3_W_5f_q), settled(b4_q), dims + 0, turn, stages, full, empty, parts, results);
  const u32 end1 = turn_end<256>(met);
  turn_begin<256>(met, end1, begun, 1);
  if (threadIdx.x < 128) {
    u32 before = 0;
    before = both_1_0_cells(settled(b2_y), settled(b5_W_5f_z), settled(b6_z), dims + 0, before, rest);
    threads_wait<128>();
    before = both_1_1_cells(settled(b4_q), settled(b7_W_5f_s), settled(b8_s), dims + 0, before, rest);
  }
  const u32 end2 = turn_end<256>(met);
  both_2_fetch(b6_z, b9_W_5f_o, b10_o, b2_y, b11_W_5f_p, b12_p, dims + 0, constant);
  turn_begin<256>(met, end2, begun, 2);
  both_2_use(settled(b6_z), settled(b9_W_5f_o), settled(b10_o), settled(b2_y), settled(b11_W_5f_p), settled(b12_p), dims + 0, turn, stages, full, empty, parts, results);
  const u32 end3 = turn_end<256>(met);
  turn_begin<256>(met, end3, begun, 3);
  {
    u32 before = 0;
    before = both_3_0_cells(settled(b8_s), settled(b13_W_5f_t), settled(b14_t), dims + 0, before, rest);
  }
}
