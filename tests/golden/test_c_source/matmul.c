void matmul(void *const *buffers, const int64_t *dims) {
  const int64_t d_m = dims[0];
  const float *const b0_A = buffers[0];
  const float *const b1_B = buffers[1];
  float *const b2_R = buffers[2];
  const int64_t cells1 = (d_m + 3) / 4;
  const int64_t cells2 = (24 + 23) / 24;
  const int64_t cells3 = cells1 * cells2;
  #pragma omp for schedule(dynamic, 1 + cells3 / 64) nowait
  for (int64_t cell = 0; cell < cells3; cell++) {
    const int64_t x_n_4 = cell % cells2 * 24;
    const int64_t rest5 = cell / cells2;
    const int64_t x_m_6 = rest5 * 4;
    const int64_t stop7 = least(x_m_6 + 4, d_m);
    {
      int64_t x_m = x_m_6;
      for (; x_m + 4 <= stop7; x_m += 4) {
        for (int64_t x_n = x_n_4; x_n < x_n_4 + 24; x_n += 3) {
          f32x8 a15 = splat_f32(0.0f);
          f32x8 a16 = splat_f32(0.0f);
          f32x8 a17 = splat_f32(0.0f);
          f32x8 a18 = splat_f32(0.0f);
          f32x8 a19 = splat_f32(0.0f);
          f32x8 a20 = splat_f32(0.0f);
          f32x8 a21 = splat_f32(0.0f);
          f32x8 a22 = splat_f32(0.0f);
          f32x8 a23 = splat_f32(0.0f);
          f32x8 a24 = splat_f32(0.0f);
          f32x8 a25 = splat_f32(0.0f);
          f32x8 a26 = splat_f32(0.0f);
          for (int64_t x_k = 0; x_k < 64; x_k += 8) {
            const f32x8 v8 = ld_f32(b0_A + x_m * 64 + x_k);
            const f32x8 v9 = ld_f32(b0_A + x_m * 64 + x_k + 64);
            const f32x8 v10 = ld_f32(b0_A + x_m * 64 + x_k + 128);
            const f32x8 v11 = ld_f32(b0_A + x_m * 64 + x_k + 192);
            f32x8 v12 = ld_f32(b1_B + x_n * 64 + x_k);
            KEEP(v12);
            f32x8 v13 = ld_f32(b1_B + x_n * 64 + x_k + 64);
            KEEP(v13);
            f32x8 v14 = ld_f32(b1_B + x_n * 64 + x_k + 128);
            KEEP(v14);
            a15 = fma_f32x8(v8, v12, a15);
            a16 = fma_f32x8(v8, v13, a16);
            a17 = fma_f32x8(v8, v14, a17);
            a18 = fma_f32x8(v9, v12, a18);
            a19 = fma_f32x8(v9, v13, a19);
            a20 = fma_f32x8(v9, v14, a20);
            a21 = fma_f32x8(v10, v12, a21);
            a22 = fma_f32x8(v10, v13, a22);
            a23 = fma_f32x8(v10, v14, a23);
            a24 = fma_f32x8(v11, v12, a24);
            a25 = fma_f32x8(v11, v13, a25);
            a26 = fma_f32x8(v11, v14, a26);
          }
          const float v27 = sum_f32(a15);
          const float v28 = sum_f32(a16);
          const float v29 = sum_f32(a17);
          const float v30 = sum_f32(a18);
          const float v31 = sum_f32(a19);
          const float v32 = sum_f32(a20);
          const float v33 = sum_f32(a21);
          const float v34 = sum_f32(a22);
          const float v35 = sum_f32(a23);
          const float v36 = sum_f32(a24);
          const float v37 = sum_f32(a25);
          const float v38 = sum_f32(a26);
          *(b2_R + x_m * 24 + x_n) = v27;
          *(b2_R + x_m * 24 + x_n + 1) = v28;
          *(b2_R + x_m * 24 + x_n + 2) = v29;
          *(b2_R + x_m * 24 + x_n + 24) = v30;
          *(b2_R + x_m * 24 + x_n + 25) = v31;
          *(b2_R + x_m * 24 + x_n + 26) = v32;
          *(b2_R + x_m * 24 + x_n + 48) = v33;
          *(b2_R + x_m * 24 + x_n + 49) = v34;
          *(b2_R + x_m * 24 + x_n + 50) = v35;
          *(b2_R + x_m * 24 + x_n + 72) = v36;
          *(b2_R + x_m * 24 + x_n + 73) = v37;
          *(b2_R + x_m * 24 + x_n + 74) = v38;
        }
      }
      for (; x_m < stop7; x_m++) {
        for (int64_t x_n = x_n_4; x_n < x_n_4 + 24; x_n += 3) {
          f32x8 a43 = splat_f32(0.0f);
          f32x8 a44 = splat_f32(0.0f);
          f32x8 a45 = splat_f32(0.0f);
          for (int64_t x_k = 0; x_k < 64; x_k += 8) {
            f32x8 v39 = ld_f32(b0_A + x_m * 64 + x_k);
            KEEP(v39);
            const f32x8 v40 = ld_f32(b1_B + x_n * 64 + x_k);
            const f32x8 v41 = ld_f32(b1_B + x_n * 64 + x_k + 64);
            const f32x8 v42 = ld_f32(b1_B + x_n * 64 + x_k + 128);
            a43 = fma_f32x8(v39, v40, a43);
            a44 = fma_f32x8(v39, v41, a44);
            a45 = fma_f32x8(v39, v42, a45);
          }
          const float v46 = sum_f32(a43);
          const float v47 = sum_f32(a44);
          const float v48 = sum_f32(a45);
          *(b2_R + x_m * 24 + x_n) = v46;
          *(b2_R + x_m * 24 + x_n + 1) = v47;
          *(b2_R + x_m * 24 + x_n + 2) = v48;
        }
      }
    }
  }
}
