INLINE void shared_fetch(const float *__restrict__ b0_B0, float *__restrict__ b1_B1, const i64 *__restrict__ dims, u32 constant) {
  const int first = (int)cluster_rank() * 8000, last = first + 8000;
}
INLINE void shared_use(const float *__restrict__ b0_B0, float *__restrict__ b1_B1, const i64 *__restrict__ dims, float *parts) {
  const int first = (int)cluster_rank() * 8000, last = first + 8000;
  for (int line = cluster_number(); line < 17; line += clusters()) {
    const int x_a_1 = line;
    float x0[32] = {};
    #pragma unroll
    for (int t = 0; t < 8; t++) {
      const int n = first + (t * 256 + (int)threadIdx.x) * 4;
      if (n < last) {
        const int x_b_2 = n;
        const auto w3 = wide_load((const uint4 *)(b0_B0 + x_a_1 * 32000 + x_b_2));
        const float v4 = __uint_as_float(w3.w[0]);
        const float v5 = __uint_as_float(w3.w[1]);
        const float v6 = __uint_as_float(w3.w[2]);
        const float v7 = __uint_as_float(w3.w[3]);
        x0[t * 4 + 0] = v4;
        x0[t * 4 + 1] = v5;
        x0[t * 4 + 2] = v6;
        x0[t * 4 + 3] = v7;
      }
    }
    float s8 = -INFINITY;
    #pragma unroll
    for (int t = 0; t < 8; t++) {
      const int n = first + (t * 256 + (int)threadIdx.x) * 4;
      if (n < last) {
        const int x_b_9 = n;
        s8 = most(s8, x0[t * 4 + 0]);
        s8 = most(s8, x0[t * 4 + 1]);
        s8 = most(s8, x0[t * 4 + 2]);
        s8 = most(s8, x0[t * 4 + 3]);
      }
    }
    const float v10 = blocks_max<256, 4>(s8, parts + 0);
    float s11 = 0.0f;
    const float v13 = max_f32(-INFINITY, v10);
    #pragma unroll
    for (int t = 0; t < 8; t++) {
      const int n = first + (t * 256 + (int)threadIdx.x) * 4;
      if (n < last) {
        const int x_b_12 = n;
        const float v14 = subni_f32(x0[t * 4 + 0], v13);
        const float v15 = subni_f32(x0[t * 4 + 1], v13);
        const float v16 = subni_f32(x0[t * 4 + 2], v13);
        const float v17 = subni_f32(x0[t * 4 + 3], v13);
        const float v18 = (v14 * 0x1.7154760000000p+0f);
        const float v19 = (v15 * 0x1.7154760000000p+0f);
        const float v20 = (v16 * 0x1.7154760000000p+0f);
        const float v21 = (v17 * 0x1.7154760000000p+0f);
        const float v22 = exp2_f32(v18);
        const float v23 = exp2_f32(v19);
        const float v24 = exp2_f32(v20);
        const float v25 = exp2_f32(v21);
        s11 = sum_f32(s11, v22);
        s11 = sum_f32(s11, v23);
        s11 = sum_f32(s11, v24);
        s11 = sum_f32(s11, v25);
      }
    }
    const float v26 = blocks_sum<256, 4>(s11, parts + 32);
    const float v40 = subni_f32(-INFINITY, v13);
    const float v41 = (v40 * 0x1.7154760000000p+0f);
    const float v42 = exp2_f32(v41);
    const float v43 = (0.0f * v42);
    const float v44 = (v43 + v26);
    const float v45 = recip_f32(v44);
    #pragma unroll
    for (int t = 0; t < 8; t++) {
      const int n = first + (t * 256 + (int)threadIdx.x) * 4;
      if (n < last) {
        const int x_b_27 = n;
        const float v28 = (x0[t * 4 + 0] - v13);
        const float v29 = (x0[t * 4 + 1] - v13);
        const float v30 = (x0[t * 4 + 2] - v13);
        const float v31 = (x0[t * 4 + 3] - v13);
        const float v32 = (v28 * 0x1.7154760000000p+0f);
        const float v33 = (v29 * 0x1.7154760000000p+0f);
        const float v34 = (v30 * 0x1.7154760000000p+0f);
        const float v35 = (v31 * 0x1.7154760000000p+0f);
        const float v36 = exp2_f32(v32);
        const float v37 = exp2_f32(v33);
        const float v38 = exp2_f32(v34);
        const float v39 = exp2_f32(v35);
        const float v46 = (v36 * v45);
        const float v47 = (v37 * v45);
        const float v48 = (v38 * v45);
        const float v49 = (v39 * v45);
        wide_store((uint4 *)(b1_B1 + x_a_1 * 32000 + x_b_27), __float_as_uint(v46), __float_as_uint(v47), __float_as_uint(v48), __float_as_uint(v49));
      }
    }
  }
}
extern "C" __global__ void __cluster_dims__(4, 1, 1) __launch_bounds__(256, 4) shared(const float *__restrict__ b0_B0, float *__restrict__ b1_B1, const i64 *__restrict__ dims, u32 constant) {
  __shared__ __align__(16) float parts[64];
  let_next_start();
  shared_fetch(b0_B0, b1_B1, dims, constant);
  cluster_wait();
  wait_for_previous();
  shared_use(settled(b0_B0), settled(b1_B1), dims, parts);
}
