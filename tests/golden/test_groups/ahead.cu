INLINE void attend_feed(const u16 *__restrict__ b0_Q, const u16 *__restrict__ b1_K, const u16 *__restrict__ b2_V, u16 *__restrict__ b3_R, const i64 *__restrict__ dims, const TensorMap &map0, const TensorMap &map1, const TensorMap &map2, u32 signals) {
  const u32 shared = signals + 1024;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int team = group_of_warps() - 0;
  const int cells1 = 2 * 2 * 4 * 1;
  Ring<2> rows(signals, 0, 6);
  Ring<2> early(signals, 2, 6);
  Ring<2> late(signals, 4, 6);
  late.claim();
  const u32 signal = late.full + 8 * late.slot;
  if (lane == 0) signal_give(signal);
  late.next();
  for (int lap = 0;; lap++) {
    const int place = lap & 1 ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
    const int cell = lap * gridDim.x + place;
    if (cell >= cells1) break;
    const int rest2 = cell / (4 * 1);
    const int tile = cell % (4 * 1);
    const int x_g_3 = rest2 % 2;
    const int rest4 = rest2 / 2;
    const int x_h_5 = rest4;
    const int first_row = (4 - 1 - tile) * 128;
    const int first_column = 0;
    const int row = first_row + warp / 1 * 16 + lane / 4;
    const int turns6 = (512 - 0 + 127) / 128;
    Span live = {0, turns6};
    const auto may_hold = [&](int tile) {
      const int from = 0 + tile * 128;
      const double low7 = (double)first_row + 1.0;
      const double high8 = (double)(first_row + 128 - 1) + 1.0;
      const double low9 = (double)(least(from + 128, 512) - 1) < low7;
      const double high10 = (double)from < high8;
      return !(!(high10 > 0));
    };
    live = all_that(turns6, may_hold);
    const auto is_whole = [&](int tile) {
      const int from = 0 + tile * 128;
      const double low11 = (double)first_row + 1.0;
      const double high12 = (double)(first_row + 128 - 1) + 1.0;
      const double low13 = (double)(least(from + 128, 512) - 1) < low11;
      const double high14 = (double)from < high12;
      return from + 128 <= 512 && low13 > 0;
    };
    Span whole = first_that(live, is_whole);
    settle(live);
    settle(whole);
    if (live.first < live.last) {
      {
        rows.claim();
        const u32 signal = rows.full + 8 * rows.slot;
        if (lane == 0) signal_expect(signal, 16384);
        if (lane == 0) {
          fetch_box(shared + rows.slot * 16384 + 0, &map0, signal, 0 + 0, first_row, x_h_5 * 2 + x_g_3 * 1);
        }
        rows.next();
      }
      for (int turn = live.last - 1; turn >= live.first; turn--) {
        {
          early.claim();
          const u32 signal = early.full + 8 * early.slot;
          if (lane == 0) signal_expect(signal, 16384);
          const u32 stage = shared + 32768 + early.slot * 32768;
          const int position = 0 + (turn) * 128;
          if (lane == 0) {
            fetch_box(stage + 0, &map1, signal, 0 + 0, position, x_h_5 * 1);
          }
          early.next();
        }
        if (turn < live.last - 1) {
          {
            late.claim();
            const u32 signal = late.full + 8 * late.slot;
            if (lane == 0) signal_expect(signal, 16384);
            const u32 stage = shared + 32768 + late.slot * 32768;
            const int position = 0 + (turn + 1) * 128;
            if (lane == 0) {
              fetch_box(stage + 16384 + 0, &map2, signal, first_column + 0, position, x_h_5 * 1);
            }
            late.next();
          }
        }
      }
      {
        late.claim();
        const u32 signal = late.full + 8 * late.slot;
        if (lane == 0) signal_expect(signal, 16384);
        const u32 stage = shared + 32768 + late.slot * 32768;
        const int position = 0 + (live.first) * 128;
        if (lane == 0) {
          fetch_box(stage + 16384 + 0, &map2, signal, first_column + 0, position, x_h_5 * 1);
        }
        late.next();
      }
    }
  }
}
INLINE void attend_use(const u16 *__restrict__ b0_Q, const u16 *__restrict__ b1_K, const u16 *__restrict__ b2_V, u16 *__restrict__ b3_R, const i64 *__restrict__ dims, const TensorMap &map0, const TensorMap &map1, const TensorMap &map2, u32 signals) {
  const u32 shared = signals + 1024;
  const int lane = threadIdx.x % 32, warp = (threadIdx.x - 128) / 32;
  const int team = group_of_warps() - 1;
  const int cells1 = 2 * 2 * 4 * 1;
  Ring<2> rows(signals, 0, 6);
  Ring<2> early(signals, 2, 6);
  Ring<2> late(signals, 4, 6);
  if (team == 1) order_pass<256>(0);
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
  float s2[2][32];
  u32 p3[8][1][4];
  float f4[2];
  float f5[2];
  int before = -1;
  for (int lap = 0;; lap++) {
    const int place = lap & 1 ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
    const int cell = lap * gridDim.x + place;
    if (cell >= cells1) break;
    const int rest6 = cell / (4 * 1);
    const int tile = cell % (4 * 1);
    const int x_g_7 = rest6 % 2;
    const int rest8 = rest6 / 2;
    const int x_h_9 = rest8;
    const int first_row = (4 - 1 - tile) * 128;
    const int first_column = 0;
    const int row = first_row + warp / 1 * 16 + lane / 4;
    const int pair = lane % 4 * 2;
    const int column = first_column + pair;
    const int turns10 = (512 - 0 + 127) / 128;
    Span live = {0, turns10};
    const auto may_hold = [&](int tile) {
      const int from = 0 + tile * 128;
      const double low11 = (double)first_row + 1.0;
      const double high12 = (double)(first_row + 128 - 1) + 1.0;
      const double low13 = (double)(least(from + 128, 512) - 1) < low11;
      const double high14 = (double)from < high12;
      return !(!(high14 > 0));
    };
    live = all_that(turns10, may_hold);
    const auto is_whole = [&](int tile) {
      const int from = 0 + tile * 128;
      const double low15 = (double)first_row + 1.0;
      const double high16 = (double)(first_row + 128 - 1) + 1.0;
      const double low17 = (double)(least(from + 128, 512) - 1) < low15;
      const double high18 = (double)from < high16;
      return from + 128 <= 512 && low17 > 0;
    };
    Span whole = first_that(live, is_whole);
    settle(live);
    settle(whole);
    int turn = live.last - 1;
    rows.await();
    {
      const int first = 0 + turn * 128;
      order_await<256>(team);
      early.await();
      products_begin();
      {
        const u32 stage = shared + 32768 + early.slot * 32768;
        const u32 tile19 = tile_at(stage, 16);
        const u32 tile20 = tile_at(shared + rows.slot * 16384 + team * 8192, 16);
        wgmma_bf16_ss_128(s2, tile20 + 0, tile19 + 0, 0);
        wgmma_bf16_ss_128(s2, tile20 + 2, tile19 + 2, 1);
        wgmma_bf16_ss_128(s2, tile20 + 4, tile19 + 4, 1);
        wgmma_bf16_ss_128(s2, tile20 + 6, tile19 + 6, 1);
      }
      products_end();
      late.await();
      products_begin();
      {
        const u32 stage = shared + 32768 + late.slot * 32768;
        const u32 tile21 = tile_at(stage + 16384, 16384);
        wgmma_bf16_rt_64(c_o0, p3[0][0], tile21 + 0, 1);
        wgmma_bf16_rt_64(c_o0, p3[1][0], tile21 + 128, 1);
        wgmma_bf16_rt_64(c_o0, p3[2][0], tile21 + 256, 1);
        wgmma_bf16_rt_64(c_o0, p3[3][0], tile21 + 384, 1);
        wgmma_bf16_rt_64(c_o0, p3[4][0], tile21 + 512, 1);
        wgmma_bf16_rt_64(c_o0, p3[5][0], tile21 + 640, 1);
        wgmma_bf16_rt_64(c_o0, p3[6][0], tile21 + 768, 1);
        wgmma_bf16_rt_64(c_o0, p3[7][0], tile21 + 896, 1);
      }
      products_end();
      order_pass<256>(team == 1 ? 0 : team + 1);
      products_await<1>();
      settle(s2);
      early.release(early.slot);
      early.next();
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        f4[i] = c_m0[i];
        c_m0[i] = -INFINITY;
        f5[i] = c_l0[i];
        c_l0[i] = 0.0f;
      }
      float t22[2][32];
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        const int x_i_23 = row + i * 8;
        const int v25 = add_i32(x_i_23, 1);
        #pragma unroll
        for (int j = 0; j < 16; j++) {
          const int x_j_24 = first + pair + j * 8;
          const int v26 = (int)(x_j_24 < v25);
          const int v27 = (int)((x_j_24 + 1) < v25);
          t22[i][j * 2 + 0] = v26 ? s2[i][j * 2 + 0] : -INFINITY;
          t22[i][j * 2 + 1] = v27 ? s2[i][j * 2 + 1] : -INFINITY;
        }
      }
      float r28[2];
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        const int x_i_29 = row + i * 8;
        float r[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
        #pragma unroll
        for (int j = 0; j < 16; j++) {
          const int x_j_30 = first + pair + j * 8;
          r[j * 2 % 4 + 0] = larger(r[j * 2 % 4 + 0], t22[i][j * 2 + 0]);
          r[j * 2 % 4 + 1] = larger(r[j * 2 % 4 + 1], t22[i][j * 2 + 1]);
        }
        r28[i] = quad_max(larger(larger(r[0], r[1]), larger(r[2], r[3]))) * 0.088388347f;
      }
      float t31[2];
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        const int x_i_32 = row + i * 8;
        const float v33 = larger(c_m0[i], r28[i]);
        t31[i] = v33;
      }
      float t34[2][32];
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        const int x_i_35 = row + i * 8;
        const float v37 = shift(t31[i], 1.442695f);
        #pragma unroll
        for (int j = 0; j < 16; j++) {
          const int x_j_36 = first + pair + j * 8;
          const float v38 = power_of_two(fmaf(t22[i][j * 2 + 0], 0.12751742627516502f, v37));
          const float v39 = power_of_two(fmaf(t22[i][j * 2 + 1], 0.12751742627516502f, v37));
          const float v40 = (v38 * 1.0f);
          const float v41 = (v39 * 1.0f);
          t34[i][j * 2 + 0] = v40;
          t34[i][j * 2 + 1] = v41;
        }
      }
      float r42[2];
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        const int x_i_43 = row + i * 8;
        float r[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        #pragma unroll
        for (int j = 0; j < 16; j++) {
          const int x_j_44 = first + pair + j * 8;
          r[j * 2 % 4 + 0] = (r[j * 2 % 4 + 0] + t34[i][j * 2 + 0]);
          r[j * 2 % 4 + 1] = (r[j * 2 % 4 + 1] + t34[i][j * 2 + 1]);
        }
        r42[i] = ((r[0] + r[1]) + (r[2] + r[3]));
      }
      float t45[2];
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        const int x_i_46 = row + i * 8;
        const float v47 = subni_f32(c_m0[i], t31[i]);
        t45[i] = v47;
      }
      float t48[2];
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        const int x_i_49 = row + i * 8;
        const float v50 = (t45[i] * 0x1.7154760000000p+0f);
        t48[i] = v50;
      }
      float t51[2];
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        const int x_i_52 = row + i * 8;
        const float v53 = exp2_f32(t48[i]);
        t51[i] = v53;
      }
      float p54[2][32];
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        const int x_i_55 = row + i * 8;
        #pragma unroll
        for (int j = 0; j < 16; j++) {
          const int x_j_56 = first + pair + j * 8;
          p54[i][j * 2 + 0] = t34[i][j * 2 + 0];
          p54[i][j * 2 + 1] = t34[i][j * 2 + 1];
        }
      }
      products_await<0>();
      settle(c_o0);
      settle(p3);
      late.release(late.slot);
      late.next();
      #pragma unroll
      for (int k = 0; k < 8; k++) {
        take_rows<true, false>(p3[k], p54, k);
      }
      if (before >= 0) {
        const int cell = before;
        const int rest57 = cell / (4 * 1);
        const int tile = cell % (4 * 1);
        const int x_g_58 = rest57 % 2;
        const int rest59 = rest57 / 2;
        const int x_h_60 = rest59;
        const int first_row = (4 - 1 - tile) * 128;
        const int first_column = 0;
        const int row = first_row + warp / 1 * 16 + lane / 4;
        const int pair = lane % 4 * 2;
        const int column = first_column + pair;
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          f5[i] = quad_sum(f5[i]);
        }
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_61 = row + i * 8;
          u32 w62[8];
          const float v64 = recipz_f32(f5[i]);
          #pragma unroll
          for (int j = 0; j < 8; j++) {
            const int x_e_63 = column + j * 8;
            const float v65 = (c_o0[i][j * 2 + 0] * v64);
            const float v66 = (c_o0[i][j * 2 + 1] * v64);
            w62[j] = pack<true>(v65, v66);
          }
          #pragma unroll
          for (int g = 0; g < 2; g++) {
            const uint4 eight = gather_tile(w62[g * 4 + 0], w62[g * 4 + 1], w62[g * 4 + 2], w62[g * 4 + 3]);
            const int place67 = column + lane % 4 * 6 + g * 32;
            *(uint4 *)(b3_R + x_g_58 * 32768 + x_h_60 * 65536 + x_i_61 * 64 + place67) = eight;
          }
        }
      }
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        #pragma unroll
        for (int j = 0; j < 16; j++) {
          c_o0[i][j] = 0.0f;
        }
      }
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        c_m0[i] = t31[i];
        c_l0[i] = c_l0[i] * t51[i] + r42[i];
      }
    }
    for (turn--; turn >= most_of(whole.last, live.first); turn--) {
      const int first = 0 + turn * 128;
      order_await<256>(team);
      early.await();
      products_begin();
      {
        const u32 stage = shared + 32768 + early.slot * 32768;
        const u32 tile68 = tile_at(stage, 16);
        const u32 tile69 = tile_at(shared + rows.slot * 16384 + team * 8192, 16);
        wgmma_bf16_ss_128(s2, tile69 + 0, tile68 + 0, 0);
        wgmma_bf16_ss_128(s2, tile69 + 2, tile68 + 2, 1);
        wgmma_bf16_ss_128(s2, tile69 + 4, tile68 + 4, 1);
        wgmma_bf16_ss_128(s2, tile69 + 6, tile68 + 6, 1);
      }
      products_end();
      late.await();
      products_begin();
      {
        const u32 stage = shared + 32768 + late.slot * 32768;
        const u32 tile70 = tile_at(stage + 16384, 16384);
        wgmma_bf16_rt_64(c_o0, p3[0][0], tile70 + 0, 1);
        wgmma_bf16_rt_64(c_o0, p3[1][0], tile70 + 128, 1);
        wgmma_bf16_rt_64(c_o0, p3[2][0], tile70 + 256, 1);
        wgmma_bf16_rt_64(c_o0, p3[3][0], tile70 + 384, 1);
        wgmma_bf16_rt_64(c_o0, p3[4][0], tile70 + 512, 1);
        wgmma_bf16_rt_64(c_o0, p3[5][0], tile70 + 640, 1);
        wgmma_bf16_rt_64(c_o0, p3[6][0], tile70 + 768, 1);
        wgmma_bf16_rt_64(c_o0, p3[7][0], tile70 + 896, 1);
      }
      products_end();
      order_pass<256>(team == 1 ? 0 : team + 1);
      products_await<1>();
      settle(s2);
      early.release(early.slot);
      early.next();
      float t71[2][32];
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        const int x_i_72 = row + i * 8;
        const int v74 = add_i32(x_i_72, 1);
        #pragma unroll
        for (int j = 0; j < 16; j++) {
          const int x_j_73 = first + pair + j * 8;
          const int v75 = (int)(x_j_73 < v74);
          const int v76 = (int)((x_j_73 + 1) < v74);
          t71[i][j * 2 + 0] = v75 ? s2[i][j * 2 + 0] : -INFINITY;
          t71[i][j * 2 + 1] = v76 ? s2[i][j * 2 + 1] : -INFINITY;
        }
      }
      float r77[2];
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        const int x_i_78 = row + i * 8;
        float r[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
        #pragma unroll
        for (int j = 0; j < 16; j++) {
          const int x_j_79 = first + pair + j * 8;
          r[j * 2 % 4 + 0] = larger(r[j * 2 % 4 + 0], t71[i][j * 2 + 0]);
          r[j * 2 % 4 + 1] = larger(r[j * 2 % 4 + 1], t71[i][j * 2 + 1]);
        }
        r77[i] = quad_max(larger(larger(r[0], r[1]), larger(r[2], r[3]))) * 0.088388347f;
      }
      float t80[2];
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        const int x_i_81 = row + i * 8;
        const float v82 = larger(c_m0[i], r77[i]);
        t80[i] = v82;
      }
      float t83[2][32];
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        const int x_i_84 = row + i * 8;
        const float v86 = shift(t80[i], 1.442695f);
        #pragma unroll
        for (int j = 0; j < 16; j++) {
          const int x_j_85 = first + pair + j * 8;
          const float v87 = power_of_two(fmaf(t71[i][j * 2 + 0], 0.12751742627516502f, v86));
          const float v88 = power_of_two(fmaf(t71[i][j * 2 + 1], 0.12751742627516502f, v86));
          const float v89 = (v87 * 1.0f);
          const float v90 = (v88 * 1.0f);
          t83[i][j * 2 + 0] = v89;
          t83[i][j * 2 + 1] = v90;
        }
      }
      float r91[2];
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        const int x_i_92 = row + i * 8;
        float r[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        #pragma unroll
        for (int j = 0; j < 16; j++) {
          const int x_j_93 = first + pair + j * 8;
          r[j * 2 % 4 + 0] = (r[j * 2 % 4 + 0] + t83[i][j * 2 + 0]);
          r[j * 2 % 4 + 1] = (r[j * 2 % 4 + 1] + t83[i][j * 2 + 1]);
        }
        r91[i] = ((r[0] + r[1]) + (r[2] + r[3]));
      }
      float t94[2];
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        const int x_i_95 = row + i * 8;
        const float v96 = subni_f32(c_m0[i], t80[i]);
        t94[i] = v96;
      }
      float t97[2];
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        const int x_i_98 = row + i * 8;
        const float v99 = (t94[i] * 0x1.7154760000000p+0f);
        t97[i] = v99;
      }
      float t100[2];
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        const int x_i_101 = row + i * 8;
        const float v102 = exp2_f32(t97[i]);
        t100[i] = v102;
      }
      float p103[2][32];
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        const int x_i_104 = row + i * 8;
        #pragma unroll
        for (int j = 0; j < 16; j++) {
          const int x_j_105 = first + pair + j * 8;
          p103[i][j * 2 + 0] = t83[i][j * 2 + 0];
          p103[i][j * 2 + 1] = t83[i][j * 2 + 1];
        }
      }
      products_await<0>();
      settle(c_o0);
      settle(p3);
      late.release(late.slot);
      late.next();
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        #pragma unroll
        for (int j = 0; j < 16; j++) {
          c_o0[i][j] *= t100[i];
        }
      }
      #pragma unroll
      for (int k = 0; k < 8; k++) {
        take_rows<true, false>(p3[k], p103, k);
      }
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        c_m0[i] = t80[i];
        c_l0[i] = c_l0[i] * t100[i] + r91[i];
      }
    }
    turn++;
    for (turn--; turn >= most_of(whole.first, live.first); turn--) {
      const int first = 0 + turn * 128;
      order_await<256>(team);
      early.await();
      products_begin();
      {
        const u32 stage = shared + 32768 + early.slot * 32768;
        const u32 tile106 = tile_at(stage, 16);
        const u32 tile107 = tile_at(shared + rows.slot * 16384 + team * 8192, 16);
        wgmma_bf16_ss_128(s2, tile107 + 0, tile106 + 0, 0);
        wgmma_bf16_ss_128(s2, tile107 + 2, tile106 + 2, 1);
        wgmma_bf16_ss_128(s2, tile107 + 4, tile106 + 4, 1);
        wgmma_bf16_ss_128(s2, tile107 + 6, tile106 + 6, 1);
      }
      products_end();
      late.await();
      products_begin();
      {
        const u32 stage = shared + 32768 + late.slot * 32768;
        const u32 tile108 = tile_at(stage + 16384, 16384);
        wgmma_bf16_rt_64(c_o0, p3[0][0], tile108 + 0, 1);
        wgmma_bf16_rt_64(c_o0, p3[1][0], tile108 + 128, 1);
        wgmma_bf16_rt_64(c_o0, p3[2][0], tile108 + 256, 1);
        wgmma_bf16_rt_64(c_o0, p3[3][0], tile108 + 384, 1);
        wgmma_bf16_rt_64(c_o0, p3[4][0], tile108 + 512, 1);
        wgmma_bf16_rt_64(c_o0, p3[5][0], tile108 + 640, 1);
        wgmma_bf16_rt_64(c_o0, p3[6][0], tile108 + 768, 1);
        wgmma_bf16_rt_64(c_o0, p3[7][0], tile108 + 896, 1);
      }
      products_end();
      order_pass<256>(team == 1 ? 0 : team + 1);
      products_await<1>();
      settle(s2);
      early.release(early.slot);
      early.next();
      float r109[2];
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        const int x_i_110 = row + i * 8;
        float r[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
        #pragma unroll
        for (int j = 0; j < 16; j++) {
          const int x_j_111 = first + pair + j * 8;
          r[j * 2 % 4 + 0] = larger(r[j * 2 % 4 + 0], s2[i][j * 2 + 0]);
          r[j * 2 % 4 + 1] = larger(r[j * 2 % 4 + 1], s2[i][j * 2 + 1]);
        }
        r109[i] = quad_max(larger(larger(r[0], r[1]), larger(r[2], r[3]))) * 0.088388347f;
      }
      float t112[2];
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        const int x_i_113 = row + i * 8;
        const float v114 = larger(c_m0[i], r109[i]);
        t112[i] = v114;
      }
      float t115[2][32];
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        const int x_i_116 = row + i * 8;
        const float v118 = shift(t112[i], 1.442695f);
        #pragma unroll
        for (int j = 0; j < 16; j++) {
          const int x_j_117 = first + pair + j * 8;
          const float v119 = power_of_two(fmaf(s2[i][j * 2 + 0], 0.12751742627516502f, v118));
          const float v120 = power_of_two(fmaf(s2[i][j * 2 + 1], 0.12751742627516502f, v118));
          const float v121 = (v119 * 1.0f);
          const float v122 = (v120 * 1.0f);
          t115[i][j * 2 + 0] = v121;
          t115[i][j * 2 + 1] = v122;
        }
      }
      float r123[2];
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        const int x_i_124 = row + i * 8;
        float r[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        #pragma unroll
        for (int j = 0; j < 16; j++) {
          const int x_j_125 = first + pair + j * 8;
          r[j * 2 % 4 + 0] = (r[j * 2 % 4 + 0] + t115[i][j * 2 + 0]);
          r[j * 2 % 4 + 1] = (r[j * 2 % 4 + 1] + t115[i][j * 2 + 1]);
        }
        r123[i] = ((r[0] + r[1]) + (r[2] + r[3]));
      }
      float t126[2];
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        const int x_i_127 = row + i * 8;
        const float v128 = subni_f32(c_m0[i], t112[i]);
        t126[i] = v128;
      }
      float t129[2];
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        const int x_i_130 = row + i * 8;
        const float v131 = (t126[i] * 0x1.7154760000000p+0f);
        t129[i] = v131;
      }
      float t132[2];
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        const int x_i_133 = row + i * 8;
        const float v134 = exp2_f32(t129[i]);
        t132[i] = v134;
      }
      float p135[2][32];
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        const int x_i_136 = row + i * 8;
        #pragma unroll
        for (int j = 0; j < 16; j++) {
          const int x_j_137 = first + pair + j * 8;
          p135[i][j * 2 + 0] = t115[i][j * 2 + 0];
          p135[i][j * 2 + 1] = t115[i][j * 2 + 1];
        }
      }
      products_await<0>();
      settle(c_o0);
      settle(p3);
      late.release(late.slot);
      late.next();
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        #pragma unroll
        for (int j = 0; j < 16; j++) {
          c_o0[i][j] *= t132[i];
        }
      }
      #pragma unroll
      for (int k = 0; k < 8; k++) {
        take_rows<true, false>(p3[k], p135, k);
      }
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        c_m0[i] = t112[i];
        c_l0[i] = c_l0[i] * t132[i] + r123[i];
      }
    }
    turn++;
    for (turn--; turn >= most_of(live.first, live.first); turn--) {
      const int first = 0 + turn * 128;
      order_await<256>(team);
      early.await();
      products_begin();
      {
        const u32 stage = shared + 32768 + early.slot * 32768;
        const u32 tile138 = tile_at(stage, 16);
        const u32 tile139 = tile_at(shared + rows.slot * 16384 + team * 8192, 16);
        wgmma_bf16_ss_128(s2, tile139 + 0, tile138 + 0, 0);
        wgmma_bf16_ss_128(s2, tile139 + 2, tile138 + 2, 1);
        wgmma_bf16_ss_128(s2, tile139 + 4, tile138 + 4, 1);
        wgmma_bf16_ss_128(s2, tile139 + 6, tile138 + 6, 1);
      }
      products_end();
      late.await();
      products_begin();
      {
        const u32 stage = shared + 32768 + late.slot * 32768;
        const u32 tile140 = tile_at(stage + 16384, 16384);
        wgmma_bf16_rt_64(c_o0, p3[0][0], tile140 + 0, 1);
        wgmma_bf16_rt_64(c_o0, p3[1][0], tile140 + 128, 1);
        wgmma_bf16_rt_64(c_o0, p3[2][0], tile140 + 256, 1);
        wgmma_bf16_rt_64(c_o0, p3[3][0], tile140 + 384, 1);
        wgmma_bf16_rt_64(c_o0, p3[4][0], tile140 + 512, 1);
        wgmma_bf16_rt_64(c_o0, p3[5][0], tile140 + 640, 1);
        wgmma_bf16_rt_64(c_o0, p3[6][0], tile140 + 768, 1);
        wgmma_bf16_rt_64(c_o0, p3[7][0], tile140 + 896, 1);
      }
      products_end();
      order_pass<256>(team == 1 ? 0 : team + 1);
      products_await<1>();
      settle(s2);
      early.release(early.slot);
      early.next();
      float t141[2][32];
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        const int x_i_142 = row + i * 8;
        const int v144 = add_i32(x_i_142, 1);
        #pragma unroll
        for (int j = 0; j < 16; j++) {
          const int x_j_143 = first + pair + j * 8;
          const int v145 = (int)(x_j_143 < v144);
          const int v146 = (int)((x_j_143 + 1) < v144);
          t141[i][j * 2 + 0] = v145 ? s2[i][j * 2 + 0] : -INFINITY;
          t141[i][j * 2 + 1] = v146 ? s2[i][j * 2 + 1] : -INFINITY;
        }
      }
      float r147[2];
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        const int x_i_148 = row + i * 8;
        float r[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
        #pragma unroll
        for (int j = 0; j < 16; j++) {
          const int x_j_149 = first + pair + j * 8;
          r[j * 2 % 4 + 0] = larger(r[j * 2 % 4 + 0], t141[i][j * 2 + 0]);
          r[j * 2 % 4 + 1] = larger(r[j * 2 % 4 + 1], t141[i][j * 2 + 1]);
        }
        r147[i] = quad_max(larger(larger(r[0], r[1]), larger(r[2], r[3]))) * 0.088388347f;
      }
      float t150[2];
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        const int x_i_151 = row + i * 8;
        const float v152 = larger(c_m0[i], r147[i]);
        t150[i] = v152;
      }
      float t153[2][32];
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        const int x_i_154 = row + i * 8;
        const float v156 = shift(t150[i], 1.442695f);
        #pragma unroll
        for (int j = 0; j < 16; j++) {
          const int x_j_155 = first + pair + j * 8;
          const float v157 = power_of_two(fmaf(t141[i][j * 2 + 0], 0.12751742627516502f, v156));
          const float v158 = power_of_two(fmaf(t141[i][j * 2 + 1], 0.12751742627516502f, v156));
          const float v159 = (v157 * 1.0f);
          const float v160 = (v158 * 1.0f);
          t153[i][j * 2 + 0] = v159;
          t153[i][j * 2 + 1] = v160;
        }
      }
      float r161[2];
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        const int x_i_162 = row + i * 8;
        float r[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        #pragma unroll
        for (int j = 0; j < 16; j++) {
          const int x_j_163 = first + pair + j * 8;
          r[j * 2 % 4 + 0] = (r[j * 2 % 4 + 0] + t153[i][j * 2 + 0]);
          r[j * 2 % 4 + 1] = (r[j * 2 % 4 + 1] + t153[i][j * 2 + 1]);
        }
        r161[i] = ((r[0] + r[1]) + (r[2] + r[3]));
      }
      float t164[2];
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        const int x_i_165 = row + i * 8;
        const float v166 = subni_f32(c_m0[i], t150[i]);
        t164[i] = v166;
      }
      float t167[2];
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        const int x_i_168 = row + i * 8;
        const float v169 = (t164[i] * 0x1.7154760000000p+0f);
        t167[i] = v169;
      }
      float t170[2];
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        const int x_i_171 = row + i * 8;
        const float v172 = exp2_f32(t167[i]);
        t170[i] = v172;
      }
      float p173[2][32];
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        const int x_i_174 = row + i * 8;
        #pragma unroll
        for (int j = 0; j < 16; j++) {
          const int x_j_175 = first + pair + j * 8;
          p173[i][j * 2 + 0] = t153[i][j * 2 + 0];
          p173[i][j * 2 + 1] = t153[i][j * 2 + 1];
        }
      }
      products_await<0>();
      settle(c_o0);
      settle(p3);
      late.release(late.slot);
      late.next();
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        #pragma unroll
        for (int j = 0; j < 16; j++) {
          c_o0[i][j] *= t170[i];
        }
      }
      #pragma unroll
      for (int k = 0; k < 8; k++) {
        take_rows<true, false>(p3[k], p173, k);
      }
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        c_m0[i] = t150[i];
        c_l0[i] = c_l0[i] * t170[i] + r161[i];
      }
    }
    turn++;
    rows.release(rows.slot);
    rows.next();
    before = cell;
  }
  if (before >= 0) {
    late.await();
    products_begin();
    {
      const u32 stage = shared + 32768 + late.slot * 32768;
      const u32 tile176 = tile_at(stage + 16384, 16384);
      wgmma_bf16_rt_64(c_o0, p3[0][0], tile176 + 0, 1);
      wgmma_bf16_rt_64(c_o0, p3[1][0], tile176 + 128, 1);
      wgmma_bf16_rt_64(c_o0, p3[2][0], tile176 + 256, 1);
      wgmma_bf16_rt_64(c_o0, p3[3][0], tile176 + 384, 1);
      wgmma_bf16_rt_64(c_o0, p3[4][0], tile176 + 512, 1);
      wgmma_bf16_rt_64(c_o0, p3[5][0], tile176 + 640, 1);
      wgmma_bf16_rt_64(c_o0, p3[6][0], tile176 + 768, 1);
      wgmma_bf16_rt_64(c_o0, p3[7][0], tile176 + 896, 1);
    }
    products_end();
    products_await<0>();
    settle(c_o0);
    settle(p3);
    late.release(late.slot);
    late.next();
    #pragma unroll
    for (int i = 0; i < 2; i++) {
      f4[i] = c_m0[i];
      c_m0[i] = -INFINITY;
      f5[i] = c_l0[i];
      c_l0[i] = 0.0f;
    }
    if (before >= 0) {
      const int cell = before;
      const int rest177 = cell / (4 * 1);
      const int tile = cell % (4 * 1);
      const int x_g_178 = rest177 % 2;
      const int rest179 = rest177 / 2;
      const int x_h_180 = rest179;
      const int first_row = (4 - 1 - tile) * 128;
      const int first_column = 0;
      const int row = first_row + warp / 1 * 16 + lane / 4;
      const int pair = lane % 4 * 2;
      const int column = first_column + pair;
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        f5[i] = quad_sum(f5[i]);
      }
      #pragma unroll
      for (int i = 0; i < 2; i++) {
        const int x_i_181 = row + i * 8;
        u32 w182[8];
        const float v184 = recipz_f32(f5[i]);
        #pragma unroll
        for (int j = 0; j < 8; j++) {
          const int x_e_183 = column + j * 8;
          const float v185 = (c_o0[i][j * 2 + 0] * v184);
          const float v186 = (c_o0[i][j * 2 + 1] * v184);
          w182[j] = pack<true>(v185, v186);
        }
        #pragma unroll
        for (int g = 0; g < 2; g++) {
          const uint4 eight = gather_tile(w182[g * 4 + 0], w182[g * 4 + 1], w182[g * 4 + 2], w182[g * 4 + 3]);
          const int place187 = column + lane % 4 * 6 + g * 32;
          *(uint4 *)(b3_R + x_g_178 * 32768 + x_h_180 * 65536 + x_i_181 * 64 + place187) = eight;
        }
      }
    }
  }
  if (team == 0) order_await<256>(0);
}
extern "C" __global__ void __launch_bounds__(384, 1) attend(const u16 *__restrict__ b0_Q, const u16 *__restrict__ b1_K, const u16 *__restrict__ b2_V, u16 *__restrict__ b3_R, const i64 *__restrict__ dims, const __grid_constant__ TensorMap map0, const __grid_constant__ TensorMap map1, const __grid_constant__ TensorMap map2) {
  extern __shared__ __align__(1024) u8 pool[];
  let_next_start();
  const u32 signals = aligned_pool(pool);
  open_signals<6, 1, 8>(signals);
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) fetch_map(&map0);
  if (threadIdx.x == 1) fetch_map(&map1);
  if (threadIdx.x == 2) fetch_map(&map2);
  wait_for_previous();
  if (group_of_warps() == 0) {
    give_registers<40>();
    if (threadIdx.x < 32) attend_feed(settled(b0_Q), settled(b1_K), settled(b2_V), settled(b3_R), dims, map0, map1, map2, signals);
  } else {
    take_registers<232>();
    attend_use(settled(b0_Q), settled(b1_K), settled(b2_V), settled(b3_R), dims, map0, map1, map2, signals);
  }
}
