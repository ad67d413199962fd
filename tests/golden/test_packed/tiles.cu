INLINE void tiles_fill(const float *__restrict__ b0_B0, const u8 *__restrict__ b1_B2, const u16 *__restrict__ b2_B1, float *__restrict__ b3_B3, const i64 *__restrict__ dims, u8 *stages, u64 *full, u64 *empty) {
  Filler<5, 36864, 2> filler(stages, full, empty);
  for (int cell = blockIdx.x; cell < 132; cell += gridDim.x) {
    const int first = (int)((i64)cell * 4096 / 132);
    const int last = (int)((i64)(cell + 1) * 4096 / 132);
    const u8 *from = 0;
    i64 origin = 0;
    int size = 0, place = 0;
    if (threadIdx.x == 256) from = (const u8 *)b2_B1, origin = 0, size = 256, place = 0;
    if (threadIdx.x == 257) from = (const u8 *)b1_B2, origin = 0, size = 2048, place = 4096;
    for (int row = first; row < last; row += 16) {
      const i64 start = origin + (i64)row * size;
      const i64 stop = start + (i64)least(16, last - row) * size;
      const i64 begin = start / 16 * 16;
      const u32 bytes = (u32)((stop + 15) / 16 * 16 - begin);
      u8 *const to = filler.claim(bytes) + place;
      if (bytes) filler.copy(to, from + begin, bytes);
      filler.turn.next();
    }
  }
}
INLINE void tiles_fetch(const float *__restrict__ b0_B0, const u8 *__restrict__ b1_B2, const u16 *__restrict__ b2_B1, float *__restrict__ b3_B3, const i64 *__restrict__ dims, u32 constant) {
  for (int t = 0; t < 2; t++) {
    const int n = t * 256 + (int)threadIdx.x % 256;
    {
      const int x_d_2 = n % 4 * 4;
      const int rest3 = n / 4;
      const int x_b_1 = rest3;
      if (constant >> 0 & 1) fetch_early(b0_B0 + x_b_1 * 32 + 0 * 16 + x_d_2);
    }
  }
}
INLINE void tiles_use(const float *__restrict__ b0_B0, const u8 *__restrict__ b1_B2, const u16 *__restrict__ b2_B1, float *__restrict__ b3_B3, const i64 *__restrict__ dims, u8 *stages, u64 *full, u64 *empty, float *parts, float *results) {
  const int lane = (int)threadIdx.x % 4, high = (int)threadIdx.x % 32 / 4;
  const int warp = (int)threadIdx.x % 256 / 32;
  u8 *const made = (u8 *)results + 1024;
  #pragma unroll
  for (int t = 0; t < 2; t++) {
    float y[8] = {};
    const int n = t * 256 + (int)threadIdx.x % 256;
    {
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
      y[0] = v8;
      y[1] = v9;
      y[2] = v10;
      y[3] = v11;
      y[4] = v13;
      y[5] = v14;
      y[6] = v15;
      y[7] = v16;
    }
    digits_keep<2, 16, 160>(y, made, n, n < 512);
  }
  for (int k = threadIdx.x; k < 32; k += 256) {
    ((u32 *)(made + 20480))[k] = 0;
  }
  users_wait<256>();
  u32 digits[4][2][8];
  float unit[4], s[4][2];
  #pragma unroll
  for (int t = 0; t < 4; t++) {
    const int m = (t * 8 + warp) * 4 + lane;
    const int n = m;
    const u8 *const record = made + n * 160;
    const float *const tail = (const float *)(record + 128);
    unit[t] = tail[0];
    s[t][0] = tail[1];
    s[t][1] = tail[2];
    const u8 *const from = high / 2 == lane ? record + high % 2 * 32 : made + 20480;
    const uint4 four17 = *(const uint4 *)(from + 0);
    digits[t][0][0] = four17.x;
    digits[t][0][1] = four17.y;
    digits[t][0][2] = four17.z;
    digits[t][0][3] = four17.w;
    const uint4 four18 = *(const uint4 *)(from + 16);
    digits[t][0][4] = four18.x;
    digits[t][0][5] = four18.y;
    digits[t][0][6] = four18.z;
    digits[t][0][7] = four18.w;
    const uint4 four19 = *(const uint4 *)(from + 64);
    digits[t][1][0] = four19.x;
    digits[t][1][1] = four19.y;
    digits[t][1][2] = four19.z;
    digits[t][1][3] = four19.w;
    const uint4 four20 = *(const uint4 *)(from + 80);
    digits[t][1][4] = four20.x;
    digits[t][1][5] = four20.y;
    digits[t][1][6] = four20.z;
    digits[t][1][7] = four20.w;
  }
  Turn<5> turn;
  for (int cell = blockIdx.x; cell < 132; cell += gridDim.x) {
    const int first = (int)((i64)cell * 4096 / 132);
    const int last = (int)((i64)(cell + 1) * 4096 / 132);
    for (int row = first; row < last; row += 16) {
      {
        stage_await(full + turn.slot, turn.lap);
        const u8 *const stage = stages + turn.slot * 36864;
        float v[2] = {};
        #pragma unroll
        for (int t = 0; t < 4; t++) {
          const int m = (t * 8 + warp) * 4 + lane;
          const int n = m;
          u32 a[2][8] = {};
          int sums[1][2][2][4] = {};
          #pragma unroll
          for (int h = 0; h < 2; h++) {
            {
              const int r = h * 8 + high;
              const int x_d_22 = n % 1 * 16;
              const int rest23 = n / 1;
              const int x_b_21 = rest23;
              const int row25 = row + r;
              const int x_a_24 = row25;
              const u8 *const plane26 = stage + 0 + r * 256;
              const u8 *const plane27 = stage + 4096 + r * 2048;
              const auto w28 = wide_load((const uint4 *)(plane27 + (0 * 2048 + x_b_21 * 16 + x_d_22) * 1));
              a[0 + h][0] = (w28.w[0] & 0xf0f0f0fu);
              a[0 + h][1] = (w28.w[1] & 0xf0f0f0fu);
              a[0 + h][2] = (w28.w[2] & 0xf0f0f0fu);
              a[0 + h][3] = (w28.w[3] & 0xf0f0f0fu);
              a[0 + h][4] = (w28.w[0] & 0xf0f0f0f0u);
              a[0 + h][5] = (w28.w[1] & 0xf0f0f0f0u);
              a[0 + h][6] = (w28.w[2] & 0xf0f0f0f0u);
              a[0 + h][7] = (w28.w[3] & 0xf0f0f0f0u);
            }
          }
          multiply_bytes(sums[0][0][0], a[0][0], a[1][0], a[0][1], a[1][1], digits[t][0][0], digits[t][0][1]);
          multiply_bytes(sums[0][0][1], a[0][0], a[1][0], a[0][1], a[1][1], digits[t][1][0], digits[t][1][1]);
          multiply_bytes(sums[0][0][0], a[0][2], a[1][2], a[0][3], a[1][3], digits[t][0][2], digits[t][0][3]);
          multiply_bytes(sums[0][0][1], a[0][2], a[1][2], a[0][3], a[1][3], digits[t][1][2], digits[t][1][3]);
          multiply_bytes(sums[0][1][0], a[0][4], a[1][4], a[0][5], a[1][5], digits[t][0][4], digits[t][0][5]);
          multiply_bytes(sums[0][1][1], a[0][4], a[1][4], a[0][5], a[1][5], digits[t][1][4], digits[t][1][5]);
          multiply_bytes(sums[0][1][0], a[0][6], a[1][6], a[0][7], a[1][7], digits[t][0][6], digits[t][0][7]);
          multiply_bytes(sums[0][1][1], a[0][6], a[1][6], a[0][7], a[1][7], digits[t][1][6], digits[t][1][7]);
          {
            #pragma unroll
            for (int h = 0; h < 2; h++) {
              {
                const int r = h * 8 + high;
                const int x_d_30 = n % 1 * 16;
                const int rest31 = n / 1;
                const int x_b_29 = rest31;
                const int row33 = row + r;
                const int x_a_32 = row33;
                const u8 *const plane34 = stage + 0 + r * 256;
                const u8 *const plane35 = stage + 4096 + r * 2048;
                float sum36 = digits_sum(sums[(0 + h) / 2][0][0][(0 + h) % 2 * 2 + 0], sums[(0 + h) / 2][0][0][(0 + h) % 2 * 2 + 1], sums[(0 + h) / 2][0][1][(0 + h) % 2 * 2 + 0], sums[(0 + h) / 2][0][1][(0 + h) % 2 * 2 + 1], 0x1p-29f);
                sum36 = fma_f32(-8.0f, s[t][0], sum36);
                const float v37 = from_f16(*((const u16 *)(plane34 + (0 * 128 + x_b_29) * 2)));
                const float v38 = v37;
                v[0 + h] = fma_f32(unit[t] * v38, sum36, v[0 + h]);
                float sum39 = digits_sum(sums[(0 + h) / 2][1][0][(0 + h) % 2 * 2 + 0], sums[(0 + h) / 2][1][0][(0 + h) % 2 * 2 + 1], sums[(0 + h) / 2][1][1][(0 + h) % 2 * 2 + 0], sums[(0 + h) / 2][1][1][(0 + h) % 2 * 2 + 1], 0x1p-33f);
                sum39 = fma_f32(-8.0f, s[t][1], sum39);
                v[0 + h] = fma_f32(unit[t] * v38, sum39, v[0 + h]);
              }
            }
          }
        }
        stage_release(empty + turn.slot);
        #pragma unroll
        for (int k = 0; k < 2; k++) {
          const float total = across_sum_f32<4>(v[k]);
          const int r = k % 2 * 8 + high;
          if (lane == 0 && row + r < last) results[((row - first + r) * 1 + k / 2) * 8 + warp] = total;
        }
      }
      turn.next();
    }
    users_wait<256>();
    for (int k = threadIdx.x; k < last - first; k += 256) {
      const int row41 = first + k;
      const int x_a_40 = row41;
      const float v42 = total_of<8>(results + (k * 1 + 0) * 8);
      *(b3_B3 + x_a_40) = v42;
    }
    users_wait<256>();
  }
}
extern "C" __global__ void __launch_bounds__(288) tiles(const float *__restrict__ b0_B0, const u8 *__restrict__ b1_B2, const u16 *__restrict__ b2_B1, float *__restrict__ b3_B3, const i64 *__restrict__ dims, u32 constant) {
  extern __shared__ __align__(128) u8 pool[];
  u64 *const full = (u64 *)pool, *const empty = full + 5;
  float *const parts = (float *)(pool + 256);
  u8 *const stages = pool + 1024;
  float *const results = (float *)(stages + 184320);
  if (threadIdx.x == 256) {
    for (int k = 0; k < 5; k++) stage_open(full + k, 2), stage_open(empty + k, 8);
    before_copies();
  }
  __syncthreads();
  let_next_start();
  if (threadIdx.x >= 256) {
    if (threadIdx.x > 257) return;
    if ((constant & 6) != 6) {
      wait_for_previous();
      before_copies();
    }
    tiles_fill(b0_B0, b1_B2, b2_B1, b3_B3, dims, stages, full, empty);
    return;
  }
  tiles_fetch(b0_B0, b1_B2, b2_B1, b3_B3, dims, constant);
  wait_for_previous();
  tiles_use(settled(b0_B0), settled(b1_B2), settled(b2_B1), settled(b3_B3), dims, stages, full, empty, parts, results);
}
