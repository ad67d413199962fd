void packed(void *const *buffers, const int64_t *dims) {
  const float *const b0_B0 = buffers[0];
  const int8_t *const b1_B2 = buffers[1];
  const uint16_t *const b2_B1 = buffers[2];
  float *const b3_B3 = buffers[3];
  const int64_t cells1 = (24 + 3) / 4;
  const int64_t cells2 = cells1;
  #pragma omp for schedule(dynamic, 1 + cells2 / 64) nowait
  for (int64_t cell = 0; cell < cells2; cell++) {
    const int64_t x_a_3 = cell * 4;
    {
      const int64_t x_a = x_a_3;
      f32x8 a25 = splat_f32(0.0f);
      f32x8 a26 = splat_f32(0.0f);
      f32x8 a27 = splat_f32(0.0f);
      f32x8 a28 = splat_f32(0.0f);
      _Pragma("GCC unroll 3") for (int64_t x_b = 0; x_b < 3; x_b += 1) {
        f32x8 a13 = splat_f32(0.0f);
        f32x8 a14 = splat_f32(0.0f);
        f32x8 a15 = splat_f32(0.0f);
        f32x8 a16 = splat_f32(0.0f);
        _Pragma("GCC unroll 4") for (int64_t x_c = 0; x_c < 32; x_c += 8) {
          f32x8 v4 = ld_f32(b0_B0 + x_b * 32 + x_c);
          KEEP(v4);
          const i32x8 v5 = ld_i8(b1_B2 + x_a * 96 + x_b * 32 + x_c);
          const i32x8 v6 = ld_i8(b1_B2 + x_a * 96 + x_b * 32 + x_c + 96);
          const i32x8 v7 = ld_i8(b1_B2 + x_a * 96 + x_b * 32 + x_c + 192);
          const i32x8 v8 = ld_i8(b1_B2 + x_a * 96 + x_b * 32 + x_c + 288);
          const f32x8 v9 = __builtin_convertvector(v5, f32x8);
          const f32x8 v10 = __builtin_convertvector(v6, f32x8);
          const f32x8 v11 = __builtin_convertvector(v7, f32x8);
          const f32x8 v12 = __builtin_convertvector(v8, f32x8);
          a13 = fma_f32x8(v4, v9, a13);
          a14 = fma_f32x8(v4, v10, a14);
          a15 = fma_f32x8(v4, v11, a15);
          a16 = fma_f32x8(v4, v12, a16);
        }
        const float v17 = from_f16(*(b2_B1 + x_a * 3 + x_b));
        const float v18 = from_f16(*(b2_B1 + x_a * 3 + x_b + 3));
        const float v19 = from_f16(*(b2_B1 + x_a * 3 + x_b + 6));
        const float v20 = from_f16(*(b2_B1 + x_a * 3 + x_b + 9));
        const float v21 = v17;
        const float v22 = v18;
        const float v23 = v19;
        const float v24 = v20;
        a25 = fma_f32x8(a13, splat_f32(v21), a25);
        a26 = fma_f32x8(a14, splat_f32(v22), a26);
        a27 = fma_f32x8(a15, splat_f32(v23), a27);
        a28 = fma_f32x8(a16, splat_f32(v24), a28);
      }
      const float v29 = sum_f32(a25);
      const float v30 = sum_f32(a26);
      const float v31 = sum_f32(a27);
      const float v32 = sum_f32(a28);
      *(b3_B3 + x_a) = v29;
      *(b3_B3 + x_a + 1) = v30;
      *(b3_B3 + x_a + 2) = v31;
      *(b3_B3 + x_a + 3) = v32;
    }
  }
}
