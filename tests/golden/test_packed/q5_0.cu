INLINE void q5_0_fill(const float *__restrict__ b0_B0, const u8 *__restrict__ b1_B2, const u8 *__restrict__ b2_B3, const u16 *__restrict__ b3_B1, float *__restrict__ b4_B4, const i64 *__restrict__ dims, u8 *stages, u64 *full, u64 *empty) {
  Filler<15, 768, 15> filler(stages, full, empty);
  for (int cell = blockIdx.x; cell < 64; cell += gridDim.x) {
    const int first = (int)((i64)cell * 64 / 64);
    const int last = (int)((i64)(cell + 1) * 64 / 64);
    for (int row = first; row < last; row += 1) {
      const int rows = least(1, last - row);
      const i64 start1 = (i64)(row) * 64;
      const u32 size2 = (u32)(rows * 64);
      const i64 start3 = (i64)(row) * 128;
      const u32 size4 = (u32)(rows * 128);
      const i64 start5 = (i64)(row) * 512;
      const u32 size6 = (u32)(rows * 512);
      u8 *const to = filler.claim(size2 + size4 + size6);
      filler.copy(to + 0, (const u8 *)b3_B1 + start1, size2);
      filler.copy(to + 128, (const u8 *)b2_B3 + start3, size4);
      filler.copy(to + 256, (const u8 *)b1_B2 + start5, size6);
      filler.turn.next();
    }
  }
}
INLINE void q5_0_fetch(const float *__restrict__ b0_B0, const u8 *__restrict__ b1_B2, const u8 *__restrict__ b2_B3, const u16 *__restrict__ b3_B1, float *__restrict__ b4_B4, const i64 *__restrict__ dims, u32 constant) {
  for (int t = 0; t < 1; t++) {
    const int n = t * 480 + (int)threadIdx.x % 480;
    if (n < 128) {
      const int x_d_8 = n % 4 * 4;
      const int rest9 = n / 4;
      const int x_b_7 = rest9;
      if (constant >> 0 & 1) fetch_early(b0_B0 + x_b_7 * 32 + 0 * 16 + x_d_8);
    }
  }
}
INLINE void q5_0_use(const float *__restrict__ b0_B0, const u8 *__restrict__ b1_B2, const u8 *__restrict__ b2_B3, const u16 *__restrict__ b3_B1, float *__restrict__ b4_B4, const i64 *__restrict__ dims, u8 *stages, u64 *full, u64 *empty, float *parts, float *results) {
  float x0[32] = {};
  float *const made0 = results + 32;
  #pragma unroll
  for (int t = 0; t < 1; t++) {
    const int n = t * 480 + (int)threadIdx.x % 480;
    if (n < 128) {
      const int x_d_11 = n % 4 * 4;
      const int rest12 = n / 4;
      const int x_b_10 = rest12;
      const auto w13 = wide_load((const uint4 *)(b0_B0 + x_b_10 * 32 + 0 * 16 + x_d_11));
      const float v14 = __uint_as_float(w13.w[0]);
      const float v15 = __uint_as_float(w13.w[1]);
      const float v16 = __uint_as_float(w13.w[2]);
      const float v17 = __uint_as_float(w13.w[3]);
      const auto w18 = wide_load((const uint4 *)(b0_B0 + x_b_10 * 32 + 0 * 16 + x_d_11 + 16));
      const float v19 = __uint_as_float(w18.w[0]);
      const float v20 = __uint_as_float(w18.w[1]);
      const float v21 = __uint_as_float(w18.w[2]);
      const float v22 = __uint_as_float(w18.w[3]);
      *(float4 *)(made0 + ((0 + n % 4) * 33 + n / 4) * 4) = make_float4(v14, v15, v16, v17);
      *(float4 *)(made0 + ((4 + n % 4) * 33 + n / 4) * 4) = make_float4(v19, v20, v21, v22);
    }
  }
  users_wait<480>();
  #pragma unroll
  for (int t = 0; t < 1; t++) {
    const int n = t * 32 + (int)threadIdx.x % 32;
    if (n < 32) {
      const float4 four23 = *(const float4 *)(made0 + (0 + n) * 4);
      x0[t * 32 + 0] = four23.x;
      x0[t * 32 + 1] = four23.y;
      x0[t * 32 + 2] = four23.z;
      x0[t * 32 + 3] = four23.w;
      const float4 four24 = *(const float4 *)(made0 + (33 + n) * 4);
      x0[t * 32 + 4] = four24.x;
      x0[t * 32 + 5] = four24.y;
      x0[t * 32 + 6] = four24.z;
      x0[t * 32 + 7] = four24.w;
      const float4 four25 = *(const float4 *)(made0 + (66 + n) * 4);
      x0[t * 32 + 8] = four25.x;
      x0[t * 32 + 9] = four25.y;
      x0[t * 32 + 10] = four25.z;
      x0[t * 32 + 11] = four25.w;
      const float4 four26 = *(const float4 *)(made0 + (99 + n) * 4);
      x0[t * 32 + 12] = four26.x;
      x0[t * 32 + 13] = four26.y;
      x0[t * 32 + 14] = four26.z;
      x0[t * 32 + 15] = four26.w;
      const float4 four27 = *(const float4 *)(made0 + (132 + n) * 4);
      x0[t * 32 + 16] = four27.x;
      x0[t * 32 + 17] = four27.y;
      x0[t * 32 + 18] = four27.z;
      x0[t * 32 + 19] = four27.w;
      const float4 four28 = *(const float4 *)(made0 + (165 + n) * 4);
      x0[t * 32 + 20] = four28.x;
      x0[t * 32 + 21] = four28.y;
      x0[t * 32 + 22] = four28.z;
      x0[t * 32 + 23] = four28.w;
      const float4 four29 = *(const float4 *)(made0 + (198 + n) * 4);
      x0[t * 32 + 24] = four29.x;
      x0[t * 32 + 25] = four29.y;
      x0[t * 32 + 26] = four29.z;
      x0[t * 32 + 27] = four29.w;
      const float4 four30 = *(const float4 *)(made0 + (231 + n) * 4);
      x0[t * 32 + 28] = four30.x;
      x0[t * 32 + 29] = four30.y;
      x0[t * 32 + 30] = four30.z;
      x0[t * 32 + 31] = four30.w;
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
        const u8 *const stage = stages + turn.slot * 768;
        float v[1] = {};
        #pragma unroll
        for (int r = 0; r < 1; r++) {
          const int row32 = row + r;
          const int x_a_31 = row32;
          const u8 *const plane33 = stage + 0 + r * 64;
          const u8 *const plane34 = stage + 128 + r * 128;
          const u8 *const plane35 = stage + 256 + r * 512;
          #pragma unroll
          for (int t = 0; t < 1; t++) {
            const int n = t * 32 + (int)threadIdx.x % 32;
            {
              const int x_d_37 = n % 1 * 16;
              const int rest38 = n / 1;
              const int x_b_36 = rest38;
              const int v39 = mul_i32(4, 0);
              const int v40 = mul_i32(4, (0 + 1));
              const auto w41 = wide_load((const uint4 *)(plane35 + (0 * 512 + x_b_36 * 16 + x_d_37) * 1));
              const int v42 = *((const u8 *)(plane34 + (0 * 130 + x_b_36 * 4) * 1));
              const int v43 = *((const u8 *)(plane34 + (0 * 130 + x_b_36 * 4 + 2) * 1));
              const int v44 = v42;
              const int v45 = v43;
              const int v46 = *((const u8 *)(plane34 + (0 * 130 + x_b_36 * 4 + 1) * 1));
              const int v47 = *((const u8 *)(plane34 + (0 * 130 + x_b_36 * 4 + 3) * 1));
              const int v48 = v46;
              const int v49 = v47;
              const int v50 = mul_i32(256, v48);
              const int v51 = mul_i32(256, v49);
              const int v52 = add_i32(v44, v50);
              const int v53 = add_i32(v45, v51);
              const u32 bits54 = (u32)v52 >> (x_d_37 + 0);
              const u32 bytes55 = ((w41.w[0] >> v39 & 0xf0f0f0fu) + ((bits_apart(bits54 >> 0) << 0) * 16u));
              const u32 bytes56 = ((w41.w[1] >> v39 & 0xf0f0f0fu) + ((bits_apart(bits54 >> 4) << 0) * 16u));
              const u32 bytes57 = ((w41.w[2] >> v39 & 0xf0f0f0fu) + ((bits_apart(bits54 >> 8) << 0) * 16u));
              const u32 bytes58 = ((w41.w[3] >> v39 & 0xf0f0f0fu) + ((bits_apart(bits54 >> 12) << 0) * 16u));
              float sum59 = 0;
              sum59 = fma_f32(x0[t * 32 + 0], tiny_byte<0>(bytes55), sum59);
              sum59 = fma_f32(x0[t * 32 + 1], tiny_byte<1>(bytes55), sum59);
              sum59 = fma_f32(x0[t * 32 + 2], tiny_byte<2>(bytes55), sum59);
              sum59 = fma_f32(x0[t * 32 + 3], tiny_byte<3>(bytes55), sum59);
              sum59 = fma_f32(x0[t * 32 + 4], tiny_byte<0>(bytes56), sum59);
              sum59 = fma_f32(x0[t * 32 + 5], tiny_byte<1>(bytes56), sum59);
              sum59 = fma_f32(x0[t * 32 + 6], tiny_byte<2>(bytes56), sum59);
              sum59 = fma_f32(x0[t * 32 + 7], tiny_byte<3>(bytes56), sum59);
              sum59 = fma_f32(x0[t * 32 + 8], tiny_byte<0>(bytes57), sum59);
              sum59 = fma_f32(x0[t * 32 + 9], tiny_byte<1>(bytes57), sum59);
              sum59 = fma_f32(x0[t * 32 + 10], tiny_byte<2>(bytes57), sum59);
              sum59 = fma_f32(x0[t * 32 + 11], tiny_byte<3>(bytes57), sum59);
              sum59 = fma_f32(x0[t * 32 + 12], tiny_byte<0>(bytes58), sum59);
              sum59 = fma_f32(x0[t * 32 + 13], tiny_byte<1>(bytes58), sum59);
              sum59 = fma_f32(x0[t * 32 + 14], tiny_byte<2>(bytes58), sum59);
              sum59 = fma_f32(x0[t * 32 + 15], tiny_byte<3>(bytes58), sum59);
              sum59 = fma_f32(sum59, 0x1p29f, -16.0f * s0[t * 2 + 0]);
              const float v60 = from_f16(*((const u16 *)(plane33 + (0 * 32 + x_b_36) * 2)));
              const float v61 = v60;
              v[r * 1 + 0] = fma_f32(unit0 * v61, sum59, v[r * 1 + 0]);
              const u32 bits62 = (u32)v53 >> (x_d_37 + 0);
              const u32 bytes63 = ((w41.w[0] >> v40 & 0xf0f0f0fu) + ((bits_apart(bits62 >> 0) << 0) * 16u));
              const u32 bytes64 = ((w41.w[1] >> v40 & 0xf0f0f0fu) + ((bits_apart(bits62 >> 4) << 0) * 16u));
              const u32 bytes65 = ((w41.w[2] >> v40 & 0xf0f0f0fu) + ((bits_apart(bits62 >> 8) << 0) * 16u));
              const u32 bytes66 = ((w41.w[3] >> v40 & 0xf0f0f0fu) + ((bits_apart(bits62 >> 12) << 0) * 16u));
              float sum67 = 0;
              sum67 = fma_f32(x0[t * 32 + 16], tiny_byte<0>(bytes63), sum67);
              sum67 = fma_f32(x0[t * 32 + 17], tiny_byte<1>(bytes63), sum67);
              sum67 = fma_f32(x0[t * 32 + 18], tiny_byte<2>(bytes63), sum67);
              sum67 = fma_f32(x0[t * 32 + 19], tiny_byte<3>(bytes63), sum67);
              sum67 = fma_f32(x0[t * 32 + 20], tiny_byte<0>(bytes64), sum67);
              sum67 = fma_f32(x0[t * 32 + 21], tiny_byte<1>(bytes64), sum67);
              sum67 = fma_f32(x0[t * 32 + 22], tiny_byte<2>(bytes64), sum67);
              sum67 = fma_f32(x0[t * 32 + 23], tiny_byte<3>(bytes64), sum67);
              sum67 = fma_f32(x0[t * 32 + 24], tiny_byte<0>(bytes65), sum67);
              sum67 = fma_f32(x0[t * 32 + 25], tiny_byte<1>(bytes65), sum67);
              sum67 = fma_f32(x0[t * 32 + 26], tiny_byte<2>(bytes65), sum67);
              sum67 = fma_f32(x0[t * 32 + 27], tiny_byte<3>(bytes65), sum67);
              sum67 = fma_f32(x0[t * 32 + 28], tiny_byte<0>(bytes66), sum67);
              sum67 = fma_f32(x0[t * 32 + 29], tiny_byte<1>(bytes66), sum67);
              sum67 = fma_f32(x0[t * 32 + 30], tiny_byte<2>(bytes66), sum67);
              sum67 = fma_f32(x0[t * 32 + 31], tiny_byte<3>(bytes66), sum67);
              sum67 = fma_f32(sum67, 0x1p29f, -16.0f * s0[t * 2 + 1]);
              v[r * 1 + 0] = fma_f32(unit0 * v61, sum67, v[r * 1 + 0]);
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
      const int row69 = first + k;
      const int x_a_68 = row69;
      const float v70 = total_of<1>(results + (k * 1 + 0) * 1);
      *(b4_B4 + x_a_68) = v70;
    }
    users_wait<480>();
  }
}
extern "C" __global__ void __launch_bounds__(512) q5_0(const float *__restrict__ b0_B0, const u8 *__restrict__ b1_B2, const u8 *__restrict__ b2_B3, const u16 *__restrict__ b3_B1, float *__restrict__ b4_B4, const i64 *__restrict__ dims, u32 constant) {
  extern __shared__ __align__(128) u8 pool[];
  u64 *const full = (u64 *)pool, *const empty = full + 15;
  float *const parts = (float *)(pool + 256);
  u8 *const stages = pool + 1024;
  float *const results = (float *)(stages + 11520);
  if (threadIdx.x == 480) {
    for (int k = 0; k < 15; k++) stage_open(full + k, 1), stage_open(empty + k, 1);
    before_copies();
  }
  __syncthreads();
  let_next_start();
  if (threadIdx.x >= 480) {
    if (threadIdx.x > 480) return;
    if ((constant & 14) != 14) {
      wait_for_previous();
      before_copies();
    }
    q5_0_fill(b0_B0, b1_B2, b2_B3, b3_B1, b4_B4, dims, stages, full, empty);
    return;
  }
  q5_0_fetch(b0_B0, b1_B2, b2_B3, b3_B1, b4_B4, dims, constant);
  wait_for_previous();
  q5_0_use(settled(b0_B0), settled(b1_B2), settled(b2_B3), settled(b3_B1), settled(b4_B4), dims, stages, full, empty, parts, results);
}
