INLINE void attended_fill(const float *__restrict__ b0_T0, const float *__restrict__ b1_T1, const u16 *__restrict__ b2_B1, const float *__restrict__ b3_B2, float *__restrict__ b4_B3, const i64 *__restrict__ dims, u8 *stages, u64 *full, u64 *empty) {
  Filler<6, 16384, 2> filler(stages, full, empty);
  for (int cell = blockIdx.x; cell < 132; cell += gridDim.x) {
    const int first = (int)((i64)cell * 150 / 132);
    const int last = (int)((i64)(cell + 1) * 150 / 132);
    for (int row = first; row < last; row += 8) {
      const u32 bytes = least(8, last - row) * 2048;
      u8 *const to = filler.claim(1 * bytes);
      filler.copy(to, b2_B1 + (i64)row * 1024, bytes);
      filler.turn.next();
    }
  }
}
INLINE void attended_fetch(const float *__restrict__ b0_T0, const float *__restrict__ b1_T1, const u16 *__restrict__ b2_B1, const float *__restrict__ b3_B2, float *__restrict__ b4_B3, const i64 *__restrict__ dims, u32 constant) {
  for (int t = 0; t < 1; t++) {
    const int n = (t * 256 + (int)threadIdx.x) * 8;
    if (n < 1024) {
      const int x_d_2 = n % 128;
      const int rest3 = n / 128;
      const int x_c_1 = rest3;
      if (constant >> 1 & 1) fetch_early(b1_T1 + x_c_1);
      if (constant >> 0 & 1) fetch_early(b0_T0 + x_c_1 * 128 + x_d_2);
    }
  }
}
INLINE void attended_use(const float *__restrict__ b0_T0, const float *__restrict__ b1_T1, const u16 *__restrict__ b2_B1, const float *__restrict__ b3_B2, float *__restrict__ b4_B3, const i64 *__restrict__ dims, u8 *stages, u64 *full, u64 *empty, float *parts, float *results) {
  float x0[8] = {};
  #pragma unroll
  for (int t = 0; t < 1; t++) {
    const int n = (t * 256 + (int)threadIdx.x) * 8;
    if (n < 1024) {
      const int x_d_5 = n % 128;
      const int rest6 = n / 128;
      const int x_c_4 = rest6;
      const auto w7 = wide_load((const uint4 *)(b0_T0 + x_c_4 * 128 + x_d_5));
      const auto w8 = wide_load((const uint4 *)(b0_T0 + x_c_4 * 128 + x_d_5 + 4));
      const float v9 = __uint_as_float(w7.w[0]);
      const float v10 = __uint_as_float(w7.w[1]);
      const float v11 = __uint_as_float(w7.w[2]);
      const float v12 = __uint_as_float(w7.w[3]);
      const float v13 = __uint_as_float(w8.w[0]);
      const float v14 = __uint_as_float(w8.w[1]);
      const float v15 = __uint_as_float(w8.w[2]);
      const float v16 = __uint_as_float(w8.w[3]);
      const float v17 = *(b1_T1 + x_c_4);
      const float v18 = recip_f32(v17);
      const float v19 = (v9 * v18);
      const float v20 = (v10 * v18);
      const float v21 = (v11 * v18);
      const float v22 = (v12 * v18);
      const float v23 = (v13 * v18);
      const float v24 = (v14 * v18);
      const float v25 = (v15 * v18);
      const float v26 = (v16 * v18);
      x0[t * 8 + 0] = v19;
      x0[t * 8 + 1] = v20;
      x0[t * 8 + 2] = v21;
      x0[t * 8 + 3] = v22;
      x0[t * 8 + 4] = v23;
      x0[t * 8 + 5] = v24;
      x0[t * 8 + 6] = v25;
      x0[t * 8 + 7] = v26;
    }
  }
  Turn<6> turn;
  for (int cell = blockIdx.x; cell < 132; cell += gridDim.x) {
    const int first = (int)((i64)cell * 150 / 132);
    const int last = (int)((i64)(cell + 1) * 150 / 132);
    float e27 = 0;
    if (first + (int)threadIdx.x < last) {
      const int row29 = first + (int)threadIdx.x;
      const int x_a_28 = row29;
      e27 = *(b3_B2 + x_a_28);
    }
    for (int row = first; row < last; row += 8) {
      stage_await(full + turn.slot, turn.lap);
      const u8 *const stage = stages + turn.slot * 16384;
      float v[8] = {};
      #pragma unroll
      for (int r = 0; r < 8; r++) {
        #pragma unroll
        for (int t = 0; t < 1; t++) {
          const int n = (t * 256 + (int)threadIdx.x) * 8;
          if (n < 1024) {
            const int x_d_31 = n % 128;
            const int rest32 = n / 128;
            const int x_c_30 = rest32;
            const auto w33 = wide_load((const uint4 *)(stage + (0 + r) * 2048 + n * 2));
            const float v34 = from_bf16((u16)(w33.w[0] >> 0));
            const float v35 = from_bf16((u16)(w33.w[0] >> 16));
            const float v36 = from_bf16((u16)(w33.w[1] >> 0));
            const float v37 = from_bf16((u16)(w33.w[1] >> 16));
            const float v38 = from_bf16((u16)(w33.w[2] >> 0));
            const float v39 = from_bf16((u16)(w33.w[2] >> 16));
            const float v40 = from_bf16((u16)(w33.w[3] >> 0));
            const float v41 = from_bf16((u16)(w33.w[3] >> 16));
            const float v42 = v34;
            const float v43 = v35;
            const float v44 = v36;
            const float v45 = v37;
            const float v46 = v38;
            const float v47 = v39;
            const float v48 = v40;
            const float v49 = v41;
            v[r * 1 + 0] = fma_f32(x0[t * 8 + 0], v42, v[r * 1 + 0]);
            v[r * 1 + 0] = fma_f32(x0[t * 8 + 1], v43, v[r * 1 + 0]);
            v[r * 1 + 0] = fma_f32(x0[t * 8 + 2], v44, v[r * 1 + 0]);
            v[r * 1 + 0] = fma_f32(x0[t * 8 + 3], v45, v[r * 1 + 0]);
            v[r * 1 + 0] = fma_f32(x0[t * 8 + 4], v46, v[r * 1 + 0]);
            v[r * 1 + 0] = fma_f32(x0[t * 8 + 5], v47, v[r * 1 + 0]);
            v[r * 1 + 0] = fma_f32(x0[t * 8 + 6], v48, v[r * 1 + 0]);
            v[r * 1 + 0] = fma_f32(x0[t * 8 + 7], v49, v[r * 1 + 0]);
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
      const int row51 = first + k;
      const int x_a_50 = row51;
      const float v52 = total_of<8>(results + (k * 1 + 0) * 8);
      const float v53 = e27;
      const float v54 = (v52 + v53);
      *(b4_B3 + x_a_50) = v54;
    }
    users_wait<256>();
  }
}
extern "C" __global__ void __launch_bounds__(288) attended(const float *__restrict__ b0_T0, const float *__restrict__ b1_T1, const u16 *__restrict__ b2_B1, const float *__restrict__ b3_B2, float *__restrict__ b4_B3, const i64 *__restrict__ dims, u32 constant) {
  extern __shared__ __align__(128) u8 pool[];
  u64 *const full = (u64 *)pool, *const empty = full + 6;
  float *const parts = (float *)(pool + 256);
  u8 *const stages = pool + 1024;
  float *const results = (float *)(stages + 98304);
  if (threadIdx.x == 256) {
    for (int k = 0; k < 6; k++) stage_open(full + k, 1), stage_open(empty + k, 8);
    before_copies();
  }
  __syncthreads();
  let_next_start();
  if (threadIdx.x >= 256) {
    if (threadIdx.x > 256) return;
    if ((constant & 4) != 4) {
      wait_for_previous();
      before_copies();
    }
    attended_fill(b0_T0, b1_T1, b2_B1, b3_B2, b4_B3, dims, stages, full, empty);
    return;
  }
  attended_fetch(b0_T0, b1_T1, b2_B1, b3_B2, b4_B3, dims, constant);
  wait_for_previous();
  attended_use(settled(b0_T0), settled(b1_T1), settled(b2_B1), settled(b3_B2), settled(b4_B3), dims, stages, full, empty, parts, results);
}
