INLINE void q4_0_fill(const float *__restrict__ b0_B0, const u8 *__restrict__ b1_B2, const u16 *__restrict__ b2_B1, float *__restrict__ b3_B3, const i64 *__restrict__ dims, u8 *stages, u64 *full, u64 *empty) {
  Filler<15, 640, 15> filler(stages, full, empty);
  for (int cell = blockIdx.x; cell < 64; cell += gridDim.x) {
    const int first = (int)((i64)cell * 64 / 64);
    const int last = (int)((i64)(cell + 1) * 64 / 64);
    const u8 *from = 0;
    i64 origin = 0;
    int size = 0, place = 0;
    if (threadIdx.x == 480) from = (const u8 *)b2_B1, origin = 0, size = 64, place = 0;
    if (threadIdx.x == 481) from = (const u8 *)b1_B2, origin = 0, size = 512, place = 128;
    for (int row = first; row < last; row += 1) {
      const i64 start = origin + (i64)row * size;
      const i64 stop = start + (i64)least(1, last - row) * size;
      const i64 begin = start / 16 * 16;
      const u32 bytes = (u32)((stop + 15) / 16 * 16 - begin);
      u8 *const to = filler.claim(bytes) + place;
      if (bytes) filler.copy(to, from + begin, bytes);
      filler.turn.next();
    }
  }
}
INLINE void q4_0_fetch(const float *__restrict__ b0_B0, const u8 *__restrict__ b1_B2, const u16 *__restrict__ b2_B1, float *__restrict__ b3_B3, const i64 *__restrict__ dims, u32 constant) {
  for (int t = 0; t < 1; t++) {
    const int n = t * 480 + (int)threadIdx.x % 480;
    if (n < 128) {
      const int x_d_2 = n % 4 * 4;
      const int rest3 = n / 4;
      const int x_b_1 = rest3;
      if (constant >> 0 & 1) fetch_early(b0_B0 + x_b_1 * 32 + 0 * 16 + x_d_2);
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
      const int x_d_5 = n % 4 * 4;
      const int rest6 = n / 4;
      const int x_b_4 = rest6;
      const auto w7 = wide_load((const uint4 *)(b0_B0 + x_b_4 * 32 + 0 * 16 + x_d_5));
      const float v8 = __uint_as_float(w7.w[0]);
      const float v9 = __uint_as_float(w7.w[1]);
      const float v10 = __uint_as_float(w7.w[2]);
      const float v11 = __uint_as_float(w7.w[3]);
      const auto w12 = wide_load((const uint4 *)(b0_B0 + x_b_4 * 32 + 0 * 16 + x_d_5 + 16));
      const float v13 = __uint_as_float(w12.w[0]);
      const float v14 = __uint_as_float(w12.w[1]);
      const float v15 = __uint_as_float(w12.w[2]);
      const float v16 = __uint_as_float(w12.w[3]);
      *(float4 *)(made0 + ((0 + n % 4) * 33 + n / 4) * 4) = make_float4(v8, v9, v10, v11);
      *(float4 *)(made0 + ((4 + n % 4) * 33 + n / 4) * 4) = make_float4(v13, v14, v15, v16);
    }
  }
  users_wait<480>();
  #pragma unroll
  for (int t = 0; t < 1; t++) {
    const int n = t * 32 + (int)threadIdx.x % 32;
    if (n < 32) {
      const float4 four17 = *(const float4 *)(made0 + (0 + n) * 4);
      x0[t * 32 + 0] = four17.x;
      x0[t * 32 + 1] = four17.y;
      x0[t * 32 + 2] = four17.z;
      x0[t * 32 + 3] = four17.w;
      const float4 four18 = *(const float4 *)(made0 + (33 + n) * 4);
      x0[t * 32 + 4] = four18.x;
      x0[t * 32 + 5] = four18.y;
      x0[t * 32 + 6] = four18.z;
      x0[t * 32 + 7] = four18.w;
      const float4 four19 = *(const float4 *)(made0 + (66 + n) * 4);
      x0[t * 32 + 8] = four19.x;
      x0[t * 32 + 9] = four19.y;
      x0[t * 32 + 10] = four19.z;
      x0[t * 32 + 11] = four19.w;
      const float4 four20 = *(const float4 *)(made0 + (99 + n) * 4);
      x0[t * 32 + 12] = four20.x;
      x0[t * 32 + 13] = four20.y;
      x0[t * 32 + 14] = four20.z;
      x0[t * 32 + 15] = four20.w;
      const float4 four21 = *(const float4 *)(made0 + (132 + n) * 4);
      x0[t * 32 + 16] = four21.x;
      x0[t * 32 + 17] = four21.y;
      x0[t * 32 + 18] = four21.z;
      x0[t * 32 + 19] = four21.w;
      const float4 four22 = *(const float4 *)(made0 + (165 + n) * 4);
      x0[t * 32 + 20] = four22.x;
      x0[t * 32 + 21] = four22.y;
      x0[t * 32 + 22] = four22.z;
      x0[t * 32 + 23] = four22.w;
      const float4 four23 = *(const float4 *)(made0 + (198 + n) * 4);
      x0[t * 32 + 24] = four23.x;
      x0[t * 32 + 25] = four23.y;
      x0[t * 32 + 26] = four23.z;
      x0[t * 32 + 27] = four23.w;
      const float4 four24 = *(const float4 *)(made0 + (231 + n) * 4);
      x0[t * 32 + 28] = four24.x;
      x0[t * 32 + 29] = four24.y;
      x0[t * 32 + 30] = four24.z;
      x0[t * 32 + 31] = four24.w;
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
          const int row26 = row + r;
          const int x_a_25 = row26;
          const u8 *const plane27 = stage + 0 + r * 64;
          const u8 *const plane28 = stage + 128 + r * 512;
          #pragma unroll
          for (int t = 0; t < 1; t++) {
            const int n = t * 32 + (int)threadIdx.x % 32;
            {
              const int x_d_30 = n % 1 * 16;
              const int rest31 = n / 1;
              const int x_b_29 = rest31;
              float sum32 = 0;
              const int v33 = mul_i32(4, 0);
              const int v34 = mul_i32(4, (0 + 1));
              const auto w35 = wide_load((const uint4 *)(plane28 + (0 * 512 + x_b_29 * 16 + x_d_30) * 1));
              const u32 bytes36 = (w35.w[0] >> v33 & 0xf0f0f0fu);
              const u32 bytes37 = (w35.w[1] >> v33 & 0xf0f0f0fu);
              const u32 bytes38 = (w35.w[2] >> v33 & 0xf0f0f0fu);
              const u32 bytes39 = (w35.w[3] >> v33 & 0xf0f0f0fu);
              sum32 = fma_f32(x0[t * 32 + 0], tiny_byte<0>(bytes36), sum32);
              sum32 = fma_f32(x0[t * 32 + 1], tiny_byte<1>(bytes36), sum32);
              sum32 = fma_f32(x0[t * 32 + 2], tiny_byte<2>(bytes36), sum32);
              sum32 = fma_f32(x0[t * 32 + 3], tiny_byte<3>(bytes36), sum32);
              sum32 = fma_f32(x0[t * 32 + 4], tiny_byte<0>(bytes37), sum32);
              sum32 = fma_f32(x0[t * 32 + 5], tiny_byte<1>(bytes37), sum32);
              sum32 = fma_f32(x0[t * 32 + 6], tiny_byte<2>(bytes37), sum32);
              sum32 = fma_f32(x0[t * 32 + 7], tiny_byte<3>(bytes37), sum32);
              sum32 = fma_f32(x0[t * 32 + 8], tiny_byte<0>(bytes38), sum32);
              sum32 = fma_f32(x0[t * 32 + 9], tiny_byte<1>(bytes38), sum32);
              sum32 = fma_f32(x0[t * 32 + 10], tiny_byte<2>(bytes38), sum32);
              sum32 = fma_f32(x0[t * 32 + 11], tiny_byte<3>(bytes38), sum32);
              sum32 = fma_f32(x0[t * 32 + 12], tiny_byte<0>(bytes39), sum32);
              sum32 = fma_f32(x0[t * 32 + 13], tiny_byte<1>(bytes39), sum32);
              sum32 = fma_f32(x0[t * 32 + 14], tiny_byte<2>(bytes39), sum32);
              sum32 = fma_f32(x0[t * 32 + 15], tiny_byte<3>(bytes39), sum32);
              sum32 *= 0x1p29f;
              sum32 = fma_f32(-8.0f, s0[t * 2 + 0], sum32);
              const float v40 = from_f16(*((const u16 *)(plane27 + (0 * 32 + x_b_29) * 2)));
              const float v41 = v40;
              v[r * 1 + 0] = fma_f32(unit0 * v41, sum32, v[r * 1 + 0]);
              float sum42 = 0;
              const u32 bytes43 = (w35.w[0] >> v34 & 0xf0f0f0fu);
              const u32 bytes44 = (w35.w[1] >> v34 & 0xf0f0f0fu);
              const u32 bytes45 = (w35.w[2] >> v34 & 0xf0f0f0fu);
              const u32 bytes46 = (w35.w[3] >> v34 & 0xf0f0f0fu);
              sum42 = fma_f32(x0[t * 32 + 16], tiny_byte<0>(bytes43), sum42);
              sum42 = fma_f32(x0[t * 32 + 17], tiny_byte<1>(bytes43), sum42);
              sum42 = fma_f32(x0[t * 32 + 18], tiny_byte<2>(bytes43), sum42);
              sum42 = fma_f32(x0[t * 32 + 19], tiny_byte<3>(bytes43), sum42);
              sum42 = fma_f32(x0[t * 32 + 20], tiny_byte<0>(bytes44), sum42);
              sum42 = fma_f32(x0[t * 32 + 21], tiny_byte<1>(bytes44), sum42);
              sum42 = fma_f32(x0[t * 32 + 22], tiny_byte<2>(bytes44), sum42);
              sum42 = fma_f32(x0[t * 32 + 23], tiny_byte<3>(bytes44), sum42);
              sum42 = fma_f32(x0[t * 32 + 24], tiny_byte<0>(bytes45), sum42);
              sum42 = fma_f32(x0[t * 32 + 25], tiny_byte<1>(bytes45), sum42);
              sum42 = fma_f32(x0[t * 32 + 26], tiny_byte<2>(bytes45), sum42);
              sum42 = fma_f32(x0[t * 32 + 27], tiny_byte<3>(bytes45), sum42);
              sum42 = fma_f32(x0[t * 32 + 28], tiny_byte<0>(bytes46), sum42);
              sum42 = fma_f32(x0[t * 32 + 29], tiny_byte<1>(bytes46), sum42);
              sum42 = fma_f32(x0[t * 32 + 30], tiny_byte<2>(bytes46), sum42);
              sum42 = fma_f32(x0[t * 32 + 31], tiny_byte<3>(bytes46), sum42);
              sum42 *= 0x1p29f;
              sum42 = fma_f32(-8.0f, s0[t * 2 + 1], sum42);
              v[r * 1 + 0] = fma_f32(unit0 * v41, sum42, v[r * 1 + 0]);
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
      const int row48 = first + k;
      const int x_a_47 = row48;
      const float v49 = total_of<1>(results + (k * 1 + 0) * 1);
      *(b3_B3 + x_a_47) = v49;
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
    for (int k = 0; k < 15; k++) stage_open(full + k, 2), stage_open(empty + k, 1);
    before_copies();
  }
  __syncthreads();
  let_next_start();
  if (threadIdx.x >= 480) {
    if (threadIdx.x > 481) return;
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
