INLINE void attend_cells(const float *__restrict__ b0_B0, const float *__restrict__ b1_B3, const u16 *__restrict__ b2_B1, const u16 *__restrict__ b3_B2, float *__restrict__ b4_T1, float *__restrict__ b5_T2, float *__restrict__ b6_T3, const i64 *__restrict__ dims) {
  const i64 d_past = dims[0];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int v118 = add_i32((int)d_past, 1);
  for (int cell = blockIdx.x * 4 + warp; cell < 2 * 3; cell += gridDim.x * 4) {
    const int x_ch_1 = (cell) % 3;
    const int rest2 = (cell) / 3;
    const int x_c_3 = rest2;
    const int x_h_4 = lane % 4;
    const int share5 = chunk_length((int)(d_past + 1), 3);
    const int start6 = least((int)(d_past + 1), x_ch_1 * share5);
    const int stop7 = least((int)(d_past + 1), start6 + share5);
    const int start = start6, last = stop7 - 1;
    words<4> k0[4], k0_next[4];
    words<4> v0[4], v0_next[4];
    if (start <= last) {
      #pragma unroll
      for (int j = 0; j < 4; j++) {
        const int row8 = least(start + j * 2 + lane / 16, last);
        {
          const int x_g_9 = lane % 16 * 8;
          k0_next[j] = wide_pass((const uint4 *)(b2_B1 + x_c_3 * 81920 + row8 * 128 + x_g_9));
        }
      }
      #pragma unroll
      for (int j = 0; j < 4; j++) {
        const int row10 = least(start + j * 2 + lane / 16, last);
        {
          const int x_e_11 = lane % 16 * 8;
          v0_next[j] = wide_pass((const uint4 *)(b3_B2 + x_c_3 * 81920 + row10 * 128 + x_e_11));
        }
      }
    }
    float q0[32];
    {
      const int x_g_12 = lane % 16 * 8;
      const auto w53 = wide_load((const uint4 *)(b1_B3 + x_g_12));
      const auto w54 = wide_load((const uint4 *)(b1_B3 + x_g_12 + 4));
      const float v55 = __uint_as_float(w53.w[0]);
      const float v56 = __uint_as_float(w53.w[1]);
      const float v57 = __uint_as_float(w53.w[2]);
      const float v58 = __uint_as_float(w53.w[3]);
      const float v59 = __uint_as_float(w54.w[0]);
      const float v60 = __uint_as_float(w54.w[1]);
      const float v61 = __uint_as_float(w54.w[2]);
      const float v62 = __uint_as_float(w54.w[3]);
      {
        const auto w13 = wide_load((const uint4 *)(b0_B0 + x_c_3 * 512 + 0 * 128 + x_g_12));
        const auto w14 = wide_load((const uint4 *)(b0_B0 + x_c_3 * 512 + 0 * 128 + x_g_12 + 4));
        const float v15 = __uint_as_float(w13.w[0]);
        const float v16 = __uint_as_float(w13.w[1]);
        const float v17 = __uint_as_float(w13.w[2]);
        const float v18 = __uint_as_float(w13.w[3]);
        const float v19 = __uint_as_float(w14.w[0]);
        const float v20 = __uint_as_float(w14.w[1]);
        const float v21 = __uint_as_float(w14.w[2]);
        const float v22 = __uint_as_float(w14.w[3]);
        const auto w23 = wide_load((const uint4 *)(b0_B0 + x_c_3 * 512 + 1 * 128 + x_g_12));
        const auto w24 = wide_load((const uint4 *)(b0_B0 + x_c_3 * 512 + 1 * 128 + x_g_12 + 4));
        const float v25 = __uint_as_float(w23.w[0]);
        const float v26 = __uint_as_float(w23.w[1]);
        const float v27 = __uint_as_float(w23.w[2]);
        const float v28 = __uint_as_float(w23.w[3]);
        const float v29 = __uint_as_float(w24.w[0]);
        const float v30 = __uint_as_float(w24.w[1]);
        const float v31 = __uint_as_float(w24.w[2]);
        const float v32 = __uint_as_float(w24.w[3]);
        const auto w33 = wide_load((const uint4 *)(b0_B0 + x_c_3 * 512 + 2 * 128 + x_g_12));
        const auto w34 = wide_load((const uint4 *)(b0_B0 + x_c_3 * 512 + 2 * 128 + x_g_12 + 4));
        const float v35 = __uint_as_float(w33.w[0]);
        const float v36 = __uint_as_float(w33.w[1]);
        const float v37 = __uint_as_float(w33.w[2]);
        const float v38 = __uint_as_float(w33.w[3]);
        const float v39 = __uint_as_float(w34.w[0]);
        const float v40 = __uint_as_float(w34.w[1]);
        const float v41 = __uint_as_float(w34.w[2]);
        const float v42 = __uint_as_float(w34.w[3]);
        const auto w43 = wide_load((const uint4 *)(b0_B0 + x_c_3 * 512 + 3 * 128 + x_g_12));
        const auto w44 = wide_load((const uint4 *)(b0_B0 + x_c_3 * 512 + 3 * 128 + x_g_12 + 4));
        const float v45 = __uint_as_float(w43.w[0]);
        const float v46 = __uint_as_float(w43.w[1]);
        const float v47 = __uint_as_float(w43.w[2]);
        const float v48 = __uint_as_float(w43.w[3]);
        const float v49 = __uint_as_float(w44.w[0]);
        const float v50 = __uint_as_float(w44.w[1]);
        const float v51 = __uint_as_float(w44.w[2]);
        const float v52 = __uint_as_float(w44.w[3]);
        const float v63 = (v15 * v55);
        const float v64 = (v16 * v56);
        const float v65 = (v17 * v57);
        const float v66 = (v18 * v58);
        const float v67 = (v19 * v59);
        const float v68 = (v20 * v60);
        const float v69 = (v21 * v61);
        const float v70 = (v22 * v62);
        const float v71 = (v25 * v55);
        const float v72 = (v26 * v56);
        const float v73 = (v27 * v57);
        const float v74 = (v28 * v58);
        const float v75 = (v29 * v59);
        const float v76 = (v30 * v60);
        const float v77 = (v31 * v61);
        const float v78 = (v32 * v62);
        const float v79 = (v35 * v55);
        const float v80 = (v36 * v56);
        const float v81 = (v37 * v57);
        const float v82 = (v38 * v58);
        const float v83 = (v39 * v59);
        const float v84 = (v40 * v60);
        const float v85 = (v41 * v61);
        const float v86 = (v42 * v62);
        const float v87 = (v45 * v55);
        const float v88 = (v46 * v56);
        const float v89 = (v47 * v57);
        const float v90 = (v48 * v58);
        const float v91 = (v49 * v59);
        const float v92 = (v50 * v60);
        const float v93 = (v51 * v61);
        const float v94 = (v52 * v62);
        q0[0] = v63;
        q0[1] = v64;
        q0[2] = v65;
        q0[3] = v66;
        q0[4] = v67;
        q0[5] = v68;
        q0[6] = v69;
        q0[7] = v70;
        q0[8] = v71;
        q0[9] = v72;
        q0[10] = v73;
        q0[11] = v74;
        q0[12] = v75;
        q0[13] = v76;
        q0[14] = v77;
        q0[15] = v78;
        q0[16] = v79;
        q0[17] = v80;
        q0[18] = v81;
        q0[19] = v82;
        q0[20] = v83;
        q0[21] = v84;
        q0[22] = v85;
        q0[23] = v86;
        q0[24] = v87;
        q0[25] = v88;
        q0[26] = v89;
        q0[27] = v90;
        q0[28] = v91;
        q0[29] = v92;
        q0[30] = v93;
        q0[31] = v94;
      }
    }
    float c_v1 = -INFINITY;
    float c_v2 = 0.0f;
    float o0[32] = {};
    for (int from = start; from <= last; from += 8) {
      #pragma unroll
      for (int j = 0; j < 4; j++) {
        k0[j] = k0_next[j];
      }
      #pragma unroll
      for (int j = 0; j < 4; j++) {
        v0[j] = v0_next[j];
      }
      #pragma unroll
      for (int j = 0; j < 4; j++) {
        const int row95 = least(from + 8 + j * 2 + lane / 16, last);
        {
          const int x_g_96 = lane % 16 * 8;
          k0_next[j] = wide_pass((const uint4 *)(b2_B1 + x_c_3 * 81920 + row95 * 128 + x_g_96));
        }
      }
      #pragma unroll
      for (int j = 0; j < 4; j++) {
        const int row97 = least(from + 8 + j * 2 + lane / 16, last);
        {
          const int x_e_98 = lane % 16 * 8;
          v0_next[j] = wide_pass((const uint4 *)(b3_B2 + x_c_3 * 81920 + row97 * 128 + x_e_98));
        }
      }
      const int mine = from + lane % 16 / 4 * 2 + lane / 16;
      const bool within = mine <= last;
      const int x_f_99 = least(mine, last);
      float p100[16];
      #pragma unroll
      for (int j = 0; j < 4; j++) {
        const float v101 = from_bf16((u16)(k0[j].w[0] >> 0));
        const float v102 = from_bf16((u16)(k0[j].w[0] >> 16));
        const float v103 = from_bf16((u16)(k0[j].w[1] >> 0));
        const float v104 = from_bf16((u16)(k0[j].w[1] >> 16));
        const float v105 = from_bf16((u16)(k0[j].w[2] >> 0));
        const float v106 = from_bf16((u16)(k0[j].w[2] >> 16));
        const float v107 = from_bf16((u16)(k0[j].w[3] >> 0));
        const float v108 = from_bf16((u16)(k0[j].w[3] >> 16));
        const float v109 = v101;
        const float v110 = v102;
        const float v111 = v103;
        const float v112 = v104;
        const float v113 = v105;
        const float v114 = v106;
        const float v115 = v107;
        const float v116 = v108;
        #pragma unroll
        for (int h = 0; h < 4; h++) {
          float a = 0.0f;
          a = fma_f32(q0[h * 8 + 0], v109, a);
          a = fma_f32(q0[h * 8 + 1], v110, a);
          a = fma_f32(q0[h * 8 + 2], v111, a);
          a = fma_f32(q0[h * 8 + 3], v112, a);
          a = fma_f32(q0[h * 8 + 4], v113, a);
          a = fma_f32(q0[h * 8 + 5], v114, a);
          a = fma_f32(q0[h * 8 + 6], v115, a);
          a = fma_f32(q0[h * 8 + 7], v116, a);
          p100[j * 4 + h] = a;
        }
      }
      const float v117 = spread_sums<16, 16>(p100);
      const int v119 = (int)(x_f_99 < v118);
      const float v120 = (v117 * 0x1.0000000000000p-2f);
      const float v121 = (v119 ? v120 : -INFINITY);
      const float v122 = above_max_f32<4>(within ? v121 : -INFINITY);
      const float v123 = max_f32(c_v1, v122);
      const float v124 = subni_f32(v121, v123);
      const float v125 = (v124 * 0x1.7154760000000p+0f);
      const float v126 = exp2_f32(v125);
      const float v127 = above_sum_f32<4>(within ? v126 : 0.0f);
      const float v128 = subni_f32(c_v1, v123);
      const float v129 = (v128 * 0x1.7154760000000p+0f);
      const float v130 = exp2_f32(v129);
      const float v131 = (c_v2 * v130);
      const float v132 = (v131 + v127);
      const float v133 = within ? v126 : 0.0f;
      #pragma unroll
      for (int h = 0; h < 4; h++) {
        const float f = __shfl_sync(FULL_WARP, v130, h);
        #pragma unroll
        for (int k = 0; k < 8; k++) {
          o0[h * 8 + k] = o0[h * 8 + k] * f;
        }
      }
      #pragma unroll
      for (int j = 0; j < 4; j++) {
        const int place134 = j * 2 + lane / 16;
        const int owner135 = place134 % 2 * 16 + place134 / 2 * 4;
        const float v136 = from_bf16((u16)(v0[j].w[0] >> 0));
        const float v137 = from_bf16((u16)(v0[j].w[0] >> 16));
        const float v138 = from_bf16((u16)(v0[j].w[1] >> 0));
        const float v139 = from_bf16((u16)(v0[j].w[1] >> 16));
        const float v140 = from_bf16((u16)(v0[j].w[2] >> 0));
        const float v141 = from_bf16((u16)(v0[j].w[2] >> 16));
        const float v142 = from_bf16((u16)(v0[j].w[3] >> 0));
        const float v143 = from_bf16((u16)(v0[j].w[3] >> 16));
        const float v144 = v136;
        const float v145 = v137;
        const float v146 = v138;
        const float v147 = v139;
        const float v148 = v140;
        const float v149 = v141;
        const float v150 = v142;
        const float v151 = v143;
        #pragma unroll
        for (int h = 0; h < 4; h++) {
          const float p = __shfl_sync(FULL_WARP, v133, owner135 + h);
          o0[h * 8 + 0] = fma_f32(p, v144, o0[h * 8 + 0]);
          o0[h * 8 + 1] = fma_f32(p, v145, o0[h * 8 + 1]);
          o0[h * 8 + 2] = fma_f32(p, v146, o0[h * 8 + 2]);
          o0[h * 8 + 3] = fma_f32(p, v147, o0[h * 8 + 3]);
          o0[h * 8 + 4] = fma_f32(p, v148, o0[h * 8 + 4]);
          o0[h * 8 + 5] = fma_f32(p, v149, o0[h * 8 + 5]);
          o0[h * 8 + 6] = fma_f32(p, v150, o0[h * 8 + 6]);
          o0[h * 8 + 7] = fma_f32(p, v151, o0[h * 8 + 7]);
        }
      }
      c_v1 = v123;
      c_v2 = v132;
    }
    if (lane < 4) {
      *(b4_T1 + x_c_3 * 12 + x_h_4 * 3 + x_ch_1) = c_v1;
      *(b5_T2 + x_c_3 * 12 + x_h_4 * 3 + x_ch_1) = c_v2;
    }
    #pragma unroll
    for (int k = 0; k < 32; k++) {
      o0[k] = above_sum_f32<16>(o0[k]);
    }
    float c_v1_of[4];
    #pragma unroll
    for (int h = 0; h < 4; h++) {
      c_v1_of[h] = __shfl_sync(FULL_WARP, c_v1, h);
    }
    float c_v2_of[4];
    #pragma unroll
    for (int h = 0; h < 4; h++) {
      c_v2_of[h] = __shfl_sync(FULL_WARP, c_v2, h);
    }
    {
      const int x_e_152 = lane % 16 * 8;
      {
        if (lane < 16) {
          *(b6_T3 + x_c_3 * 1536 + 0 * 384 + x_e_152 * 3 + x_ch_1) = o0[0];
          *(b6_T3 + x_c_3 * 1536 + 0 * 384 + x_e_152 * 3 + x_ch_1 + 3) = o0[1];
          *(b6_T3 + x_c_3 * 1536 + 0 * 384 + x_e_152 * 3 + x_ch_1 + 6) = o0[2];
          *(b6_T3 + x_c_3 * 1536 + 0 * 384 + x_e_152 * 3 + x_ch_1 + 9) = o0[3];
          *(b6_T3 + x_c_3 * 1536 + 0 * 384 + x_e_152 * 3 + x_ch_1 + 12) = o0[4];
          *(b6_T3 + x_c_3 * 1536 + 0 * 384 + x_e_152 * 3 + x_ch_1 + 15) = o0[5];
          *(b6_T3 + x_c_3 * 1536 + 0 * 384 + x_e_152 * 3 + x_ch_1 + 18) = o0[6];
          *(b6_T3 + x_c_3 * 1536 + 0 * 384 + x_e_152 * 3 + x_ch_1 + 21) = o0[7];
          *(b6_T3 + x_c_3 * 1536 + 1 * 384 + x_e_152 * 3 + x_ch_1) = o0[8];
          *(b6_T3 + x_c_3 * 1536 + 1 * 384 + x_e_152 * 3 + x_ch_1 + 3) = o0[9];
          *(b6_T3 + x_c_3 * 1536 + 1 * 384 + x_e_152 * 3 + x_ch_1 + 6) = o0[10];
          *(b6_T3 + x_c_3 * 1536 + 1 * 384 + x_e_152 * 3 + x_ch_1 + 9) = o0[11];
          *(b6_T3 + x_c_3 * 1536 + 1 * 384 + x_e_152 * 3 + x_ch_1 + 12) = o0[12];
          *(b6_T3 + x_c_3 * 1536 + 1 * 384 + x_e_152 * 3 + x_ch_1 + 15) = o0[13];
          *(b6_T3 + x_c_3 * 1536 + 1 * 384 + x_e_152 * 3 + x_ch_1 + 18) = o0[14];
          *(b6_T3 + x_c_3 * 1536 + 1 * 384 + x_e_152 * 3 + x_ch_1 + 21) = o0[15];
          *(b6_T3 + x_c_3 * 1536 + 2 * 384 + x_e_152 * 3 + x_ch_1) = o0[16];
          *(b6_T3 + x_c_3 * 1536 + 2 * 384 + x_e_152 * 3 + x_ch_1 + 3) = o0[17];
          *(b6_T3 + x_c_3 * 1536 + 2 * 384 + x_e_152 * 3 + x_ch_1 + 6) = o0[18];
          *(b6_T3 + x_c_3 * 1536 + 2 * 384 + x_e_152 * 3 + x_ch_1 + 9) = o0[19];
          *(b6_T3 + x_c_3 * 1536 + 2 * 384 + x_e_152 * 3 + x_ch_1 + 12) = o0[20];
          *(b6_T3 + x_c_3 * 1536 + 2 * 384 + x_e_152 * 3 + x_ch_1 + 15) = o0[21];
          *(b6_T3 + x_c_3 * 1536 + 2 * 384 + x_e_152 * 3 + x_ch_1 + 18) = o0[22];
          *(b6_T3 + x_c_3 * 1536 + 2 * 384 + x_e_152 * 3 + x_ch_1 + 21) = o0[23];
          *(b6_T3 + x_c_3 * 1536 + 3 * 384 + x_e_152 * 3 + x_ch_1) = o0[24];
          *(b6_T3 + x_c_3 * 1536 + 3 * 384 + x_e_152 * 3 + x_ch_1 + 3) = o0[25];
          *(b6_T3 + x_c_3 * 1536 + 3 * 384 + x_e_152 * 3 + x_ch_1 + 6) = o0[26];
          *(b6_T3 + x_c_3 * 1536 + 3 * 384 + x_e_152 * 3 + x_ch_1 + 9) = o0[27];
          *(b6_T3 + x_c_3 * 1536 + 3 * 384 + x_e_152 * 3 + x_ch_1 + 12) = o0[28];
          *(b6_T3 + x_c_3 * 1536 + 3 * 384 + x_e_152 * 3 + x_ch_1 + 15) = o0[29];
          *(b6_T3 + x_c_3 * 1536 + 3 * 384 + x_e_152 * 3 + x_ch_1 + 18) = o0[30];
          *(b6_T3 + x_c_3 * 1536 + 3 * 384 + x_e_152 * 3 + x_ch_1 + 21) = o0[31];
        }
      }
    }
  }
}
extern "C" __global__ void __launch_bounds__(128) attend(const float *__restrict__ b0_B0, const float *__restrict__ b1_B3, const u16 *__restrict__ b2_B1, const u16 *__restrict__ b3_B2, float *__restrict__ b4_T1, float *__restrict__ b5_T2, float *__restrict__ b6_T3, const i64 *__restrict__ dims) {
  let_next_start();
  wait_for_previous();
  attend_cells(settled(b0_B0), settled(b1_B3), settled(b2_B1), settled(b3_B2), settled(b4_T1), settled(b5_T2), settled(b6_T3), dims);
}
