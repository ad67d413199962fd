INLINE void product_cells(const u16 *__restrict__ b0_A, const u16 *__restrict__ b1_B, u16 *__restrict__ b2_R, const i64 *__restrict__ dims) {
  #pragma unroll 1
  for (int cell = blockIdx.x; cell < 448; cell += gridDim.x) {
    const int x_n_1 = cell * 32;
    const int x_m_2 = 0;
    {
      for (int first4 = 0; first4 < 8; first4 += 8) {
        const int p3 = first4 + (int)threadIdx.x / 32;
        const int x_n_5 = x_n_1 + (p3) * 4;
        float a52 = 0.0f;
        float a53 = 0.0f;
        float a54 = 0.0f;
        float a55 = 0.0f;
        float a56 = 0.0f;
        float a57 = 0.0f;
        float a58 = 0.0f;
        float a59 = 0.0f;
        #pragma unroll 2
        for (int x_k_6 = (int)(threadIdx.x % 32) * 8; x_k_6 < 4096; x_k_6 += 256) {
          const auto w7 = wide_load((const uint4 *)(b0_A + x_m_2 * 4096 + x_k_6));
          const float v8 = from_bf16((u16)(w7.w[0] >> 0));
          const float v9 = from_bf16((u16)(w7.w[0] >> 16));
          const float v10 = from_bf16((u16)(w7.w[1] >> 0));
          const float v11 = from_bf16((u16)(w7.w[1] >> 16));
          const float v12 = from_bf16((u16)(w7.w[2] >> 0));
          const float v13 = from_bf16((u16)(w7.w[2] >> 16));
          const float v14 = from_bf16((u16)(w7.w[3] >> 0));
          const float v15 = from_bf16((u16)(w7.w[3] >> 16));
          const auto w16 = wide_pass((const uint4 *)(b1_B + x_n_5 * 4096 + x_k_6));
          const float v17 = from_bf16((u16)(w16.w[0] >> 0));
          const float v18 = from_bf16((u16)(w16.w[0] >> 16));
          const float v19 = from_bf16((u16)(w16.w[1] >> 0));
          const float v20 = from_bf16((u16)(w16.w[1] >> 16));
          const float v21 = from_bf16((u16)(w16.w[2] >> 0));
          const float v22 = from_bf16((u16)(w16.w[2] >> 16));
          const float v23 = from_bf16((u16)(w16.w[3] >> 0));
          const float v24 = from_bf16((u16)(w16.w[3] >> 16));
          const auto w25 = wide_pass((const uint4 *)(b1_B + x_n_5 * 4096 + x_k_6 + 4096));
          const float v26 = from_bf16((u16)(w25.w[0] >> 0));
          const float v27 = from_bf16((u16)(w25.w[0] >> 16));
          const float v28 = from_bf16((u16)(w25.w[1] >> 0));
          const float v29 = from_bf16((u16)(w25.w[1] >> 16));
          const float v30 = from_bf16((u16)(w25.w[2] >> 0));
          const float v31 = from_bf16((u16)(w25.w[2] >> 16));
          const float v32 = from_bf16((u16)(w25.w[3] >> 0));
          const float v33 = from_bf16((u16)(w25.w[3] >> 16));
          const auto w34 = wide_pass((const uint4 *)(b1_B + x_n_5 * 4096 + x_k_6 + 8192));
          const float v35 = from_bf16((u16)(w34.w[0] >> 0));
          const float v36 = from_bf16((u16)(w34.w[0] >> 16));
          const float v37 = from_bf16((u16)(w34.w[1] >> 0));
          const float v38 = from_bf16((u16)(w34.w[1] >> 16));
          const float v39 = from_bf16((u16)(w34.w[2] >> 0));
          const float v40 = from_bf16((u16)(w34.w[2] >> 16));
          const float v41 = from_bf16((u16)(w34.w[3] >> 0));
          const float v42 = from_bf16((u16)(w34.w[3] >> 16));
          const auto w43 = wide_pass((const uint4 *)(b1_B + x_n_5 * 4096 + x_k_6 + 12288));
          const float v44 = from_bf16((u16)(w43.w[0] >> 0));
          const float v45 = from_bf16((u16)(w43.w[0] >> 16));
          const float v46 = from_bf16((u16)(w43.w[1] >> 0));
          const float v47 = from_bf16((u16)(w43.w[1] >> 16));
          const float v48 = from_bf16((u16)(w43.w[2] >> 0));
          const float v49 = from_bf16((u16)(w43.w[2] >> 16));
          const float v50 = from_bf16((u16)(w43.w[3] >> 0));
          const float v51 = from_bf16((u16)(w43.w[3] >> 16));
          a52 = fma_f32(v8, v17, a52);
          a53 = fma_f32(v9, v18, a53);
          a52 = fma_f32(v10, v19, a52);
          a53 = fma_f32(v11, v20, a53);
          a52 = fma_f32(v12, v21, a52);
          a53 = fma_f32(v13, v22, a53);
          a52 = fma_f32(v14, v23, a52);
          a53 = fma_f32(v15, v24, a53);
          a54 = fma_f32(v8, v26, a54);
          a55 = fma_f32(v9, v27, a55);
          a54 = fma_f32(v10, v28, a54);
          a55 = fma_f32(v11, v29, a55);
          a54 = fma_f32(v12, v30, a54);
          a55 = fma_f32(v13, v31, a55);
          a54 = fma_f32(v14, v32, a54);
          a55 = fma_f32(v15, v33, a55);
          a56 = fma_f32(v8, v35, a56);
          a57 = fma_f32(v9, v36, a57);
          a56 = fma_f32(v10, v37, a56);
          a57 = fma_f32(v11, v38, a57);
          a56 = fma_f32(v12, v39, a56);
          a57 = fma_f32(v13, v40, a57);
          a56 = fma_f32(v14, v41, a56);
          a57 = fma_f32(v15, v42, a57);
          a58 = fma_f32(v8, v44, a58);
          a59 = fma_f32(v9, v45, a59);
          a58 = fma_f32(v10, v46, a58);
          a59 = fma_f32(v11, v47, a59);
          a58 = fma_f32(v12, v48, a58);
          a59 = fma_f32(v13, v49, a59);
          a58 = fma_f32(v14, v50, a58);
          a59 = fma_f32(v15, v51, a59);
        }
        const float v60 = round_bf16(across_sum_f32<32>(sum_f32(a52, a53)));
        const float v61 = round_bf16(across_sum_f32<32>(sum_f32(a54, a55)));
        const float v62 = round_bf16(across_sum_f32<32>(sum_f32(a56, a57)));
        const float v63 = round_bf16(across_sum_f32<32>(sum_f32(a58, a59)));
        if (threadIdx.x % 32 == 0) {
          *(b2_R + x_m_2 * 14336 + x_n_5) = held_bf16(v60);
          *(b2_R + x_m_2 * 14336 + x_n_5 + 1) = held_bf16(v61);
          *(b2_R + x_m_2 * 14336 + x_n_5 + 2) = held_bf16(v62);
          *(b2_R + x_m_2 * 14336 + x_n_5 + 3) = held_bf16(v63);
        }
      }
    }
  }
}
extern "C" __global__ void __launch_bounds__(256) product(const u16 *__restrict__ b0_A, const u16 *__restrict__ b1_B, u16 *__restrict__ b2_R, const i64 *__restrict__ dims) {
  let_next_start();
  wait_for_previous();
  product_cells(settled(b0_A), settled(b1_B), settled(b2_R), dims);
}
