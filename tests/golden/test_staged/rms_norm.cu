INLINE void rms_norm_fill(const u16 *__restrict__ b0_B0, const u16 *__restrict__ b1_B1, const u16 *__restrict__ b2_B2, u16 *__restrict__ b3_B3, const i64 *__restrict__ dims, u8 *stages, u64 *full, u64 *empty) {
  const i64 d_n = dims[0];
  Filler<4, 16384, 4> filler(stages, full, empty);
  for (int line = blockIdx.x; line < (int)d_n; line += gridDim.x) {
    const int x_a_2 = line;
    {
      u8 *const to = filler.claim(16384);
      filler.copy(to + 0, b1_B1 + (i64)x_a_2 * 4096 + (i64)0 + 0, 8192);
      filler.copy(to + 8192, b0_B0 + (i64)x_a_2 * 4096 + (i64)0 + 0, 8192);
      filler.turn.next();
    }
  }
}
INLINE void rms_norm_fetch(const u16 *__restrict__ b0_B0, const u16 *__restrict__ b1_B1, const u16 *__restrict__ b2_B2, u16 *__restrict__ b3_B3, const i64 *__restrict__ dims, u32 constant) {
  const i64 d_n = dims[0];
  for (int t = 0; t < 4; t++) {
    const int n = (t * 128 + (int)threadIdx.x) * 8;
    {
      const int x_b_1 = n;
      if (constant >> 2 & 1) fetch_early(b2_B2 + x_b_1);
    }
  }
}
INLINE void rms_norm_use(const u16 *__restrict__ b0_B0, const u16 *__restrict__ b1_B1, const u16 *__restrict__ b2_B2, u16 *__restrict__ b3_B3, const i64 *__restrict__ dims, u8 *stages, u64 *full, u64 *empty, float *parts, float *results) {
  const i64 d_n = dims[0];
  words<4> h0[4] = {};
  #pragma unroll
  for (int t = 0; t < 4; t++) {
    const int n = (t * 128 + (int)threadIdx.x) * 8;
    {
      const int x_b_3 = n;
      h0[t * 1 + 0] = wide_load((const uint4 *)(b2_B2 + x_b_3));
    }
  }
  Turn<4> turn;
  for (int line = blockIdx.x; line < (int)d_n; line += gridDim.x) {
    const int x_a_4 = line;
    words<4> x0[4] = {};
    words<4> x1[4] = {};
    {
      stage_await(full + turn.slot, turn.lap);
      const u8 *const stage = stages + turn.slot * 16384;
      #pragma unroll
      for (int t = 0; t < 4; t++) {
        const int n = (t * 128 + (int)threadIdx.x) * 8;
        {
          const int x_b_5 = n;
          x0[t * 1 + 0] = wide_load((const uint4 *)(stage + (0) + n * 2));
          x1[t * 1 + 0] = wide_load((const uint4 *)(stage + (8192) + n * 2));
        }
      }
      stage_release(empty + turn.slot);
      turn.next();
    }
    float s6 = 0.0f;
    #pragma unroll
    for (int t = 0; t < 4; t++) {
      const int n = (t * 128 + (int)threadIdx.x) * 8;
      {
        const int x_b_7 = n;
        const float v8 = from_bf16((u16)(x1[t * 1 + 0].w[0] >> 0));
        const float v9 = from_bf16((u16)(x1[t * 1 + 0].w[0] >> 16));
        const float v10 = from_bf16((u16)(x1[t * 1 + 0].w[1] >> 0));
        const float v11 = from_bf16((u16)(x1[t * 1 + 0].w[1] >> 16));
        const float v12 = from_bf16((u16)(x1[t * 1 + 0].w[2] >> 0));
        const float v13 = from_bf16((u16)(x1[t * 1 + 0].w[2] >> 16));
        const float v14 = from_bf16((u16)(x1[t * 1 + 0].w[3] >> 0));
        const float v15 = from_bf16((u16)(x1[t * 1 + 0].w[3] >> 16));
        const float v16 = from_bf16((u16)(x0[t * 1 + 0].w[0] >> 0));
        const float v17 = from_bf16((u16)(x0[t * 1 + 0].w[0] >> 16));
        const float v18 = from_bf16((u16)(x0[t * 1 + 0].w[1] >> 0));
        const float v19 = from_bf16((u16)(x0[t * 1 + 0].w[1] >> 16));
        const float v20 = from_bf16((u16)(x0[t * 1 + 0].w[2] >> 0));
        const float v21 = from_bf16((u16)(x0[t * 1 + 0].w[2] >> 16));
        const float v22 = from_bf16((u16)(x0[t * 1 + 0].w[3] >> 0));
        const float v23 = from_bf16((u16)(x0[t * 1 + 0].w[3] >> 16));
        const float v24 = (v8 + v16);
        const float v25 = (v9 + v17);
        const float v26 = (v10 + v18);
        const float v27 = (v11 + v19);
        const float v28 = (v12 + v20);
        const float v29 = (v13 + v21);
        const float v30 = (v14 + v22);
        const float v31 = (v15 + v23);
        const float v32 = (v24 * v24);
        const float v33 = (v25 * v25);
        const float v34 = (v26 * v26);
        const float v35 = (v27 * v27);
        const float v36 = (v28 * v28);
        const float v37 = (v29 * v29);
        const float v38 = (v30 * v30);
        const float v39 = (v31 * v31);
        s6 = sum_f32(s6, v32);
        s6 = sum_f32(s6, v33);
        s6 = sum_f32(s6, v34);
        s6 = sum_f32(s6, v35);
        s6 = sum_f32(s6, v36);
        s6 = sum_f32(s6, v37);
        s6 = sum_f32(s6, v38);
        s6 = sum_f32(s6, v39);
      }
    }
    const float v40 = users_sum<128>(s6, parts + 0);
    const float v66 = (0.0f + v40);
    const float v67 = (v66 * 0x1.0000000000000p-12f);
    const float v68 = (v67 + 0x1.0c6f7a0000000p-20f);
    const float v69 = sqrt_f32(v68);
    const float v70 = recip_f32(v69);
    #pragma unroll
    for (int t = 0; t < 4; t++) {
      const int n = (t * 128 + (int)threadIdx.x) * 8;
      {
        const int x_b_41 = n;
        const float v42 = from_bf16((u16)(x1[t * 1 + 0].w[0] >> 0));
        const float v43 = from_bf16((u16)(x1[t * 1 + 0].w[0] >> 16));
        const float v44 = from_bf16((u16)(x1[t * 1 + 0].w[1] >> 0));
        const float v45 = from_bf16((u16)(x1[t * 1 + 0].w[1] >> 16));
        const float v46 = from_bf16((u16)(x1[t * 1 + 0].w[2] >> 0));
        const float v47 = from_bf16((u16)(x1[t * 1 + 0].w[2] >> 16));
        const float v48 = from_bf16((u16)(x1[t * 1 + 0].w[3] >> 0));
        const float v49 = from_bf16((u16)(x1[t * 1 + 0].w[3] >> 16));
        const float v50 = from_bf16((u16)(x0[t * 1 + 0].w[0] >> 0));
        const float v51 = from_bf16((u16)(x0[t * 1 + 0].w[0] >> 16));
        const float v52 = from_bf16((u16)(x0[t * 1 + 0].w[1] >> 0));
        const float v53 = from_bf16((u16)(x0[t * 1 + 0].w[1] >> 16));
        const float v54 = from_bf16((u16)(x0[t * 1 + 0].w[2] >> 0));
        const float v55 = from_bf16((u16)(x0[t * 1 + 0].w[2] >> 16));
        const float v56 = from_bf16((u16)(x0[t * 1 + 0].w[3] >> 0));
        const float v57 = from_bf16((u16)(x0[t * 1 + 0].w[3] >> 16));
        const float v58 = (v42 + v50);
        const float v59 = (v43 + v51);
        const float v60 = (v44 + v52);
        const float v61 = (v45 + v53);
        const float v62 = (v46 + v54);
        const float v63 = (v47 + v55);
        const float v64 = (v48 + v56);
        const float v65 = (v49 + v57);
        const float v71 = (v58 * v70);
        const float v72 = (v59 * v70);
        const float v73 = (v60 * v70);
        const float v74 = (v61 * v70);
        const float v75 = (v62 * v70);
        const float v76 = (v63 * v70);
        const float v77 = (v64 * v70);
        const float v78 = (v65 * v70);
        const float v79 = from_bf16((u16)(h0[t * 1 + 0].w[0] >> 0));
        const float v80 = from_bf16((u16)(h0[t * 1 + 0].w[0] >> 16));
        const float v81 = from_bf16((u16)(h0[t * 1 + 0].w[1] >> 0));
        const float v82 = from_bf16((u16)(h0[t * 1 + 0].w[1] >> 16));
        const float v83 = from_bf16((u16)(h0[t * 1 + 0].w[2] >> 0));
        const float v84 = from_bf16((u16)(h0[t * 1 + 0].w[2] >> 16));
        const float v85 = from_bf16((u16)(h0[t * 1 + 0].w[3] >> 0));
        const float v86 = from_bf16((u16)(h0[t * 1 + 0].w[3] >> 16));
        const float v87 = (v71 * v79);
        const float v88 = (v72 * v80);
        const float v89 = (v73 * v81);
        const float v90 = (v74 * v82);
        const float v91 = (v75 * v83);
        const float v92 = (v76 * v84);
        const float v93 = (v77 * v85);
        const float v94 = (v78 * v86);
        wide_store((uint4 *)(b3_B3 + (i64)x_a_4 * 4096 + (i64)x_b_41), two_bf16(v87, v88), two_bf16(v89, v90), two_bf16(v91, v92), two_bf16(v93, v94));
      }
    }
    users_wait<128>();
  }
}
extern "C" __global__ void __launch_bounds__(160) rms_norm(const u16 *__restrict__ b0_B0, const u16 *__restrict__ b1_B1, const u16 *__restrict__ b2_B2, u16 *__restrict__ b3_B3, const i64 *__restrict__ dims, u32 constant) {
  extern __shared__ __align__(128) u8 pool[];
  u64 *const full = (u64 *)pool, *const empty = full + 4;
  float *const parts = (float *)(pool + 256);
  u8 *const stages = pool + 1024;
  float *const results = (float *)(stages + 65536);
  if (threadIdx.x == 128) {
    for (int k = 0; k < 4; k++) stage_open(full + k, 1), stage_open(empty + k, 4);
    before_copies();
  }
  __syncthreads();
  let_next_start();
  if (threadIdx.x >= 128) {
    if (threadIdx.x > 128) return;
    if ((constant & 3) != 3) {
      wait_for_previous();
      before_copies();
    }
    rms_norm_fill(b0_B0, b1_B1, b2_B2, b3_B3, dims, stages, full, empty);
    return;
  }
  rms_norm_fetch(b0_B0, b1_B1, b2_B2, b3_B3, dims, constant);
  wait_for_previous();
  rms_norm_use(settled(b0_B0), settled(b1_B1), settled(b2_B2), settled(b3_B3), dims, stages, full, empty, parts, results);
}
