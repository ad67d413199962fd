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
    const int n = t * 480 + (int)threadIdx.x % 480;
    if (n < 128) {
      const int x_d_6 = n % 4 * 4;
      const int rest7 = n / 4;
      const int x_b_5 = rest7;
      if (constant >> 0 & 1) fetch_early(b0_B0 + x_b_5 * 32 + 0 * 16 + x_d_6);
    }
  }
}
INLINE void q4_0_use(const float *__restrict__ b0_B0, const u8 *__restrict__ b1_B2, const u16 *__restrict__ b2_B1, float *__restrict__ b3_B3, const i64 *__restrict__ dims, u8 *stages, u64 *full, u64 *empty, float *parts, float *results) {
  float x0[32] = {};
  float *const made0 = results + 32;
  #pragma unroll
  for (int t = 0; t < 1; t++) {
    const int n = t * 480 + (int)threadIdx.x % 480;
    if (n < 128) {
      const int x_d_9 = n % 4 * 4;
      const int rest10 = n / 4;
      const int x_b_8 = rest10;
      const auto w11 = wide_load((const uint4 *)(b0_B0 + x_b_8 * 32 + 0 * 16 + x_d_9));
      const float v12 = __uint_as_float(w11.w[0]);
      const float v13 = __uint_as_float(w11.w[1]);
      const float v14 = __uint_as_float(w11.w[2]);
      const float v15 = __uint_as_float(w11.w[3]);
      const auto w16 = wide_load((const uint4 *)(b0_B0 + x_b_8 * 32 + 0 * 16 + x_d_9 + 16));
      const float v17 = __uint_as_float(w16.w[0]);
      const float v18 = __uint_as_float(w16.w[1]);
      const float v19 = __uint_as_float(w16.w[2]);
      const float v20 = __uint_as_float(w16.w[3]);
      *(float4 *)(made0 + ((0 + n % 4) * 33 + n / 4) * 4) = make_float4(v12, v13, v14, v15);
      *(float4 *)(made0 + ((4 + n % 4) * 33 + n / 4) * 4) = make_float4(v17, v18, v19, v20);
    }
  }
  users_wait<480>();
  #pragma unroll
  for (int t = 0; t < 1; t++) {
    const int n = t * 32 + (int)threadIdx.x % 32;
    if (n < 32) {
      const float4 four21 = *(const float4 *)(made0 + (0 + n) * 4);
      x0[t * 32 + 0] = four21.x;
      x0[t * 32 + 1] = four21.y;
      x0[t * 32 + 2] = four21.z;
      x0[t * 32 + 3] = four21.w;
      const float4 four22 = *(const float4 *)(made0 + (33 + n) * 4);
      x0[t * 32 + 4] = four22.x;
      x0[t * 32 + 5] = four22.y;
      x0[t * 32 + 6] = four22.z;
      x0[t * 32 + 7] = four22.w;
      const float4 four23 = *(const float4 *)(made0 + (66 + n) * 4);
      x0[t * 32 + 8] = four23.x;
      x0[t * 32 + 9] = four23.y;
      x0[t * 32 + 10] = four23.z;
      x0[t * 32 + 11] = four23.w;
      const float4 four24 = *(const float4 *)(made0 + (99 + n) * 4);
      x0[t * 32 + 12] = four24.x;
      x0[t * 32 + 13] = four24.y;
      x0[t * 32 + 14] = four24.z;
      x0[t * 32 + 15] = four24.w;
      const float4 four25 = *(const float4 *)(made0 + (132 + n) * 4);
      x0[t * 32 + 16] = four25.x;
      x0[t * 32 + 17] = four25.y;
      x0[t * 32 + 18] = four25.z;
      x0[t * 32 + 19] = four25.w;
      const float4 four26 = *(const float4 *)(made0 + (165 + n) * 4);
      x0[t * 32 + 20] = four26.x;
      x0[t * 32 + 21] = four26.y;
      x0[t * 32 + 22] = four26.z;
      x0[t * 32 + 23] = four26.w;
      const float4 four27 = *(const float4 *)(made0 + (198 + n) * 4);
      x0[t * 32 + 24] = four27.x;
      x0[t * 32 + 25] = four27.y;
      x0[t * 32 + 26] = four27.z;
      x0[t * 32 + 27] = four27.w;
      const float4 four28 = *(const float4 *)(made0 + (231 + n) * 4);
      x0[t * 32 + 28] = four28.x;
      x0[t * 32 + 29] = four28.y;
      x0[t * 32 + 30] = four28.z;
      x0[t * 32 + 31] = four28.w;
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
          const int row30 = row + r;
          const int x_a_29 = row30;
          const u8 *const plane31 = stage + 0 + r * 64;
          const u8 *const plane32 = stage + 128 + r * 512;
          #pragma unroll
          for (int t = 0; t < 1; t++) {
            const int n = t * 32 + (int)threadIdx.x % 32;
            {
              const int x_d_34 = n % 1 * 16;
              const int rest35 = n / 1;
              const int x_b_33 = rest35;
              const int v36 = mul_i32(4, 0);
              const int v37 = mul_i32(4, (0 + 1));
              const auto w38 = wide_load((const uint4 *)(plane32 + (0 * 512 + x_b_33 * 16 + x_d_34) * 1));
              const u32 bytes39 = (w38.w[0] >> v36 & 0xf0f0f0fu);
              const u32 bytes40 = (w38.w[1] >> v36 & 0xf0f0f0fu);
              const u32 bytes41 = (w38.w[2] >> v36 & 0xf0f0f0fu);
              const u32 bytes42 = (w38.w[3] >> v36 & 0xf0f0f0fu);
              float sum43 = 0;
              sum43 = fma_f32(x0[t * 32 + 0], tiny_byte<0>(bytes39), sum43);
              sum43 = fma_f32(x0[t * 32 + 1], tiny_byte<1>(bytes39), sum43);
              sum43 = fma_f32(x0[t * 32 + 2], tiny_byte<2>(bytes39), sum43);
              sum43 = fma_f32(x0[t * 32 + 3], tiny_byte<3>(bytes39), sum43);
              sum43 = fma_f32(x0[t * 32 + 4], tiny_byte<0>(bytes40), sum43);
              sum43 = fma_f32(x0[t * 32 + 5], tiny_byte<1>(bytes40), sum43);
              sum43 = fma_f32(x0[t * 32 + 6], tiny_byte<2>(bytes40), sum43);
              sum43 = fma_f32(x0[t * 32 + 7], tiny_byte<3>(bytes40), sum43);
              sum43 = fma_f32(x0[t * 32 + 8], tiny_byte<0>(bytes41), sum43);
              sum43 = fma_f32(x0[t * 32 + 9], tiny_byte<1>(bytes41), sum43);
              sum43 = fma_f32(x0[t * 32 + 10], tiny_byte<2>(bytes41), sum43);
              sum43 = fma_f32(x0[t * 32 + 11], tiny_byte<3>(bytes41), sum43);
              sum43 = fma_f32(x0[t * 32 + 12], tiny_byte<0>(bytes42), sum43);
              sum43 = fma_f32(x0[t * 32 + 13], tiny_byte<1>(bytes42), sum43);
              sum43 = fma_f32(x0[t * 32 + 14], tiny_byte<2>(bytes42), sum43);
              sum43 = fma_f32(x0[t * 32 + 15], tiny_byte<3>(bytes42), sum43);
              sum43 = fma_f32(sum43, 0x1p29f, -8.0f * s0[t * 2 + 0]);
              const float v44 = from_f16(*((const u16 *)(plane31 + (0 * 32 + x_b_33) * 2)));
              const float v45 = v44;
              v[r * 1 + 0] = fma_f32(unit0 * v45, sum43, v[r * 1 + 0]);
              const u32 bytes46 = (w38.w[0] >> v37 & 0xf0f0f0fu);
              const u32 bytes47 = (w38.w[1] >> v37 & 0xf0f0f0fu);
              const u32 bytes48 = (w38.w[2] >> v37 & 0xf0f0f0fu);
              const u32 bytes49 = (w38.w[3] >> v37 & 0xf0f0f0fu);
              float sum50 = 0;
              sum50 = fma_f32(x0[t * 32 + 16], tiny_byte<0>(bytes46), sum50);
              sum50 = fma_f32(x0[t * 32 + 17], tiny_byte<1>(bytes46), sum50);
              sum50 = fma_f32(x0[t * 32 + 18], tiny_byte<2>(bytes46), sum50);
              sum50 = fma_f32(x0[t * 32 + 19], tiny_byte<3>(bytes46), sum50);
              sum50 = fma_f32(x0[t * 32 + 20], tiny_byte<0>(bytes47), sum50);
              sum50 = fma_f32(x0[t * 32 + 21], tiny_byte<1>(bytes47), sum50);
              sum50 = fma_f32(x0[t * 32 + 22], tiny_byte<2>(bytes47), sum50);
              sum50 = fma_f32(x0[t * 32 + 23], tiny_byte<3>(bytes47), sum50);
              sum50 = fma_f32(x0[t * 32 + 24], tiny_byte<0>(bytes48), sum50);
              sum50 = fma_f32(x0[t * 32 + 25], tiny_byte<1>(bytes48), sum50);
              sum50 = fma_f32(x0[t * 32 + 26], tiny_byte<2>(bytes48), sum50);
              sum50 = fma_f32(x0[t * 32 + 27], tiny_byte<3>(bytes48), sum50);
              sum50 = fma_f32(x0[t * 32 + 28], tiny_byte<0>(bytes49), sum50);
              sum50 = fma_f32(x0[t * 32 + 29], tiny_byte<1>(bytes49), sum50);
              sum50 = fma_f32(x0[t * 32 + 30], tiny_byte<2>(bytes49), sum50);
              sum50 = fma_f32(x0[t * 32 + 31], tiny_byte<3>(bytes49), sum50);
              sum50 = fma_f32(sum50, 0x1p29f, -8.0f * s0[t * 2 + 1]);
              v[r * 1 + 0] = fma_f32(unit0 * v45, sum50, v[r * 1 + 0]);
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
      const int row52 = first + k;
      const int x_a_51 = row52;
      const float v53 = total_of<1>(results + (k * 1 + 0) * 1);
      *(b3_B3 + x_a_51) = v53;
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
