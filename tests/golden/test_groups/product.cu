INLINE void product_feed(const u16 *__restrict__ b0_A, const u16 *__restrict__ b1_B, const u16 *__restrict__ b2_E0, u16 *__restrict__ b3_R, const i64 *__restrict__ dims, const TensorMap &map0, const TensorMap &map1, const TensorMap &map2, u32 signals) {
  const u32 shared = signals + 1024;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int team = group_of_warps() - 0;
  const int cells1 = 4 * 3;
  Ring<4> ring(signals, 0, 4);
  for (int lap = 0;; lap++) {
    const int place = lap & 1 ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
    const int cell = lap * gridDim.x + place;
    if (cell >= cells1) break;
    const int rest2 = cell / (4 * 3);
    const int tile = cell % (4 * 3);
    const int group = tile / (8 * 3) * 8;
    const int members = least(8, 4 - group);
    const int inner = tile - group * 3;
    const int first_row = (group + inner % members) * 128;
    const int first_column = inner / members * 256;
    const int row = first_row + warp / 1 * 16 + lane / 4;
    {
      const int turns3 = (320 - 0 + 63) / 64;
      for (int n = 0; n < turns3; n++) {
        ring.claim();
        const u32 signal = ring.full + 8 * ring.slot;
        if (lane == 0) signal_expect(signal, 49152);
        const u32 to = shared + ring.slot * 49152;
        const int summed4 = 0 + n * 64;
        if (lane == 0) {
          fetch_box(to + 0, &map0, signal, summed4 + 0, first_row, 0);
        }
        if (lane == 0) {
          fetch_box(to + 16384 + 0, &map1, signal, summed4 + 0, first_column, 0);
        }
        ring.next();
      }
    }
    for (int q = 0; q < 4; q++) {
      ring.claim();
      const u32 signal = ring.full + 8 * ring.slot;
      if (lane == 0) signal_give(signal);
      ring.next();
    }
  }
}
INLINE void product_use(const u16 *__restrict__ b0_A, const u16 *__restrict__ b1_B, const u16 *__restrict__ b2_E0, u16 *__restrict__ b3_R, const i64 *__restrict__ dims, const TensorMap &map0, const TensorMap &map1, const TensorMap &map2, u32 signals) {
  const u32 shared = signals + 1024;
  const int lane = threadIdx.x % 32, warp = (threadIdx.x - 128) / 32;
  const int team = group_of_warps() - 1;
  const int cells1 = 4 * 3;
  Ring<4> ring(signals, 0, 4);
  const bool first_warp = __shfl_sync(FULL_WARP, warp % 4, 0) == 0;
  for (int lap = 0;; lap++) {
    const int place = lap & 1 ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
    const int cell = lap * gridDim.x + place;
    if (cell >= cells1) break;
    const int rest2 = cell / (4 * 3);
    const int tile = cell % (4 * 3);
    const int group = tile / (8 * 3) * 8;
    const int members = least(8, 4 - group);
    const int inner = tile - group * 3;
    const int first_row = (group + inner % members) * 128;
    const int first_column = inner / members * 256;
    const int row = first_row + warp / 1 * 16 + lane / 4;
    const int column = first_column + lane % 4 * 2;
    float s3[2][64];
    {
      const int turns4 = (320 - 0 + 63) / 64;
      int before = -1;
      for (int n = 0; n < turns4; n++) {
        ring.await();
        const u32 stage = shared + ring.slot * 49152;
        products_begin();
        const u32 tile5 = tile_at(stage + 16384, 16);
        const u32 tile6 = tile_at(stage + team * 8192, 16);
        wgmma_bf16_ss_256(s3, tile6 + 0, tile5 + 0, n > 0);
        wgmma_bf16_ss_256(s3, tile6 + 2, tile5 + 2, 1);
        wgmma_bf16_ss_256(s3, tile6 + 4, tile5 + 4, 1);
        wgmma_bf16_ss_256(s3, tile6 + 6, tile5 + 6, 1);
        products_end();
        products_await<1>();
        if (before >= 0) ring.release(before);
        before = ring.slot;
        ring.next();
      }
      products_await<0>();
      settle(s3);
      if (before >= 0) ring.release(before);
    }
    int sending = -1;
    #pragma unroll
    for (int q = 0; q < 4; q++) {
      ring.await();
      const u32 stage = shared + ring.slot * 49152;
      float p7[2][16];
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        #pragma unroll
        for (int j = 0; j < 8; j++) {
          p7[i][j * 2 + 0] = s3[i][q * 16 + j * 2 + 0];
          p7[i][j * 2 + 1] = s3[i][q * 16 + j * 2 + 1];
        }
      }
      float t8[16];
      #pragma unroll
      for (int j = 0; j < 8; j++) {
        const int x_n_9 = least((column + q * 64) + j * 8, 640 - 2);
        const auto w10 = wide_load((const u32 *)(b2_E0 + x_n_9));
        const float v11 = from_bf16((u16)(w10.w[0] >> 0));
        const float v12 = from_bf16((u16)(w10.w[0] >> 16));
        t8[j * 2 + 0] = v11;
        t8[j * 2 + 1] = v12;
      }
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        const int x_m_13 = row + i * 8;
        #pragma unroll
        for (int j = 0; j < 8; j++) {
          const int x_n_14 = least((column + q * 64) + j * 8, 640 - 2);
          const float v15 = t8[j * 2 + 0];
          const float v16 = t8[j * 2 + 1];
          const float v17 = (p7[i][j * 2 + 0] + v15);
          const float v18 = (p7[i][j * 2 + 1] + v16);
          write_pair(pair_place<2, 128>(stage + 0, warp * 16 + lane / 4 + i * 8, j), pack<true>(v17, v18));
        }
      }
      group_meet(team);
      if (first_warp) {
        if (lane == 0) {
          send_box(stage + 0 + team * 8192, &map2, first_column + q * 64 + 0, first_row + team * 64, 0);
          sent_next();
          sent_read<1>();
        }
        if (sending >= 0) ring.release(sending);
      }
      else ring.release(ring.slot);
      sending = ring.slot;
      ring.next();
    }
    if (first_warp) {
      if (lane == 0) sent_read<0>();
      ring.release(sending);
    }
  }
  if (threadIdx.x % 128 == 0) sent_all();
}
extern "C" __global__ void __launch_bounds__(384, 1) product(const u16 *__restrict__ b0_A, const u16 *__restrict__ b1_B, const u16 *__restrict__ b2_E0, u16 *__restrict__ b3_R, const i64 *__restrict__ dims, const __grid_constant__ TensorMap map0, const __grid_constant__ TensorMap map1, const __grid_constant__ TensorMap map2) {
  extern __shared__ __align__(1024) u8 pool[];
  let_next_start();
  const u32 signals = aligned_pool(pool);
  open_signals<4, 1, 8>(signals);
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) fetch_map(&map0);
  if (threadIdx.x == 1) fetch_map(&map1);
  if (threadIdx.x == 2) fetch_map(&map2);
  wait_for_previous();
  if (group_of_warps() == 0) {
    give_registers<40>();
    if (threadIdx.x < 32) product_feed(settled(b0_A), settled(b1_B), settled(b2_E0), settled(b3_R), dims, map0, map1, map2, signals);
  } else {
    take_registers<232>();
    product_use(settled(b0_A), settled(b1_B), settled(b2_E0), settled(b3_R), dims, map0, map1, map2, signals);
  }
}
