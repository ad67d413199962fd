void product(void *const *buffers, const int64_t *dims) {
  const int64_t d_n = dims[0];
  const float *const b0_A = buffers[0];
  const float *const b1_B = buffers[1];
  float *const b2_R = buffers[2];
  const int64_t cells1 = (d_n + 15) / 16;
  const int64_t cells2 = cells1;
  #pragma omp for schedule(dynamic, 1 + cells2 / 64) nowait
  for (int64_t cell = 0; cell < cells2; cell++) {
    const int64_t x_i_3 = cell * 16;
    const int64_t stop4 = least(x_i_3 + 16, d_n);
    {
      int64_t x_i = x_i_3;
      for (; x_i + 8 <= stop4; x_i += 8) {
        const f32x8 v5 = ld_f32(b0_A + x_i);
        const f32x8 v6 = ld_f32(b1_B + x_i);
        const f32x8 v7 = (v5 * v6);
        st_f32(b2_R + x_i, v7);
      }
      for (; x_i < stop4; x_i++) {
        const float v8 = *(b0_A + x_i);
        const float v9 = *(b1_B + x_i);
        const float v10 = (v8 * v9);
        *(b2_R + x_i) = v10;
      }
    }
  }
}
