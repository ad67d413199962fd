INLINE void attend_cells(const u16 *__restrict__ b0_Q, const u16 *__restrict__ b1_K, const u16 *__restrict__ b2_V, u16 *__restrict__ b3_R, const i64 *__restrict__ dims) {
  extern __shared__ __align__(16) u8 pool[];
  const i64 d_keys = dims[0];
  const i64 d_seq = dims[1];
  const u32 shared = shared_address(pool);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int high1 = ((int)d_seq + 127) / 128;
  for (int cell = blockIdx.x; cell < 2 * 2 * high1 * 1; cell += gridDim.x) {
    const int rest2 = cell / (high1 * 1);
    const int tile = cell % (high1 * 1);
    const int x_g_3 = rest2 % 2;
    const int rest4 = rest2 / 2;
    const int x_h_5 = rest4;
    const int first_row = (high1 - 1 - tile) * 128;
    const int first_column = 0;
    const int row = first_row + warp / 1 * 32 + lane / 4;
    const int pair = lane % 4 * 2;
    const int column = first_column + pair;
    const int turns6 = ((int)d_keys - 0 + 63) / 64;
    Span live = {0, turns6};
    const auto may_hold = [&](int tile) {
      const int from = 0 + tile * 64;
      const double low7 = (double)first_row + 1.0;
      const double high8 = (double)(least(first_row + 128, (int)d_seq) - 1) + 1.0;
      const double low9 = (double)(least(from + 64, (int)d_keys) - 1) < low7;
      const double high10 = (double)from < high8;
      return !(!(high10 > 0));
    };
    live = all_that(turns6, may_hold);
    const auto is_whole = [&](int tile) {
      const int from = 0 + tile * 64;
      const double low11 = (double)first_row + 1.0;
      const double high12 = (double)(least(first_row + 128, (int)d_seq) - 1) + 1.0;
      const double low13 = (double)(least(from + 64, (int)d_keys) - 1) < low11;
      const double high14 = (double)from < high12;
      return from + 64 <= (int)d_keys && low13 > 0;
    };
    Span whole = first_that(live, is_whole);
    float c_m0[4];
    #pragma unroll
    for (int i = 0; i < 4; i++) {
      c_m0[i] = -INFINITY;
    }
    float c_l0[4];
    #pragma unroll
    for (int i = 0; i < 4; i++) {
      c_l0[i] = 0.0f;
    }
    float c_o0[4][16] = {};
    {
      copy_tile<128, 8, 128, 8, false>(shared, b0_Q + (i64)x_g_3 * (64 * d_seq) + (i64)x_h_5 * (128 * d_seq) + (i64)first_row * 64 + (i64)0, 64, (int)d_seq - first_row, 64 - 0);
    }
    if (live.first + 0 < live.last) {
      const u32 stage = shared + 16384 + (0) * 16384;
      const int position = 0 + (live.first + 0) * 64;
      {
        copy_tile<64, 8, 128, 8, false>(stage, b1_K + (i64)x_h_5 * (64 * d_keys) + (i64)position * 64 + (i64)0, 64, (int)d_keys - position, 64 - 0);
      }
    }
    async_commit();
    for (int turn = live.first; turn < live.last; turn++) {
      const int first = 0 + turn * 64;
      const int slot = 0;
      async_wait<0>();
      __syncthreads();
      if (turn < live.last) {
        const u32 stage = shared + 16384 + (0) * 16384;
        const int position = 0 + (turn) * 64;
        {
          copy_tile<64, 8, 128, 8, false>(stage + 8192, b2_V + (i64)x_h_5 * (64 * d_keys) + (i64)position * 64 + (i64)first_column, 64, (int)d_keys - position, 64 - first_column);
        }
      }
      async_commit();
      const u32 tiles = shared + 16384 + slot * 16384;
      float s15[4][16] = {};
      #pragma unroll
      for (int k = 0; k < 4; k++) {
        u32 a[2][4];
        load_rows<8, false>(a, shared, warp / 1 * 32, k);
        u32 b[4][4];
        load_columns<8, false>(b, tiles, 0, k);
        multiply<true>(s15, a, b);
      }
      if (turn >= whole.first && turn < whole.last) {
        float r16[4];
        #pragma unroll
        for (int i = 0; i < 4; i++) {
          const int x_i_17 = least(row + i * 8, (int)d_seq - 1);
          float r[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
          #pragma unroll
          for (int j = 0; j < 8; j++) {
            const int x_j_18 = first + pair + j * 8 + 0;
            const int x_j_19 = first + pair + j * 8 + 1;
            r[j * 2 % 4 + 0] = larger(r[j * 2 % 4 + 0], s15[i][j * 2 + 0]);
            r[j * 2 % 4 + 1] = larger(r[j * 2 % 4 + 1], s15[i][j * 2 + 1]);
          }
          r16[i] = quad_max(larger(larger(r[0], r[1]), larger(r[2], r[3]))) * 0.088388347f;
        }
        float t20[4];
        #pragma unroll
        for (int i = 0; i < 4; i++) {
          const int x_i_21 = least(row + i * 8, (int)d_seq - 1);
          const float v22 = larger(c_m0[i], r16[i]);
          t20[i] = v22;
        }
        float t23[4][16];
        #pragma unroll
        for (int i = 0; i < 4; i++) {
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
        float r32[4];
        #pragma unroll
        for (int i = 0; i < 4; i++) {
          const int x_i_33 = least(row + i * 8, (int)d_seq - 1);
          float r[4] = {0.0f, 0.0f, 0.0f, 0.0f};
          #pragma unroll
          for (int j = 0; j < 8; j++) {
            const int x_j_34 = first + pair + j * 8 + 0;
            const int x_j_35 = first + pair + j * 8 + 1;
            r[j * 2 % 4 + 0] = (r[j * 2 % 4 + 0] + t23[i][j * 2 + 0]);
            r[j * 2 % 4 + 1] = (r[j * 2 % 4 + 1] + t23[i][j * 2 + 1]);
          }
          r32[i] = ((r[0] + r[1]) + (r[2] + r[3]));
        }
        float t36[4];
        #pragma unroll
        for (int i = 0; i < 4; i++) {
          const int x_i_37 = least(row + i * 8, (int)d_seq - 1);
          const float v38 = subni_f32(c_m0[i], t20[i]);
          t36[i] = v38;
        }
        float t39[4];
        #pragma unroll
        for (int i = 0; i < 4; i++) {
          const int x_i_40 = least(row + i * 8, (int)d_seq - 1);
          const float v41 = (t36[i] * 0x1.7154760000000p+0f);
          t39[i] = v41;
        }
        float t42[4];
        #pragma unroll
        for (int i = 0; i < 4; i++) {
          const int x_i_43 = least(row + i * 8, (int)d_seq - 1);
          const float v44 = exp2_f32(t39[i]);
          t42[i] = v44;
        }
        #pragma unroll
        for (int i = 0; i < 4; i++) {
          #pragma unroll
          for (int j = 0; j < 16; j++) {
            c_o0[i][j] *= t42[i];
          }
        }
        float p45[4][16];
        #pragma unroll
        for (int i = 0; i < 4; i++) {
          const int x_i_46 = least(row + i * 8, (int)d_seq - 1);
          #pragma unroll
          for (int j = 0; j < 8; j++) {
            const int x_j_47 = first + pair + j * 8 + 0;
            const int x_j_48 = first + pair + j * 8 + 1;
            p45[i][j * 2 + 0] = t23[i][j * 2 + 0];
            p45[i][j * 2 + 1] = t23[i][j * 2 + 1];
          }
        }
        u32 a49[4][2][4];
        #pragma unroll
        for (int k = 0; k < 4; k++) {
          take_rows<true, false>(a49[k], p45, k);
        }
        async_wait<0>();
        __syncthreads();
        if (turn + 1 < live.last) {
          const u32 stage = shared + 16384 + (0) * 16384;
          const int position = 0 + (turn + 1) * 64;
          {
            copy_tile<64, 8, 128, 8, false>(stage, b1_K + (i64)x_h_5 * (64 * d_keys) + (i64)position * 64 + (i64)0, 64, (int)d_keys - position, 64 - 0);
          }
        }
        async_commit();
        #pragma unroll
        for (int k = 0; k < 4; k++) {
          u32 b[4][4];
          load_columns<8, true>(b, tiles + 8192, 0, k);
          multiply<true>(c_o0, a49[k], b);
        }
        #pragma unroll
        for (int i = 0; i < 4; i++) {
          c_m0[i] = t20[i];
          c_l0[i] = c_l0[i] * t42[i] + r32[i];
        }
      }
      else {
        float t50[4][16];
        #pragma unroll
        for (int i = 0; i < 4; i++) {
          const int x_i_51 = least(row + i * 8, (int)d_seq - 1);
          const int v54 = add_i32(x_i_51, 1);
          #pragma unroll
          for (int j = 0; j < 8; j++) {
            const int x_j_52 = least(first + pair + j * 8 + 0, (int)d_keys - 1);
            const int x_j_53 = least(first + pair + j * 8 + 1, (int)d_keys - 1);
            const int v55 = (int)(x_j_52 < v54);
            const int v56 = (int)(x_j_53 < v54);
            t50[i][j * 2 + 0] = v55 ? s15[i][j * 2 + 0] : -INFINITY;
            t50[i][j * 2 + 1] = v56 ? s15[i][j * 2 + 1] : -INFINITY;
          }
        }
        float r57[4];
        #pragma unroll
        for (int i = 0; i < 4; i++) {
          const int x_i_58 = least(row + i * 8, (int)d_seq - 1);
          float r[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
          #pragma unroll
          for (int j = 0; j < 8; j++) {
            const int x_j_59 = least(first + pair + j * 8 + 0, (int)d_keys - 1);
            const int x_j_60 = least(first + pair + j * 8 + 1, (int)d_keys - 1);
            r[j * 2 % 4 + 0] = larger(r[j * 2 % 4 + 0], (first + pair + j * 8 < (int)d_keys ? t50[i][j * 2 + 0] : -INFINITY));
            r[j * 2 % 4 + 1] = larger(r[j * 2 % 4 + 1], (first + pair + j * 8 + 1 < (int)d_keys ? t50[i][j * 2 + 1] : -INFINITY));
          }
          r57[i] = quad_max(larger(larger(r[0], r[1]), larger(r[2], r[3]))) * 0.088388347f;
        }
        float t61[4];
        #pragma unroll
        for (int i = 0; i < 4; i++) {
          const int x_i_62 = least(row + i * 8, (int)d_seq - 1);
          const float v63 = larger(c_m0[i], r57[i]);
          t61[i] = v63;
        }
        float t64[4][16];
        #pragma unroll
        for (int i = 0; i < 4; i++) {
          const int x_i_65 = least(row + i * 8, (int)d_seq - 1);
          const float v68 = shift(t61[i], 1.442695f);
          #pragma unroll
          for (int j = 0; j < 8; j++) {
            const int x_j_66 = least(first + pair + j * 8 + 0, (int)d_keys - 1);
            const int x_j_67 = least(first + pair + j * 8 + 1, (int)d_keys - 1);
            const float v69 = power_of_two(fmaf(t50[i][j * 2 + 0], 0.12751742627516502f, v68));
            const float v70 = power_of_two(fmaf(t50[i][j * 2 + 1], 0.12751742627516502f, v68));
            const float v71 = (v69 * 1.0f);
            const float v72 = (v70 * 1.0f);
            t64[i][j * 2 + 0] = v71;
            t64[i][j * 2 + 1] = v72;
          }
        }
        float r73[4];
        #pragma unroll
        for (int i = 0; i < 4; i++) {
          const int x_i_74 = least(row + i * 8, (int)d_seq - 1);
          float r[4] = {0.0f, 0.0f, 0.0f, 0.0f};
          #pragma unroll
          for (int j = 0; j < 8; j++) {
            const int x_j_75 = least(first + pair + j * 8 + 0, (int)d_keys - 1);
            const int x_j_76 = least(first + pair + j * 8 + 1, (int)d_keys - 1);
            r[j * 2 % 4 + 0] = (r[j * 2 % 4 + 0] + (first + pair + j * 8 < (int)d_keys ? t64[i][j * 2 + 0] : 0.0f));
            r[j * 2 % 4 + 1] = (r[j * 2 % 4 + 1] + (first + pair + j * 8 + 1 < (int)d_keys ? t64[i][j * 2 + 1] : 0.0f));
          }
          r73[i] = ((r[0] + r[1]) + (r[2] + r[3]));
        }
        float t77[4];
        #pragma unroll
        for (int i = 0; i < 4; i++) {
          const int x_i_78 = least(row + i * 8, (int)d_seq - 1);
          const float v79 = subni_f32(c_m0[i], t61[i]);
          t77[i] = v79;
        }
        float t80[4];
        #pragma unroll
        for (int i = 0; i < 4; i++) {
          const int x_i_81 = least(row + i * 8, (int)d_seq - 1);
          const float v82 = (t77[i] * 0x1.7154760000000p+0f);
          t80[i] = v82;
        }
        float t83[4];
        #pragma unroll
        for (int i = 0; i < 4; i++) {
          const int x_i_84 = least(row + i * 8, (int)d_seq - 1);
          const float v85 = exp2_f32(t80[i]);
          t83[i] = v85;
        }
        #pragma unroll
        for (int i = 0; i < 4; i++) {
          #pragma unroll
          for (int j = 0; j < 16; j++) {
            c_o0[i][j] *= t83[i];
          }
        }
        float p86[4][16];
        #pragma unroll
        for (int i = 0; i < 4; i++) {
          const int x_i_87 = least(row + i * 8, (int)d_seq - 1);
          #pragma unroll
          for (int j = 0; j < 8; j++) {
            const int x_j_88 = least(first + pair + j * 8 + 0, (int)d_keys - 1);
            const int x_j_89 = least(first + pair + j * 8 + 1, (int)d_keys - 1);
            p86[i][j * 2 + 0] = first + pair + j * 8 < (int)d_keys ? t64[i][j * 2 + 0] : 0.0f;
            p86[i][j * 2 + 1] = first + pair + j * 8 + 1 < (int)d_keys ? t64[i][j * 2 + 1] : 0.0f;
          }
        }
        u32 a90[4][2][4];
        #pragma unroll
        for (int k = 0; k < 4; k++) {
          take_rows<true, false>(a90[k], p86, k);
        }
        async_wait<0>();
        __syncthreads();
        if (turn + 1 < live.last) {
          const u32 stage = shared + 16384 + (0) * 16384;
          const int position = 0 + (turn + 1) * 64;
          {
            copy_tile<64, 8, 128, 8, false>(stage, b1_K + (i64)x_h_5 * (64 * d_keys) + (i64)position * 64 + (i64)0, 64, (int)d_keys - position, 64 - 0);
          }
        }
        async_commit();
        #pragma unroll
        for (int k = 0; k < 4; k++) {
          u32 b[4][4];
          load_columns<8, true>(b, tiles + 8192, 0, k);
          multiply<true>(c_o0, a90[k], b);
        }
        #pragma unroll
        for (int i = 0; i < 4; i++) {
          c_m0[i] = t61[i];
          c_l0[i] = c_l0[i] * t83[i] + r73[i];
        }
      }
    }
    async_wait<0>();
    #pragma unroll
    for (int i = 0; i < 4; i++) {
      c_l0[i] = quad_sum(c_l0[i]);
    }
    #pragma unroll
    for (int i = 0; i < 4; i++) {
      const int x_i_91 = least(row + i * 8, (int)d_seq - 1);
      u32 w92[8];
      const float v94 = recipz_f32(c_l0[i]);
      #pragma unroll
      for (int j = 0; j < 8; j++) {
        const int x_e_93 = column + j * 8;
        const float v95 = (c_o0[i][j * 2 + 0] * v94);
        const float v96 = (c_o0[i][j * 2 + 1] * v94);
        w92[j] = pack<true>(v95, v96);
      }
      #pragma unroll
      for (int g = 0; g < 2; g++) {
        const uint4 eight = gather_tile(w92[g * 4 + 0], w92[g * 4 + 1], w92[g * 4 + 2], w92[g * 4 + 3]);
        const int place97 = column + lane % 4 * 6 + g * 32;
        if (row + i * 8 < (int)d_seq) *(uint4 *)(b3_R + (i64)x_g_3 * (64 * d_seq) + (i64)x_h_5 * (128 * d_seq) + (i64)x_i_91 * 64 + (i64)place97) = eight;
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
