INLINE void softmax_cells(const float *__restrict__ b0_B0, float *__restrict__ b1_B1, const i64 *__restrict__ dims) {
  const i64 d_i = dims[0];
  const i64 d_j = dims[1];
  const int cells1 = (int)d_i;
  #pragma unroll 1
  for (int cell = blockIdx.x; cell < cells1; cell += gridDim.x) {
    const int x_i_2 = cell;
    float t3;
    t3 = -INFINITY;
    float t4;
    float t5;
    t5 = 0.0f;
    float t6;
    for (int x_j_7 = 0; x_j_7 < (int)d_j; x_j_7 += 1024) {
      const int stop8 = least(x_j_7 + 1024, (int)d_j);
      float a11 = -INFINITY;
      #pragma unroll 4
      for (int x_j_9 = x_j_7 + (int)threadIdx.x; x_j_9 < stop8; x_j_9 += 256) {
        const float v10 = *(b0_B0 + (i64)x_i_2 * d_j + (i64)x_j_9);
        a11 = most(a11, v10);
      }
      const float v12 = block_max_f32<256>(a11);
      const float v13 = max_f32(t3, v12);
      const float v14 = subni_f32(t3, v13);
      const float v15 = (v14 * 0x1.7154760000000p+0f);
      const float v16 = exp2_f32(v15);
      const float v17 = (t5 * v16);
      float a23 = 0.0f;
      #pragma unroll 4
      for (int x_j_18 = x_j_7 + (int)threadIdx.x; x_j_18 < stop8; x_j_18 += 256) {
        const float v19 = *(b0_B0 + (i64)x_i_2 * d_j + (i64)x_j_18);
        const float v20 = subni_f32(v19, v13);
        const float v21 = (v20 * 0x1.7154760000000p+0f);
        const float v22 = exp2_f32(v21);
        a23 = sum_f32(a23, v22);
      }
      const float v24 = block_sum_f32<256>(a23);
      const float v25 = (v17 + v24);
      t4 = v13;
      t6 = v25;
      t3 = t4;
      t5 = t6;
    }
    const float v34 = recip_f32(t5);
    {
      const int steps26 = (int)d_j;
      const int points27 = steps26;
      for (int p28 = threadIdx.x; p28 < points27; p28 += 256) {
        const int x_j_29 = p28;
        const float v30 = *(b0_B0 + (i64)x_i_2 * d_j + (i64)x_j_29);
        const float v31 = (v30 - t3);
        const float v32 = (v31 * 0x1.7154760000000p+0f);
        const float v33 = exp2_f32(v32);
        const float v35 = (v33 * v34);
        *(b1_B1 + (i64)x_i_2 * d_j + (i64)x_j_29) = v35;
      }
    }
  }
}
extern "C" __global__ void __launch_bounds__(256) softmax(const float *__restrict__ b0_B0, float *__restrict__ b1_B1, const i64 *__restrict__ dims) {
  let_next_start();
  wait_for_previous();
  softmax_cells(settled(b0_B0), settled(b1_B1), dims);
}
