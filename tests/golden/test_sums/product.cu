INLINE void product_cells(const u16 *__restrict__ b0_A, const u16 *__restrict__ b1_B, const float *__restrict__ b2_E0, const u16 *__restrict__ b3_E1, u16 *__restrict__ b4_R, const i64 *__restrict__ dims) {
  extern __shared__ __align__(16) u8 pool[];
  const u32 shared = shared_address(pool);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int cell = blockIdx.x; cell < 7 * 2; cell += gridDim.x) {
    const int rest1 = cell / (7 * 2);
    const int tile = cell % (7 * 2);
    const int group = tile / (8 * 2) * 8;
    const int members = least(8, 7 - group);
    const int inner = tile - group * 2;
    const int first_row = (group + inner % members) * 16;
    const int first_column = inner / members * 64;
    const int row = first_row + lane / 4;
    const int column = first_column + warp % 4 * 16 + lane % 4 * 2;
    float s2[2][4] = {};
    {
      const int turns3 = (512 - 0 + 127) / 128;
      #pragma unroll
      for (int n = 0; n < 3; n++) {
        if (n < turns3) {
          const u32 stage = shared + n * 20480;
          const int summed4 = 0 + n * 128;
          {
            copy_tile<16, 16, 128, 8, false>(stage, b0_A + first_row * 512 + summed4, 512, 100 - first_row, 512 - summed4);
          }
          {
            copy_tile<64, 16, 128, 8, false>(stage + 4096, b1_B + first_column * 512 + summed4, 512, 72 - first_column, 512 - summed4);
          }
        }
        async_commit();
      }
      int slot = 0, next = 3;
      for (int turn = 0; turn < turns3; turn++) {
        async_wait<2>();
        __syncthreads();
        const int n = turn + 3;
        if (n < turns3) {
          const u32 stage = shared + next * 20480;
          const int summed5 = 0 + n * 128;
          {
            copy_tile<16, 16, 128, 8, false>(stage, b0_A + first_row * 512 + summed5, 512, 100 - first_row, 512 - summed5);
          }
          {
            copy_tile<64, 16, 128, 8, false>(stage + 4096, b1_B + first_column * 512 + summed5, 512, 72 - first_column, 512 - summed5);
          }
        }
        async_commit();
        const u32 stage = shared + slot * 20480;
        #pragma unroll
        for (int k = 0; k < 8; k++) {
          u32 a0[1][4];
          load_rows<16, false>(a0, stage, 0, k);
          multiply<true, 16, false>(s2, a0, stage + 4096, warp % 4 * 16, k);
        }
        slot = slot == 3 ? 0 : slot + 1;
        next = next == 3 ? 0 : next + 1;
      }
      async_wait<0>();
      __syncthreads();
    }
    float t6[4];
    #pragma unroll
    for (int j = 0; j < 2; j++) {
      const int x_n_7 = least(column + j * 8, 72 - 2);
      const auto w8 = wide_load((const uint2 *)(b2_E0 + x_n_7));
      const float v9 = __uint_as_float(w8.w[0]);
      const float v10 = __uint_as_float(w8.w[1]);
      t6[j * 2 + 0] = v9;
      t6[j * 2 + 1] = v10;
    }
    #pragma unroll
    for (int i = 0; i < 2; i++) {
      const int x_m_11 = least(row + i * 8, 100 - 1);
      if (row + i * 8 < 100) {
        #pragma unroll
        for (int j = 0; j < 2; j++) {
          const int x_n_12 = least(column + j * 8, 72 - 2);
          const float v13 = (s2[i][j * 2 + 0] + t6[j * 2 + 0]);
          const float v14 = (s2[i][j * 2 + 1] + t6[j * 2 + 1]);
          const float v15 = (v13 * -0x1.8000000000000p+0f);
          const float v16 = (v14 * -0x1.8000000000000p+0f);
          const float v17 = exp2_f32(v15);
          const float v18 = exp2_f32(v16);
          const float v19 = (v17 + 1.0f);
          const float v20 = (v18 + 1.0f);
          const float v21 = recip_f32(v19);
          const float v22 = recip_f32(v20);
          const float v23 = (v13 * v21);
          const float v24 = (v14 * v22);
          const auto w25 = wide_load((const u32 *)(b3_E1 + x_m_11 * 72 + x_n_12));
          const float v26 = from_bf16((u16)(w25.w[0] >> 0));
          const float v27 = from_bf16((u16)(w25.w[0] >> 16));
          const float v28 = v26;
          const float v29 = v27;
          const float v30 = (v23 + v28);
          const float v31 = (v24 + v29);
          const float v32 = round_bf16(v30);
          const float v33 = round_bf16(v31);
          if (column + j * 8 < 72) {
            wide_store((u32 *)(b4_R + x_m_11 * 72 + x_n_12), two(held_bf16(v32), held_bf16(v33)));
          }
        }
      }
    }
  }
}
extern "C" __global__ void __launch_bounds__(128) product(const u16 *__restrict__ b0_A, const u16 *__restrict__ b1_B, const float *__restrict__ b2_E0, const u16 *__restrict__ b3_E1, u16 *__restrict__ b4_R, const i64 *__restrict__ dims) {
  let_next_start();
  wait_for_previous();
  product_cells(settled(b0_A), settled(b1_B), settled(b2_E0), settled(b3_E1), settled(b4_R), dims);
}
