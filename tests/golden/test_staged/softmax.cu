INLINE void softmax_fetch(const float *__restrict__ b0_B0, float *__restrict__ b1_B1, const i64 *__restrict__ dims, u32 constant) {
}
INLINE void softmax_use(const float *__restrict__ b0_B0, float *__restrict__ b1_B1, const i64 *__restrict__ dims, float *parts) {
  #pragma unroll 1
  for (int line = blockIdx.x; line < 17; line += gridDim.x) {
    const int x_a_1 = line;
    float x0[8] = {};
    #pragma unroll
    for (int t = 0; t < 2; t++) {
      const int n = (t * 256 + (int)threadIdx.x) * 4;
      if (n < 1040) {
        const int x_b_2 = n;
        const auto w3 = wide_load((const uint4 *)(b0_B0 + x_a_1 * 1040 + x_b_2));
        x0[t * 4 + 0] = __uint_as_float(w3.w[0]);
        x0[t * 4 + 1] = __uint_as_float(w3.w[1]);
        x0[t * 4 + 2] = __uint_as_float(w3.w[2]);
        x0[t * 4 + 3] = __uint_as_float(w3.w[3]);
      }
    }
    float s4 = -INFINITY;
    #pragma unroll
    for (int t = 0; t < 2; t++) {
      const int n = (t * 256 + (int)threadIdx.x) * 4;
      if (n < 1040) {
        const int x_b_5 = n;
        s4 = most(s4, x0[t * 4 + 0]);
        s4 = most(s4, x0[t * 4 + 1]);
        s4 = most(s4, x0[t * 4 + 2]);
        s4 = most(s4, x0[t * 4 + 3]);
      }
    }
    const float v6 = users_max<256>(s4, parts + 0);
    float s7 = 0.0f;
    const float v9 = max_f32(-INFINITY, v6);
    #pragma unroll
    for (int t = 0; t < 2; t++) {
      const int n = (t * 256 + (int)threadIdx.x) * 4;
      if (n < 1040) {
        const int x_b_8 = n;
        const float v10 = subni_f32(x0[t * 4 + 0], v9);
        const float v11 = subni_f32(x0[t * 4 + 1], v9);
        const float v12 = subni_f32(x0[t * 4 + 2], v9);
        const float v13 = subni_f32(x0[t * 4 + 3], v9);
        const float v14 = (v10 * 0x1.7154760000000p+0f);
        const float v15 = (v11 * 0x1.7154760000000p+0f);
        const float v16 = (v12 * 0x1.7154760000000p+0f);
        const float v17 = (v13 * 0x1.7154760000000p+0f);
        const float v18 = exp2_f32(v14);
        const float v19 = exp2_f32(v15);
        const float v20 = exp2_f32(v16);
        const float v21 = exp2_f32(v17);
        s7 = sum_f32(s7, v18);
        s7 = sum_f32(s7, v19);
        s7 = sum_f32(s7, v20);
        s7 = sum_f32(s7, v21);
      }
    }
    const float v22 = users_sum<256>(s7, parts + 8);
    const float v36 = subni_f32(-INFINITY, v9);
    const float v37 = (v36 * 0x1.7154760000000p+0f);
    const float v38 = exp2_f32(v37);
    const float v39 = (0.0f * v38);
    const float v40 = (v39 + v22);
    const float v41 = recip_f32(v40);
    #pragma unroll
    for (int t = 0; t < 2; t++) {
      const int n = (t * 256 + (int)threadIdx.x) * 4;
      if (n < 1040) {
        const int x_b_23 = n;
        const float v24 = (x0[t * 4 + 0] - v9);
        const float v25 = (x0[t * 4 + 1] - v9);
        const float v26 = (x0[t * 4 + 2] - v9);
        const float v27 = (x0[t * 4 + 3] - v9);
        const float v28 = (v24 * 0x1.7154760000000p+0f);
        const float v29 = (v25 * 0x1.7154760000000p+0f);
        const float v30 = (v26 * 0x1.7154760000000p+0f);
        const float v31 = (v27 * 0x1.7154760000000p+0f);
        const float v32 = exp2_f32(v28);
        const float v33 = exp2_f32(v29);
        const float v34 = exp2_f32(v30);
        const float v35 = exp2_f32(v31);
        const float v42 = (v32 * v41);
        const float v43 = (v33 * v41);
        const float v44 = (v34 * v41);
        const float v45 = (v35 * v41);
        wide_store((uint4 *)(b1_B1 + x_a_1 * 1040 + x_b_23), __float_as_uint(v42), __float_as_uint(v43), __float_as_uint(v44), __float_as_uint(v45));
      }
    }
  }
}
extern "C" __global__ void __launch_bounds__(256, 8) softmax(const float *__restrict__ b0_B0, float *__restrict__ b1_B1, const i64 *__restrict__ dims, u32 constant) {
  __shared__ __align__(16) float parts[16];
  let_next_start();
  softmax_fetch(b0_B0, b1_B1, dims, constant);
  wait_for_previous();
  softmax_use(settled(b0_B0), settled(b1_B1), dims, parts);
}
