INLINE void attend_cells(const u16 *__restrict__ b0_Q, const u16 *__restrict__ b1_K, const u16 *__restrict__ b2_V, u16 *__restrict__ b3_R, const i64 *__restrict__ dims) {
  extern __shared__ __align__(16) u8 pool[];
  const i64 d_keys = dims[0];
  const i64 d_seq = dims[1];
  const u32 shared = shared_address(pool);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int high1 = ((int)d_seq + 63) / 64;
  for (int cell = blockIdx.x; cell < 2 * 2 * high1 * 1; cell += gridDim.x) {
    const int rest2 = cell / (high1 * 1);
    const int tile = cell % (high1 * 1);
    const int x_g_3 = rest2 % 2;
    const int rest4 = rest2 / 2;
    const int x_h_5 = rest4;
    const int first_row = (high1 - 1 - tile) * 64;
    const int first_column = 0;
    const int row = first_row + warp / 1 * 16 + lane / 4;
    const int pair = lane % 4 * 2;
    const int column = first_column + pair;
    const int turns6 = ((int)d_keys - 0 + 63) / 64;
    Span live = {0, turns6};
    const auto may_hold = [&](int tile) {
      const int from = 0 + tile * 64;
      const double low7 = (double)first_row + 1.0;
      const double high8 = (double)(least(first_row + 64, (int)d_seq) - 1) + 1.0;
      const double low9 = (double)(least(from + 64, (int)d_keys) - 1) < low7;
      const double high10 = (double)from < high8;
      return !(!(high10 > 0));
    };
    live = all_that(turns6, may_hold);
    const auto is_whole = [&](int tile) {
      const int from = 0 + tile * 64;
      const double low11 = (double)first_row + 1.0;
      const double high12 = (double)(least(first_row + 64, (int)d_seq) - 1) + 1.0;
      const double low13 = (double)(least(from + 64, (int)d_keys) - 1) < low11;
      const double high14 = (double)from < high12;
      return from + 64 <= (int)d_keys && low13 > 0;
    };
    const Span whole = first_that(live, is_whole);
    float c_m0[2];
    #pragma unroll
    for (int i = 0; i < 2; i++) {
      c_m0[i] = -INFINITY;
    }
    float c_l0[2];
    #pragma unroll
    for (int i = 0; i < 2; i++) {
      c_l0[i] = 0.0f;
    }
    float c_o0[2][16] = {};
    {
      copy_tile<64, 8, 128, 8, false>(shared, b0_Q + (i64)x_g_3 * (64 * d_seq) + (i64)x_h_5 * (128 * d_seq) + (i64)first_row * 64 + (i64)0, 64, (int)d_seq - first_row, 64 - 0);
    }
    if (live.first + 0 < live.last) {
      const int position = 0 + (live.first + 0) * 64;
      const u32 stage = shared + 8192 + (0) * 16384;
      {
        copy_tile<64, 8, 128, 8, false>(stage, b1_K + (i64)x_h_5 * (64 * d_keys) + (i64)position * 64 + (i64)0, 64, (int)d_keys - position, 64 - 0);
      }
    }
    async_commit();
    if (live.first + 0 < live.last) {
      const int position = 0 + (live.first + 0) * 64;
      const u32 stage = shared + 8192 + (0) * 16384;
      {
        copy_tile<64, 8, 128, 8, false>(stage + 8192, b2_V + (i64)x_h_5 * (64 * d_keys) + (i64)position * 64 + (i64)first_column, 64, (int)d_keys - position, 64 - first_column);
      }
    }
    async_commit();
    async_wait<1>();
    __syncthreads();
    u32 q0[4][1][4];
    #pragma unroll
    for (int k = 0; k < 4; k++) {
      load_rows<8, false>(q0[k], shared, warp / 1 * 16, k);
    }
    for (int turn = live.first; turn < live.last; turn++) {
      const int first = 0 + turn * 64;
      const int slot = (turn - live.first) % 2;
      async_wait<1>();
      __syncthreads();
      if (turn + 1 < live.last) {
        const int position = 0 + (turn + 1) * 64;
        const u32 stage = shared + 8192 + ((turn - live.first + 1) % 2) * 16384;
        {
          copy_tile<64, 8, 128, 8, false>(stage, b1_K + (i64)x_h_5 * (64 * d_keys) + (i64)position * 64 + (i64)0, 64, (int)d_keys - position, 64 - 0);
        }
      }
      async_commit();
      const u32 tiles = shared + 8192 + slot * 16384;
      float s15[2][16] = {};
      #pragma unroll
      for (int k = 0; k < 4; k++) {
        multiply<true, 8, false>(s15, q0[k], tiles, 0, k);
      }
      if (turn >= whole.first && turn < whole.last) {
        float r16[2];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_17 = least(row + i * 8, (int)d_seq - 1);
          float r = -INFINITY;
          #pragma unroll
          for (int j = 0; j < 8; j++) {
            const int x_j_18 = first + pair + j * 8 + 0;
            const int x_j_19 = first + pair + j * 8 + 1;
            r = most(r, s15[i][j * 2 + 0]);
            r = most(r, s15[i][j * 2 + 1]);
          }
          r16[i] = quad_max(r) * 0.088388347f;
        }
        float t20[2];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_21 = least(row + i * 8, (int)d_seq - 1);
          const float v22 = most(c_m0[i], r16[i]);
          t20[i] = v22;
        }
        float t23[2][16];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_24 = least(row + i * 8, (int)d_seq - 1);
          const float v27 = shift(t20[i], 1.442695f);
          #pragma unroll
          for (int j = 0; j < 8; j++) {
            const int x_j_25 = first + pair + j * 8 + 0;
            const int x_j_26 = first + pair + j * 8 + 1;
            const float v28 = power_of_two(fmaf(s15[i][j * 2 + 0], 0.12751742627516502f, v27));
            const float v29 = power_of_two(fmaf(s15[i][j * 2 + 1], 0.12751742627516502f, v27));
            const float v30 = (v28 * 1.0f);
            const float v31 = (v29 * 1.0f);
            t23[i][j * 2 + 0] = v30;
            t23[i][j * 2 + 1] = v31;
          }
        }
        float r32[2];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_33 = least(row + i * 8, (int)d_seq - 1);
          float r = 0.0f;
          #pragma unroll
          for (int j = 0; j < 8; j++) {
            const int x_j_34 = first + pair + j * 8 + 0;
            const int x_j_35 = first + pair + j * 8 + 1;
            r = (r + t23[i][j * 2 + 0]);
            r = (r + t23[i][j * 2 + 1]);
          }
          r32[i] = r;
        }
        float t36[2];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_37 = least(row + i * 8, (int)d_seq - 1);
          const float v38 = subni_f32(c_m0[i], t20[i]);
          t36[i] = v38;
        }
        float t39[2];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_40 = least(row + i * 8, (int)d_seq - 1);
          const float v41 = (t36[i] * 0x1.7154760000000p+0f);
          t39[i] = v41;
        }
        float t42[2];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_43 = least(row + i * 8, (int)d_seq - 1);
          const float v44 = exp2_f32(t39[i]);
          t42[i] = v44;
        }
        async_wait<1>();
        __syncthreads();
        if (turn + 1 < live.last) {
          const int position = 0 + (turn + 1) * 64;
          const u32 stage = shared + 8192 + ((turn - live.first + 1) % 2) * 16384;
          {
            copy_tile<64, 8, 128, 8, false>(stage + 8192, b2_V + (i64)x_h_5 * (64 * d_keys) + (i64)position * 64 + (i64)first_column, 64, (int)d_keys - position, 64 - first_column);
          }
        }
        async_commit();
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          #pragma unroll
          for (int j = 0; j < 16; j++) {
            c_o0[i][j] *= t42[i];
          }
        }
        float p45[2][16];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_46 = least(row + i * 8, (int)d_seq - 1);
          #pragma unroll
          for (int j = 0; j < 8; j++) {
            const int x_j_47 = first + pair + j * 8 + 0;
            const int x_j_48 = first + pair + j * 8 + 1;
            p45[i][j * 2 + 0] = t23[i][j * 2 + 0];
            p45[i][j * 2 + 1] = t23[i][j * 2 + 1];
          }
        }
        #pragma unroll
        for (int k = 0; k < 4; k++) {
          u32 a[1][4];
          take_rows<true, false>(a, p45, k);
          multiply<true, 8, true>(c_o0, a, tiles + 8192, 0, k);
        }
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          c_m0[i] = t20[i];
          c_l0[i] = c_l0[i] * t42[i] + r32[i];
        }
      }
      else {
        float t49[2][16];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_50 = least(row + i * 8, (int)d_seq - 1);
          const int v53 = add_i32(x_i_50, 1);
          #pragma unroll
          for (int j = 0; j < 8; j++) {
            const int x_j_51 = least(first + pair + j * 8 + 0, (int)d_keys - 1);
            const int x_j_52 = least(first + pair + j * 8 + 1, (int)d_keys - 1);
            const int v54 = (int)(x_j_51 < v53);
            const int v55 = (int)(x_j_52 < v53);
            t49[i][j * 2 + 0] = v54 ? s15[i][j * 2 + 0] : -INFINITY;
            t49[i][j * 2 + 1] = v55 ? s15[i][j * 2 + 1] : -INFINITY;
          }
        }
        float r56[2];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_57 = least(row + i * 8, (int)d_seq - 1);
          float r = -INFINITY;
          #pragma unroll
          for (int j = 0; j < 8; j++) {
            const int x_j_58 = least(first + pair + j * 8 + 0, (int)d_keys - 1);
            const int x_j_59 = least(first + pair + j * 8 + 1, (int)d_keys - 1);
            r = most(r, (first + pair + j * 8 < (int)d_keys ? t49[i][j * 2 + 0] : -INFINITY));
            r = most(r, (first + pair + j * 8 + 1 < (int)d_keys ? t49[i][j * 2 + 1] : -INFINITY));
          }
          r56[i] = quad_max(r) * 0.088388347f;
        }
        float t60[2];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_61 = least(row + i * 8, (int)d_seq - 1);
          const float v62 = most(c_m0[i], r56[i]);
          t60[i] = v62;
        }
        float t63[2][16];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_64 = least(row + i * 8, (int)d_seq - 1);
          const float v67 = shift(t60[i], 1.442695f);
          #pragma unroll
          for (int j = 0; j < 8; j++) {
            const int x_j_65 = least(first + pair + j * 8 + 0, (int)d_keys - 1);
            const int x_j_66 = least(first + pair + j * 8 + 1, (int)d_keys - 1);
            const float v68 = power_of_two(fmaf(t49[i][j * 2 + 0], 0.12751742627516502f, v67));
            const float v69 = power_of_two(fmaf(t49[i][j * 2 + 1], 0.12751742627516502f, v67));
            const float v70 = (v68 * 1.0f);
            const float v71 = (v69 * 1.0f);
            t63[i][j * 2 + 0] = v70;
            t63[i][j * 2 + 1] = v71;
          }
        }
        float r72[2];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_73 = least(row + i * 8, (int)d_seq - 1);
          float r = 0.0f;
          #pragma unroll
          for (int j = 0; j < 8; j++) {
            const int x_j_74 = least(first + pair + j * 8 + 0, (int)d_keys - 1);
            const int x_j_75 = least(first + pair + j * 8 + 1, (int)d_keys - 1);
            r = (r + (first + pair + j * 8 < (int)d_keys ? t63[i][j * 2 + 0] : 0.0f));
            r = (r + (first + pair + j * 8 + 1 < (int)d_keys ? t63[i][j * 2 + 1] : 0.0f));
          }
          r72[i] = r;
        }
        float t76[2];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_77 = least(row + i * 8, (int)d_seq - 1);
          const float v78 = subni_f32(c_m0[i], t60[i]);
          t76[i] = v78;
        }
        float t79[2];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_80 = least(row + i * 8, (int)d_seq - 1);
          const float v81 = (t76[i] * 0x1.7154760000000p+0f);
          t79[i] = v81;
        }
        float t82[2];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_83 = least(row + i * 8, (int)d_seq - 1);
          const float v84 = exp2_f32(t79[i]);
          t82[i] = v84;
        }
        async_wait<1>();
        __syncthreads();
        if (turn + 1 < live.last) {
          const int position = 0 + (turn + 1) * 64;
          const u32 stage = shared + 8192 + ((turn - live.first + 1) % 2) * 16384;
          {
            copy_tile<64, 8, 128, 8, false>(stage + 8192, b2_V + (i64)x_h_5 * (64 * d_keys) + (i64)position * 64 + (i64)first_column, 64, (int)d_keys - position, 64 - first_column);
          }
        }
        async_commit();
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          #pragma unroll
          for (int j = 0; j < 16; j++) {
            c_o0[i][j] *= t82[i];
          }
        }
        float p85[2][16];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_86 = least(row + i * 8, (int)d_seq - 1);
          #pragma unroll
          for (int j = 0; j < 8; j++) {
            const int x_j_87 = least(first + pair + j * 8 + 0, (int)d_keys - 1);
            const int x_j_88 = least(first + pair + j * 8 + 1, (int)d_keys - 1);
            p85[i][j * 2 + 0] = first + pair + j * 8 < (int)d_keys ? t63[i][j * 2 + 0] : 0.0f;
            p85[i][j * 2 + 1] = first + pair + j * 8 + 1 < (int)d_keys ? t63[i][j * 2 + 1] : 0.0f;
          }
        }
        #pragma unroll
        for (int k = 0; k < 4; k++) {
          u32 a[1][4];
          take_rows<true, false>(a, p85, k);
          multiply<true, 8, true>(c_o0, a, tiles + 8192, 0, k);
        }
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          c_m0[i] = t60[i];
          c_l0[i] = c_l0[i] * t82[i] + r72[i];
        }
      }
    }
    async_wait<0>();
    #pragma unroll
    for (int i = 0; i < 2; i++) {
      c_l0[i] = quad_sum(c_l0[i]);
    }
    #pragma unroll
    for (int i = 0; i < 2; i++) {
      const int x_i_89 = least(row + i * 8, (int)d_seq - 1);
      const float v91 = recipz_f32(c_l0[i]);
      if (row + i * 8 < (int)d_seq) {
        #pragma unroll
        for (int j = 0; j < 8; j++) {
          const int x_e_90 = column + j * 8;
          const float v92 = (c_o0[i][j * 2 + 0] * v91);
          const float v93 = (c_o0[i][j * 2 + 1] * v91);
          const float v94 = round_bf16(v92);
          const float v95 = round_bf16(v93);
          wide_store((u32 *)(b3_R + (i64)x_g_3 * (64 * d_seq) + (i64)x_h_5 * (128 * d_seq) + (i64)x_i_89 * 64 + (i64)x_e_90), two(held_bf16(v94), held_bf16(v95)));
        }
      }
    }
    __syncthreads();
  }
}
extern "C" __global__ void __launch_bounds__(128) attend(const u16 *__restrict__ b0_Q, const u16 *__restrict__ b1_K, const u16 *__restrict__ b2_V, u16 *__restrict__ b3_R, const i64 *__restrict__ dims) {
  let_next_start();
  wait_for_previous();
  attend_cells(settled(b0_Q), settled(b1_K), settled(b2_V), settled(b3_R), dims);
}
