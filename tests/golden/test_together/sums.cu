INLINE u32 sums_0_cells(const float *__restrict__ b0_A_5f_0, const float *__restrict__ b1_B_5f_0, float *__restrict__ b2_R_5f_0, const i64 *__restrict__ dims, const u32 before) {
  const i64 d_n = dims[0];
  const int cells1 = ((int)d_n + 3) / 4;
  const int first2 = (blockIdx.x + gridDim.x - before % gridDim.x) % gridDim.x;
  if (first2 >= cells1) return before + cells1;
  #pragma unroll 1
  for (int cell = first2; cell < cells1; cell += gridDim.x) {
    const int x_i_3 = cell * 4;
    const int stop4 = least(x_i_3 + 4, (int)d_n);
    {
      const int steps5 = stop4 - x_i_3;
      const int points6 = steps5;
      for (int p7 = threadIdx.x; p7 < points6; p7 += 256) {
        const int x_i_8 = x_i_3 + p7;
        const float v9 = *(b0_A_5f_0 + (i64)x_i_8);
        const float v10 = *(b1_B_5f_0 + (i64)x_i_8);
        const float v11 = (v9 + v10);
        *(b2_R_5f_0 + (i64)x_i_8) = v11;
      }
    }
  }
  return before + cells1;
}
INLINE u32 sums_1_cells(const float *__restrict__ b3_A_5f_1, const float *__restrict__ b4_B_5f_1, float *__restrict__ b5_R_5f_1, const i64 *__restrict__ dims, const u32 before) {
  const i64 d_n = dims[0];
  const int cells1 = ((int)d_n + 3) / 4;
  const int first2 = (blockIdx.x + gridDim.x - before % gridDim.x) % gridDim.x;
  if (first2 >= cells1) return before + cells1;
  #pragma unroll 1
  for (int cell = first2; cell < cells1; cell += gridDim.x) {
    const int x_i_3 = cell * 4;
    const int stop4 = least(x_i_3 + 4, (int)d_n);
    {
      const int steps5 = stop4 - x_i_3;
      const int points6 = steps5;
      for (int p7 = threadIdx.x; p7 < points6; p7 += 256) {
        const int x_i_8 = x_i_3 + p7;
        const float v9 = *(b3_A_5f_1 + (i64)x_i_8);
        const float v10 = *(b4_B_5f_1 + (i64)x_i_8);
        const float v11 = (v9 + v10);
        *(b5_R_5f_1 + (i64)x_i_8) = v11;
      }
    }
  }
  return before + cells1;
}
extern "C" __global__ void __launch_bounds__(256) sums(const float * b0_A_5f_0, const float * b1_B_5f_0, float * b2_R_5f_0, const float * b3_A_5f_1, const float * b4_B_5f_1, float * b5_R_5f_1, const i64 * dims) {
  let_next_start();
  wait_for_previous();
  b0_A_5f_0 = settled(b0_A_5f_0);
  b1_B_5f_0 = settled(b1_B_5f_0);
  b2_R_5f_0 = settled(b2_R_5f_0);
  b3_A_5f_1 = settled(b3_A_5f_1);
  b4_B_5f_1 = settled(b4_B_5f_1);
  b5_R_5f_1 = settled(b5_R_5f_1);
  u32 before = 0;
  before = sums_0_cells(b0_A_5f_0, b1_B_5f_0, b2_R_5f_0, dims + 0, before);
  __syncthreads();
  before = sums_1_cells(b3_A_5f_1, b4_B_5f_1, b5_R_5f_1, dims + 1, before);
}
