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
    const int n = t * 32 + (int)threadIdx.x % 32;
    {
      const int x_d_8 = n % 1 * 16;
      const int rest9 = n / 1;
      const int x_b_7 = rest9;
      if (constant >> 0 & 1) fetch_early(b0_B0 + x_b_7 * 32 + 0 * 16 + x_d_8);
    }
  }
}
INLINE void q5_0_use(const float *__restrict__ b0_B0, const u8 *__restrict__ b1_B2, const u8 *__restrict__ b2_B3, const u16 *__restrict__ b3_B1, float *__restrict__ b4_B4, const i64 *__restrict__ dims, u8 *stages, u64 *full, u64 *empty, float *parts, float *results) {
  float x0[32] = {};
  #pragma unroll
  for (int t = 0; t < 1; t++) {
    const int n = t * 32 + (int)threadIdx.x % 32;
    {
      const int x_d_11 = n % 1 * 16;
      const int rest12 = n / 1;
      const int x_b_10 = rest12;
      const auto w13 = wide_load((const uint4 *)(b0_B0 + x_b_10 * 32 + 0 * 16 + x_d_11));
      const auto w14 = wide_load((const uint4 *)(b0_B0 + x_b_10 * 32 + 0 * 16 + x_d_11 + 4));
      const auto w15 = wide_load((const uint4 *)(b0_B0 + x_b_10 * 32 + 0 * 16 + x_d_11 + 8));
      const auto w16 = wide_load((const uint4 *)(b0_B0 + x_b_10 * 32 + 0 * 16 + x_d_11 + 12));
      const float v17 = __uint_as_float(w13.w[0]);
      const float v18 = __uint_as_float(w13.w[1]);
      const float v19 = __uint_as_float(w13.w[2]);
      const float v20 = __uint_as_float(w13.w[3]);
      const float v21 = __uint_as_float(w14.w[0]);
      const float v22 = __uint_as_float(w14.w[1]);
      const float v23 = __uint_as_float(w14.w[2]);
      const float v24 = __uint_as_float(w14.w[3]);
      const float v25 = __uint_as_float(w15.w[0]);
      const float v26 = __uint_as_float(w15.w[1]);
      const float v27 = __uint_as_float(w15.w[2]);
      const float v28 = __uint_as_float(w15.w[3]);
      const float v29 = __uint_as_float(w16.w[0]);
      const float v30 = __uint_as_float(w16.w[1]);
      const float v31 = __uint_as_float(w16.w[2]);
      const float v32 = __uint_as_float(w16.w[3]);
      const auto w33 = wide_load((const uint4 *)(b0_B0 + x_b_10 * 32 + 0 * 16 + x_d_11 + 16));
      const auto w34 = wide_load((const uint4 *)(b0_B0 + x_b_10 * 32 + 0 * 16 + x_d_11 + 16 + 4));
      const auto w35 = wide_load((const uint4 *)(b0_B0 + x_b_10 * 32 + 0 * 16 + x_d_11 + 16 + 8));
      const auto w36 = wide_load((const uint4 *)(b0_B0 + x_b_10 * 32 + 0 * 16 + x_d_11 + 16 + 12));
      const float v37 = __uint_as_float(w33.w[0]);
      const float v38 = __uint_as_float(w33.w[1]);
      const float v39 = __uint_as_float(w33.w[2]);
      const float v40 = __uint_as_float(w33.w[3]);
      const float v41 = __uint_as_float(w34.w[0]);
      const float v42 = __uint_as_float(w34.w[1]);
      const float v43 = __uint_as_float(w34.w[2]);
      const float v44 = __uint_as_float(w34.w[3]);
      const float v45 = __uint_as_float(w35.w[0]);
      const float v46 = __uint_as_float(w35.w[1]);
      const float v47 = __uint_as_float(w35.w[2]);
      const float v48 = __uint_as_float(w35.w[3]);
      const float v49 = __uint_as_float(w36.w[0]);
      const float v50 = __uint_as_float(w36.w[1]);
      const float v51 = __uint_as_float(w36.w[2]);
      const float v52 = __uint_as_float(w36.w[3]);
      x0[t * 32 + 0] = v17;
      x0[t * 32 + 1] = v18;
      x0[t * 32 + 2] = v19;
      x0[t * 32 + 3] = v20;
      x0[t * 32 + 4] = v21;
      x0[t * 32 + 5] = v22;
      x0[t * 32 + 6] = v23;
      x0[t * 32 + 7] = v24;
      x0[t * 32 + 8] = v25;
      x0[t * 32 + 9] = v26;
      x0[t * 32 + 10] = v27;
      x0[t * 32 + 11] = v28;
      x0[t * 32 + 12] = v29;
      x0[t * 32 + 13] = v30;
      x0[t * 32 + 14] = v31;
      x0[t * 32 + 15] = v32;
      x0[t * 32 + 16] = v37;
      x0[t * 32 + 17] = v38;
      x0[t * 32 + 18] = v39;
      x0[t * 32 + 19] = v40;
      x0[t * 32 + 20] = v41;
      x0[t * 32 + 21] = v42;
      x0[t * 32 + 22] = v43;
      x0[t * 32 + 23] = v44;
      x0[t * 32 + 24] = v45;
      x0[t * 32 + 25] = v46;
      x0[t * 32 + 26] = v47;
      x0[t * 32 + 27] = v48;
      x0[t * 32 + 28] = v49;
      x0[t * 32 + 29] = v50;
      x0[t * 32 + 30] = v51;
      x0[t * 32 + 31] = v52;
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
          const int row54 = row + r;
          const int x_a_53 = row54;
          const u8 *const plane55 = stage + 0 + r * 64;
          const u8 *const plane56 = stage + 128 + r * 128;
          const u8 *const plane57 = stage + 256 + r * 512;
          #pragma unroll
          for (int t = 0; t < 1; t++) {
            const int n = t * 32 + (int)threadIdx.x % 32;
            {
              const int x_d_59 = n % 1 * 16;
              const int rest60 = n / 1;
              const int x_b_58 = rest60;
              const int v61 = mul_i32(4, 0);
              const int v62 = mul_i32(4, (0 + 1));
              const auto w63 = wide_load((const uint4 *)(plane57 + (0 * 512 + x_b_58 * 16 + x_d_59) * 1));
              const int v64 = *((const u8 *)(plane56 + (0 * 130 + x_b_58 * 4) * 1));
              const int v65 = *((const u8 *)(plane56 + (0 * 130 + x_b_58 * 4 + 2) * 1));
              const int v66 = v64;
              const int v67 = v65;
              const int v68 = *((const u8 *)(plane56 + (0 * 130 + x_b_58 * 4 + 1) * 1));
              const int v69 = *((const u8 *)(plane56 + (0 * 130 + x_b_58 * 4 + 3) * 1));
              const int v70 = v68;
              const int v71 = v69;
              const int v72 = mul_i32(256, v70);
              const int v73 = mul_i32(256, v71);
              const int v74 = add_i32(v66, v72);
              const int v75 = add_i32(v67, v73);
              const u32 bits76 = (u32)v74 >> (x_d_59 + 0);
              const u32 u77 = ((w63.w[0] >> v61 & 0xf0f0f0fu) + ((bits_apart(bits76 >> 0) << 0) * 16u));
              const u32 u78 = ((w63.w[1] >> v61 & 0xf0f0f0fu) + ((bits_apart(bits76 >> 4) << 0) * 16u));
              const u32 u79 = ((w63.w[2] >> v61 & 0xf0f0f0fu) + ((bits_apart(bits76 >> 8) << 0) * 16u));
              const u32 u80 = ((w63.w[3] >> v61 & 0xf0f0f0fu) + ((bits_apart(bits76 >> 12) << 0) * 16u));
              float sum81 = 0;
              sum81 = fma_f32(x0[t * 32 + 0], tiny_byte<0>(u77), sum81);
              sum81 = fma_f32(x0[t * 32 + 1], tiny_byte<1>(u77), sum81);
              sum81 = fma_f32(x0[t * 32 + 2], tiny_byte<2>(u77), sum81);
              sum81 = fma_f32(x0[t * 32 + 3], tiny_byte<3>(u77), sum81);
              sum81 = fma_f32(x0[t * 32 + 4], tiny_byte<0>(u78), sum81);
              sum81 = fma_f32(x0[t * 32 + 5], tiny_byte<1>(u78), sum81);
              sum81 = fma_f32(x0[t * 32 + 6], tiny_byte<2>(u78), sum81);
              sum81 = fma_f32(x0[t * 32 + 7], tiny_byte<3>(u78), sum81);
              sum81 = fma_f32(x0[t * 32 + 8], tiny_byte<0>(u79), sum81);
              sum81 = fma_f32(x0[t * 32 + 9], tiny_byte<1>(u79), sum81);
              sum81 = fma_f32(x0[t * 32 + 10], tiny_byte<2>(u79), sum81);
              sum81 = fma_f32(x0[t * 32 + 11], tiny_byte<3>(u79), sum81);
              sum81 = fma_f32(x0[t * 32 + 12], tiny_byte<0>(u80), sum81);
              sum81 = fma_f32(x0[t * 32 + 13], tiny_byte<1>(u80), sum81);
              sum81 = fma_f32(x0[t * 32 + 14], tiny_byte<2>(u80), sum81);
              sum81 = fma_f32(x0[t * 32 + 15], tiny_byte<3>(u80), sum81);
              sum81 = fma_f32(sum81, 0x1p29f, -16.0f * s0[t * 2 + 0]);
              const float v82 = from_f16(*((const u16 *)(plane55 + (0 * 32 + x_b_58) * 2)));
              const float v83 = v82;
              v[r * 1 + 0] = fma_f32(unit0 * v83, sum81, v[r * 1 + 0]);
              const u32 bits84 = (u32)v75 >> (x_d_59 + 0);
              const u32 u85 = ((w63.w[0] >> v62 & 0xf0f0f0fu) + ((bits_apart(bits84 >> 0) << 0) * 16u));
              const u32 u86 = ((w63.w[1] >> v62 & 0xf0f0f0fu) + ((bits_apart(bits84 >> 4) << 0) * 16u));
              const u32 u87 = ((w63.w[2] >> v62 & 0xf0f0f0fu) + ((bits_apart(bits84 >> 8) << 0) * 16u));
              const u32 u88 = ((w63.w[3] >> v62 & 0xf0f0f0fu) + ((bits_apart(bits84 >> 12) << 0) * 16u));
              float sum89 = 0;
              sum89 = fma_f32(x0[t * 32 + 16], tiny_byte<0>(u85), sum89);
              sum89 = fma_f32(x0[t * 32 + 17], tiny_byte<1>(u85), sum89);
              sum89 = fma_f32(x0[t * 32 + 18], tiny_byte<2>(u85), sum89);
              sum89 = fma_f32(x0[t * 32 + 19], tiny_byte<3>(u85), sum89);
              sum89 = fma_f32(x0[t * 32 + 20], tiny_byte<0>(u86), sum89);
              sum89 = fma_f32(x0[t * 32 + 21], tiny_byte<1>(u86), sum89);
              sum89 = fma_f32(x0[t * 32 + 22], tiny_byte<2>(u86), sum89);
              sum89 = fma_f32(x0[t * 32 + 23], tiny_byte<3>(u86), sum89);
              sum89 = fma_f32(x0[t * 32 + 24], tiny_byte<0>(u87), sum89);
              sum89 = fma_f32(x0[t * 32 + 25], tiny_byte<1>(u87), sum89);
              sum89 = fma_f32(x0[t * 32 + 26], tiny_byte<2>(u87), sum89);
              sum89 = fma_f32(x0[t * 32 + 27], tiny_byte<3>(u87), sum89);
              sum89 = fma_f32(x0[t * 32 + 28], tiny_byte<0>(u88), sum89);
              sum89 = fma_f32(x0[t * 32 + 29], tiny_byte<1>(u88), sum89);
              sum89 = fma_f32(x0[t * 32 + 30], tiny_byte<2>(u88), sum89);
              sum89 = fma_f32(x0[t * 32 + 31], tiny_byte<3>(u88), sum89);
              sum89 = fma_f32(sum89, 0x1p29f, -16.0f * s0[t * 2 + 1]);
              v[r * 1 + 0] = fma_f32(unit0 * v83, sum89, v[r * 1 + 0]);
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
      const int row91 = first + k;
      const int x_a_90 = row91;
      const float v92 = total_of<1>(results + (k * 1 + 0) * 1);
      *(b4_B4 + x_a_90) = v92;
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
