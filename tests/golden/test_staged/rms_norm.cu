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
  float h0[32] = {};
  #pragma unroll
  for (int t = 0; t < 4; t++) {
    const int n = (t * 128 + (int)threadIdx.x) * 8;
    {
      const int x_b_3 = n;
      const auto w4 = wide_load((const uint4 *)(b2_B2 + x_b_3));
      const float v5 = from_bf16((u16)(w4.w[0] >> 0));
      const float v6 = from_bf16((u16)(w4.w[0] >> 16));
      const float v7 = from_bf16((u16)(w4.w[1] >> 0));
      const float v8 = from_bf16((u16)(w4.w[1] >> 16));
      const float v9 = from_bf16((u16)(w4.w[2] >> 0));
      const float v10 = from_bf16((u16)(w4.w[2] >> 16));
      const float v11 = from_bf16((u16)(w4.w[3] >> 0));
      const float v12 = from_bf16((u16)(w4.w[3] >> 16));
      h0[t * 8 + 0] = v5;
      h0[t * 8 + 1] = v6;
      h0[t * 8 + 2] = v7;
      h0[t * 8 + 3] = v8;
      h0[t * 8 + 4] = v9;
      h0[t * 8 + 5] = v10;
      h0[t * 8 + 6] = v11;
      h0[t * 8 + 7] = v12;
    }
  }
  Turn<4> turn;
  for (int line = blockIdx.x; line < (int)d_n; line += gridDim.x) {
    const int x_a_13 = line;
    float x0[32] = {};
    float x1[32] = {};
    {
      stage_await(full + turn.slot, turn.lap);
      const u8 *const stage = stages + turn.slot * 16384;
      #pragma unroll
      for (int t = 0; t < 4; t++) {
        const int n = (t * 128 + (int)threadIdx.x) * 8;
        {
          const int x_b_14 = n;
          const auto w15 = wide_load((const uint4 *)(stage + (0) + n * 2));
          const float v16 = from_bf16((u16)(w15.w[0] >> 0));
          const float v17 = from_bf16((u16)(w15.w[0] >> 16));
          const float v18 = from_bf16((u16)(w15.w[1] >> 0));
          const float v19 = from_bf16((u16)(w15.w[1] >> 16));
          const float v20 = from_bf16((u16)(w15.w[2] >> 0));
          const float v21 = from_bf16((u16)(w15.w[2] >> 16));
          const float v22 = from_bf16((u16)(w15.w[3] >> 0));
          const float v23 = from_bf16((u16)(w15.w[3] >> 16));
          x0[t * 8 + 0] = v16;
          x0[t * 8 + 1] = v17;
          x0[t * 8 + 2] = v18;
          x0[t * 8 + 3] = v19;
          x0[t * 8 + 4] = v20;
          x0[t * 8 + 5] = v21;
          x0[t * 8 + 6] = v22;
          x0[t * 8 + 7] = v23;
          const auto w24 = wide_load((const uint4 *)(stage + (8192) + n * 2));
          const float v25 = from_bf16((u16)(w24.w[0] >> 0));
          const float v26 = from_bf16((u16)(w24.w[0] >> 16));
          const float v27 = from_bf16((u16)(w24.w[1] >> 0));
          const float v28 = from_bf16((u16)(w24.w[1] >> 16));
          const float v29 = from_bf16((u16)(w24.w[2] >> 0));
          const float v30 = from_bf16((u16)(w24.w[2] >> 16));
          const float v31 = from_bf16((u16)(w24.w[3] >> 0));
          const float v32 = from_bf16((u16)(w24.w[3] >> 16));
          x1[t * 8 + 0] = v25;
          x1[t * 8 + 1] = v26;
          x1[t * 8 + 2] = v27;
          x1[t * 8 + 3] = v28;
          x1[t * 8 + 4] = v29;
          x1[t * 8 + 5] = v30;
          x1[t * 8 + 6] = v31;
          x1[t * 8 + 7] = v32;
        }
      }
      stage_release(empty + turn.slot);
      turn.next();
    }
    float s33 = 0.0f;
    #pragma unroll
    for (int t = 0; t < 4; t++) {
      const int n = (t * 128 + (int)threadIdx.x) * 8;
      {
        const int x_b_34 = n;
        const float v35 = x1[t * 8 + 0];
        const float v36 = x1[t * 8 + 1];
        const float v37 = x1[t * 8 + 2];
        const float v38 = x1[t * 8 + 3];
        const float v39 = x1[t * 8 + 4];
        const float v40 = x1[t * 8 + 5];
        const float v41 = x1[t * 8 + 6];
        const float v42 = x1[t * 8 + 7];
        const float v43 = x0[t * 8 + 0];
        const float v44 = x0[t * 8 + 1];
        const float v45 = x0[t * 8 + 2];
        const float v46 = x0[t * 8 + 3];
        const float v47 = x0[t * 8 + 4];
        const float v48 = x0[t * 8 + 5];
        const float v49 = x0[t * 8 + 6];
        const float v50 = x0[t * 8 + 7];
        const float v51 = (v35 + v43);
        const float v52 = (v36 + v44);
        const float v53 = (v37 + v45);
        const float v54 = (v38 + v46);
        const float v55 = (v39 + v47);
        const float v56 = (v40 + v48);
        const float v57 = (v41 + v49);
        const float v58 = (v42 + v50);
        const float v59 = (v51 * v51);
        const float v60 = (v52 * v52);
        const float v61 = (v53 * v53);
        const float v62 = (v54 * v54);
        const float v63 = (v55 * v55);
        const float v64 = (v56 * v56);
        const float v65 = (v57 * v57);
        const float v66 = (v58 * v58);
        s33 = sum_f32(s33, v59);
        s33 = sum_f32(s33, v60);
        s33 = sum_f32(s33, v61);
        s33 = sum_f32(s33, v62);
        s33 = sum_f32(s33, v63);
        s33 = sum_f32(s33, v64);
        s33 = sum_f32(s33, v65);
        s33 = sum_f32(s33, v66);
      }
    }
    const float v67 = users_sum<128>(s33, parts + 0);
    const float v93 = (0.0f + v67);
    const float v94 = (v93 * 0x1.0000000000000p-12f);
    const float v95 = (v94 + 0x1.0c6f7a0000000p-20f);
    const float v96 = sqrt_f32(v95);
    const float v97 = recip_f32(v96);
    #pragma unroll
    for (int t = 0; t < 4; t++) {
      const int n = (t * 128 + (int)threadIdx.x) * 8;
      {
        const int x_b_68 = n;
        const float v69 = x1[t * 8 + 0];
        const float v70 = x1[t * 8 + 1];
        const float v71 = x1[t * 8 + 2];
        const float v72 = x1[t * 8 + 3];
        const float v73 = x1[t * 8 + 4];
        const float v74 = x1[t * 8 + 5];
        const float v75 = x1[t * 8 + 6];
        const float v76 = x1[t * 8 + 7];
        const float v77 = x0[t * 8 + 0];
        const float v78 = x0[t * 8 + 1];
        const float v79 = x0[t * 8 + 2];
        const float v80 = x0[t * 8 + 3];
        const float v81 = x0[t * 8 + 4];
        const float v82 = x0[t * 8 + 5];
        const float v83 = x0[t * 8 + 6];
        const float v84 = x0[t * 8 + 7];
        const float v85 = (v69 + v77);
        const float v86 = (v70 + v78);
        const float v87 = (v71 + v79);
        const float v88 = (v72 + v80);
        const float v89 = (v73 + v81);
        const float v90 = (v74 + v82);
        const float v91 = (v75 + v83);
        const float v92 = (v76 + v84);
        const float v98 = (v85 * v97);
        const float v99 = (v86 * v97);
        const float v100 = (v87 * v97);
        const float v101 = (v88 * v97);
        const float v102 = (v89 * v97);
        const float v103 = (v90 * v97);
        const float v104 = (v91 * v97);
        const float v105 = (v92 * v97);
        const float v106 = h0[t * 8 + 0];
        const float v107 = h0[t * 8 + 1];
        const float v108 = h0[t * 8 + 2];
        const float v109 = h0[t * 8 + 3];
        const float v110 = h0[t * 8 + 4];
        const float v111 = h0[t * 8 + 5];
        const float v112 = h0[t * 8 + 6];
        const float v113 = h0[t * 8 + 7];
        const float v114 = (v98 * v106);
        const float v115 = (v99 * v107);
        const float v116 = (v100 * v108);
        const float v117 = (v101 * v109);
        const float v118 = (v102 * v110);
        const float v119 = (v103 * v111);
        const float v120 = (v104 * v112);
        const float v121 = (v105 * v113);
        const float v122 = round_bf16(v114);
        const float v123 = round_bf16(v115);
        const float v124 = round_bf16(v116);
        const float v125 = round_bf16(v117);
        const float v126 = round_bf16(v118);
        const float v127 = round_bf16(v119);
        const float v128 = round_bf16(v120);
        const float v129 = round_bf16(v121);
        wide_store((uint4 *)(b3_B3 + (i64)x_a_13 * 4096 + (i64)x_b_68), two(held_bf16(v122), held_bf16(v123)), two(held_bf16(v124), held_bf16(v125)), two(held_bf16(v126), held_bf16(v127)), two(held_bf16(v128), held_bf16(v129)));
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
