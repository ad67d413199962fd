INLINE void q4_0_fill(const float *__restrict__ b0_B0, const u8 *__restrict__ b1_B2, const u16 *__restrict__ b2_B1, float *__restrict__ b3_B3, const i64 *__restrict__ dims, u8 *stages, u64 *full, u64 *empty) {
  Filler<15, 640, 15> filler(stages, full, empty);
  for (int cell = blockIdx.x; cell < 64; cell += gridDim.x) {
    const int first = (int)((i64)cell * 64 / 64);
    const int last = (int)((i64)(cell + 1) * 64 / 64);
    for (int row = first; row < last; row += 1) {
      const int rows = least(1, last - row);
      const i64 start1 = (i64)(row) * 64;
      const u32 size2 = (u32)(rows * 64);
      const i64 start3 = (i64)(row) * 512;
      const u32 size4 = (u32)(rows * 512);
      u8 *const to = filler.claim(size2 + size4);
      filler.copy(to + 0, (const u8 *)b2_B1 + start1, size2);
      filler.copy(to + 128, (const u8 *)b1_B2 + start3, size4);
      filler.turn.next();
    }
  }
}
INLINE void q4_0_fetch(const float *__restrict__ b0_B0, const u8 *__restrict__ b1_B2, const u16 *__restrict__ b2_B1, float *__restrict__ b3_B3, const i64 *__restrict__ dims, u32 constant) {
  for (int t = 0; t < 1; t++) {
    const int n = t * 32 + (int)threadIdx.x % 32;
    {
      const int x_d_6 = n % 1 * 16;
      const int rest7 = n / 1;
      const int x_b_5 = rest7;
      if (constant >> 0 & 1) fetch_early(b0_B0 + x_b_5 * 32 + 0 * 16 + x_d_6);
    }
  }
}
INLINE void q4_0_use(const float *__restrict__ b0_B0, const u8 *__restrict__ b1_B2, const u16 *__restrict__ b2_B1, float *__restrict__ b3_B3, const i64 *__restrict__ dims, u8 *stages, u64 *full, u64 *empty, float *parts, float *results) {
  float x0[32] = {};
  #pragma unroll
  for (int t = 0; t < 1; t++) {
    const int n = t * 32 + (int)threadIdx.x % 32;
    {
      const int x_d_9 = n % 1 * 16;
      const int rest10 = n / 1;
      const int x_b_8 = rest10;
      const auto w11 = wide_load((const uint4 *)(b0_B0 + x_b_8 * 32 + 0 * 16 + x_d_9));
      const auto w12 = wide_load((const uint4 *)(b0_B0 + x_b_8 * 32 + 0 * 16 + x_d_9 + 4));
      const auto w13 = wide_load((const uint4 *)(b0_B0 + x_b_8 * 32 + 0 * 16 + x_d_9 + 8));
      const auto w14 = wide_load((const uint4 *)(b0_B0 + x_b_8 * 32 + 0 * 16 + x_d_9 + 12));
      const float v15 = __uint_as_float(w11.w[0]);
      const float v16 = __uint_as_float(w11.w[1]);
      const float v17 = __uint_as_float(w11.w[2]);
      const float v18 = __uint_as_float(w11.w[3]);
      const float v19 = __uint_as_float(w12.w[0]);
      const float v20 = __uint_as_float(w12.w[1]);
      const float v21 = __uint_as_float(w12.w[2]);
      const float v22 = __uint_as_float(w12.w[3]);
      const float v23 = __uint_as_float(w13.w[0]);
      const float v24 = __uint_as_float(w13.w[1]);
      const float v25 = __uint_as_float(w13.w[2]);
      const float v26 = __uint_as_float(w13.w[3]);
      const float v27 = __uint_as_float(w14.w[0]);
      const float v28 = __uint_as_float(w14.w[1]);
      const float v29 = __uint_as_float(w14.w[2]);
      const float v30 = __uint_as_float(w14.w[3]);
      const auto w31 = wide_load((const uint4 *)(b0_B0 + x_b_8 * 32 + 0 * 16 + x_d_9 + 16));
      const auto w32 = wide_load((const uint4 *)(b0_B0 + x_b_8 * 32 + 0 * 16 + x_d_9 + 16 + 4));
      const auto w33 = wide_load((const uint4 *)(b0_B0 + x_b_8 * 32 + 0 * 16 + x_d_9 + 16 + 8));
      const auto w34 = wide_load((const uint4 *)(b0_B0 + x_b_8 * 32 + 0 * 16 + x_d_9 + 16 + 12));
      const float v35 = __uint_as_float(w31.w[0]);
      const float v36 = __uint_as_float(w31.w[1]);
      const float v37 = __uint_as_float(w31.w[2]);
      const float v38 = __uint_as_float(w31.w[3]);
      const float v39 = __uint_as_float(w32.w[0]);
      const float v40 = __uint_as_float(w32.w[1]);
      const float v41 = __uint_as_float(w32.w[2]);
      const float v42 = __uint_as_float(w32.w[3]);
      const float v43 = __uint_as_float(w33.w[0]);
      const float v44 = __uint_as_float(w33.w[1]);
      const float v45 = __uint_as_float(w33.w[2]);
      const float v46 = __uint_as_float(w33.w[3]);
      const float v47 = __uint_as_float(w34.w[0]);
      const float v48 = __uint_as_float(w34.w[1]);
      const float v49 = __uint_as_float(w34.w[2]);
      const float v50 = __uint_as_float(w34.w[3]);
      x0[t * 32 + 0] = v15;
      x0[t * 32 + 1] = v16;
      x0[t * 32 + 2] = v17;
      x0[t * 32 + 3] = v18;
      x0[t * 32 + 4] = v19;
      x0[t * 32 + 5] = v20;
      x0[t * 32 + 6] = v21;
      x0[t * 32 + 7] = v22;
      x0[t * 32 + 8] = v23;
      x0[t * 32 + 9] = v24;
      x0[t * 32 + 10] = v25;
      x0[t * 32 + 11] = v26;
      x0[t * 32 + 12] = v27;
      x0[t * 32 + 13] = v28;
      x0[t * 32 + 14] = v29;
      x0[t * 32 + 15] = v30;
      x0[t * 32 + 16] = v35;
      x0[t * 32 + 17] = v36;
      x0[t * 32 + 18] = v37;
      x0[t * 32 + 19] = v38;
      x0[t * 32 + 20] = v39;
      x0[t * 32 + 21] = v40;
      x0[t * 32 + 22] = v41;
      x0[t * 32 + 23] = v42;
      x0[t * 32 + 24] = v43;
      x0[t * 32 + 25] = v44;
      x0[t * 32 + 26] = v45;
      x0[t * 32 + 27] = v46;
      x0[t * 32 + 28] = v47;
      x0[t * 32 + 29] = v48;
      x0[t * 32 + 30] = v49;
      x0[t * 32 + 31] = v50;
    }
  }
  float most0 = 0;
  #pragma unroll
  for (int k = 0; k < 32; k++) {
    most0 = fmaxf(most0, fabsf(x0[k]));
  }
  const float unit0 = power_within(most0);
  float s0[2] = {};
  #pragma unroll
  for (int k = 0; k < 32; k++) {
    x0[k] *= power_inverse(unit0);
    s0[k / 16] += x0[k];
    constexpr float raised[] = {0x1p120f, 0x1p112f, 0x1p104f, 0x1p120f};
    x0[k] *= raised[k % 4];
  }
  Turn<15> turn;
  for (int cell = blockIdx.x; cell < 64; cell += gridDim.x) {
    const int first = (int)((i64)cell * 64 / 64);
    const int last = (int)((i64)(cell + 1) * 64 / 64);
    for (int row = first; row < last; row += 1) {
      if (turn.slot % 15 == (int)threadIdx.x / 32) {
        stage_await(full + turn.slot, turn.lap);
        const u8 *const stage = stages + turn.slot * 640;
        float v[1] = {};
        #pragma unroll
        for (int r = 0; r < 1; r++) {
          const int row52 = row + r;
          const int x_a_51 = row52;
          const u8 *const plane53 = stage + 0 + r * 64;
          const u8 *const plane54 = stage + 128 + r * 512;
          #pragma unroll
          for (int t = 0; t < 1; t++) {
            const int n = t * 32 + (int)threadIdx.x % 32;
            {
              const int x_d_56 = n % 1 * 16;
              const int rest57 = n / 1;
              const int x_b_55 = rest57;
              const int v58 = mul_i32(4, 0);
              const int v59 = mul_i32(4, (0 + 1));
              const auto w60 = wide_load((const uint4 *)(plane54 + (0 * 512 + x_b_55 * 16 + x_d_56) * 1));
              const u32 u61 = (w60.w[0] >> v58 & 0xf0f0f0fu);
              const u32 u62 = (w60.w[1] >> v58 & 0xf0f0f0fu);
              const u32 u63 = (w60.w[2] >> v58 & 0xf0f0f0fu);
              const u32 u64 = (w60.w[3] >> v58 & 0xf0f0f0fu);
              float sum65 = 0;
              sum65 = fma_f32(x0[t * 32 + 0], tiny_byte<0>(u61), sum65);
              sum65 = fma_f32(x0[t * 32 + 1], tiny_byte<1>(u61), sum65);
              sum65 = fma_f32(x0[t * 32 + 2], tiny_byte<2>(u61), sum65);
              sum65 = fma_f32(x0[t * 32 + 3], tiny_byte<3>(u61), sum65);
              sum65 = fma_f32(x0[t * 32 + 4], tiny_byte<0>(u62), sum65);
              sum65 = fma_f32(x0[t * 32 + 5], tiny_byte<1>(u62), sum65);
              sum65 = fma_f32(x0[t * 32 + 6], tiny_byte<2>(u62), sum65);
              sum65 = fma_f32(x0[t * 32 + 7], tiny_byte<3>(u62), sum65);
              sum65 = fma_f32(x0[t * 32 + 8], tiny_byte<0>(u63), sum65);
              sum65 = fma_f32(x0[t * 32 + 9], tiny_byte<1>(u63), sum65);
              sum65 = fma_f32(x0[t * 32 + 10], tiny_byte<2>(u63), sum65);
              sum65 = fma_f32(x0[t * 32 + 11], tiny_byte<3>(u63), sum65);
              sum65 = fma_f32(x0[t * 32 + 12], tiny_byte<0>(u64), sum65);
              sum65 = fma_f32(x0[t * 32 + 13], tiny_byte<1>(u64), sum65);
              sum65 = fma_f32(x0[t * 32 + 14], tiny_byte<2>(u64), sum65);
              sum65 = fma_f32(x0[t * 32 + 15], tiny_byte<3>(u64), sum65);
              sum65 = fma_f32(sum65, 0x1p29f, -8.0f * s0[t * 2 + 0]);
              const float v66 = from_f16(*((const u16 *)(plane53 + (0 * 32 + x_b_55) * 2)));
              const float v67 = v66;
              v[r * 1 + 0] = fma_f32(unit0 * v67, sum65, v[r * 1 + 0]);
              const u32 u68 = (w60.w[0] >> v59 & 0xf0f0f0fu);
              const u32 u69 = (w60.w[1] >> v59 & 0xf0f0f0fu);
              const u32 u70 = (w60.w[2] >> v59 & 0xf0f0f0fu);
              const u32 u71 = (w60.w[3] >> v59 & 0xf0f0f0fu);
              float sum72 = 0;
              sum72 = fma_f32(x0[t * 32 + 16], tiny_byte<0>(u68), sum72);
              sum72 = fma_f32(x0[t * 32 + 17], tiny_byte<1>(u68), sum72);
              sum72 = fma_f32(x0[t * 32 + 18], tiny_byte<2>(u68), sum72);
              sum72 = fma_f32(x0[t * 32 + 19], tiny_byte<3>(u68), sum72);
              sum72 = fma_f32(x0[t * 32 + 20], tiny_byte<0>(u69), sum72);
              sum72 = fma_f32(x0[t * 32 + 21], tiny_byte<1>(u69), sum72);
              sum72 = fma_f32(x0[t * 32 + 22], tiny_byte<2>(u69), sum72);
              sum72 = fma_f32(x0[t * 32 + 23], tiny_byte<3>(u69), sum72);
              sum72 = fma_f32(x0[t * 32 + 24], tiny_byte<0>(u70), sum72);
              sum72 = fma_f32(x0[t * 32 + 25], tiny_byte<1>(u70), sum72);
              sum72 = fma_f32(x0[t * 32 + 26], tiny_byte<2>(u70), sum72);
              sum72 = fma_f32(x0[t * 32 + 27], tiny_byte<3>(u70), sum72);
              sum72 = fma_f32(x0[t * 32 + 28], tiny_byte<0>(u71), sum72);
              sum72 = fma_f32(x0[t * 32 + 29], tiny_byte<1>(u71), sum72);
              sum72 = fma_f32(x0[t * 32 + 30], tiny_byte<2>(u71), sum72);
              sum72 = fma_f32(x0[t * 32 + 31], tiny_byte<3>(u71), sum72);
              sum72 = fma_f32(sum72, 0x1p29f, -8.0f * s0[t * 2 + 1]);
              v[r * 1 + 0] = fma_f32(unit0 * v67, sum72, v[r * 1 + 0]);
            }
          }
        }
        stage_release(empty + turn.slot);
        const float total = spread_sums<1>(v);
        const int place = threadIdx.x % 32 / 32;
        if (row + place / 1 < last && threadIdx.x % 32 == 0) results[((row - first) * 1 + place) * 1 + threadIdx.x % 32 / 32] = total;
      }
      turn.next();
    }
    users_wait<480>();
    for (int k = threadIdx.x; k < last - first; k += 480) {
      const int row74 = first + k;
      const int x_a_73 = row74;
      const float v75 = total_of<1>(results + (k * 1 + 0) * 1);
      *(b3_B3 + x_a_73) = v75;
    }
    users_wait<480>();
  }
}
extern "C" __global__ void __launch_bounds__(512) q4_0(const float *__restrict__ b0_B0, const u8 *__restrict__ b1_B2, const u16 *__restrict__ b2_B1, float *__restrict__ b3_B3, const i64 *__restrict__ dims, u32 constant) {
  extern __shared__ __align__(128) u8 pool[];
  u64 *const full = (u64 *)pool, *const empty = full + 15;
  float *const parts = (float *)(pool + 256);
  u8 *const stages = pool + 1024;
  float *const results = (float *)(stages + 9600);
  if (threadIdx.x == 480) {
    for (int k = 0; k < 15; k++) stage_open(full + k, 1), stage_open(empty + k, 1);
    before_copies();
  }
  __syncthreads();
  let_next_start();
  if (threadIdx.x >= 480) {
    if (threadIdx.x > 480) return;
    if ((constant & 6) != 6) {
      wait_for_previous();
      before_copies();
    }
    q4_0_fill(b0_B0, b1_B2, b2_B1, b3_B3, dims, stages, full, empty);
    return;
  }
  q4_0_fetch(b0_B0, b1_B2, b2_B1, b3_B3, dims, constant);
  wait_for_previous();
  q4_0_use(settled(b0_B0), settled(b1_B2), settled(b2_B1), settled(b3_B3), dims, stages, full, empty, parts, results);
}
