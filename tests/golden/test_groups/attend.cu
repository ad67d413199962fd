INLINE void attend_feed(const u16 *__restrict__ b0_Q, const u16 *__restrict__ b1_K, const u16 *__restrict__ b2_V, u16 *__restrict__ b3_R, const i64 *__restrict__ dims, u32 signals) {
  const i64 d_keys = dims[0];
  const i64 d_seq = dims[1];
  const u32 shared = signals + 1024;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int team = group_of_warps() - 0;
  const int high1 = ((int)d_seq + 127) / 128;
  const int cells2 = 2 * 2 * high1 * 1;
  Ring<1> rows(signals, 0, 5);
  Ring<2> early(signals, 1, 5);
  Ring<2> late(signals, 3, 5);
  Feed<1> feed;
  for (int lap = 0;; lap++) {
    const int place = lap & 1 ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
    const int cell = lap * gridDim.x + place;
    if (cell >= cells2) break;
    const int rest3 = cell / (high1 * 1);
    const int tile = cell % (high1 * 1);
    const int x_g_4 = rest3 % 2;
    const int rest5 = rest3 / 2;
    const int x_h_6 = rest5;
    const int first_row = (high1 - 1 - tile) * 128;
    const int first_column = 0;
    const int row = first_row + warp / 1 * 16 + lane / 4;
    const int turns7 = ((int)d_keys - 0 + 127) / 128;
    Span live = {0, turns7};
    const auto may_hold = [&](int tile) {
      const int from = 0 + tile * 128;
      const double low8 = (double)first_row + 1.0;
      const double high9 = (double)(least(first_row + 128, (int)d_seq) - 1) + 1.0;
      const double low10 = (double)(least(from + 128, (int)d_keys) - 1) < low8;
      const double high11 = (double)from < high9;
      return !(!(high11 > 0));
    };
    live = all_that(turns7, may_hold);
    const auto is_whole = [&](int tile) {
      const int from = 0 + tile * 128;
      const double low12 = (double)first_row + 1.0;
      const double high13 = (double)(least(first_row + 128, (int)d_seq) - 1) + 1.0;
      const double low14 = (double)(least(from + 128, (int)d_keys) - 1) < low12;
      const double high15 = (double)from < high13;
      return from + 128 <= (int)d_keys && low14 > 0;
    };
    Span whole = first_that(live, is_whole);
    settle(live);
    settle(whole);
    if (live.first < live.last) {
      {
        rows.claim();
        {
          copy_panels<128, 16, false>(shared, b0_Q + (i64)x_g_4 * (128 * d_seq) + (i64)x_h_6 * (256 * d_seq) + (i64)first_row * 128 + (i64)0, 128, (int)d_seq - first_row, 128 - 0);
        }
        feed.sent(rows.full + 8 * rows.slot);
        rows.next();
      }
      for (int turn = live.last - 1; turn >= live.first; turn--) {
        {
          early.claim();
          const u32 stage = shared + 32768 + early.slot * 65536;
          const int position = 0 + (turn) * 128;
          {
            copy_panels<128, 16, false>(stage, b1_K + (i64)x_h_6 * (128 * d_keys) + (i64)position * 128 + (i64)0, 128, (int)d_keys - position, 128 - 0);
          }
          feed.sent(early.full + 8 * early.slot);
          early.next();
        }
        if (turn < live.last - 1) {
          {
            late.claim();
            const u32 stage = shared + 32768 + late.slot * 65536;
            const int position = 0 + (turn + 1) * 128;
            {
              copy_panels<128, 16, false>(stage + 32768, b2_V + (i64)x_h_6 * (128 * d_keys) + (i64)position * 128 + (i64)first_column, 128, (int)d_keys - position, 128 - first_column);
            }
            feed.sent(late.full + 8 * late.slot);
            late.next();
          }
        }
      }
      {
        late.claim();
        const u32 stage = shared + 32768 + late.slot * 65536;
        const int position = 0 + (live.first) * 128;
        {
          copy_panels<128, 16, false>(stage + 32768, b2_V + (i64)x_h_6 * (128 * d_keys) + (i64)position * 128 + (i64)first_column, 128, (int)d_keys - position, 128 - first_column);
        }
        feed.sent(late.full + 8 * late.slot);
        late.next();
      }
    }
  }
  feed.finish();
}
INLINE void attend_use(const u16 *__restrict__ b0_Q, const u16 *__restrict__ b1_K, const u16 *__restrict__ b2_V, u16 *__restrict__ b3_R, const i64 *__restrict__ dims, u32 signals) {
  const i64 d_keys = dims[0];
  const i64 d_seq = dims[1];
  const u32 shared = signals + 1024;
  const int lane = threadIdx.x % 32, warp = (threadIdx.x - 128) / 32;
  const int team = group_of_warps() - 1;
  const int high1 = ((int)d_seq + 127) / 128;
  const int cells2 = 2 * 2 * high1 * 1;
  Ring<1> rows(signals, 0, 5);
  Ring<2> early(signals, 1, 5);
  Ring<2> late(signals, 3, 5);
  if (team == 1) order_pass<256>(0);
  for (int lap = 0;; lap++) {
    const int place = lap & 1 ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
    const int cell = lap * gridDim.x + place;
    if (cell >= cells2) break;
    const int rest3 = cell / (high1 * 1);
    const int tile = cell % (high1 * 1);
    const int x_g_4 = rest3 % 2;
    const int rest5 = rest3 / 2;
    const int x_h_6 = rest5;
    const int first_row = (high1 - 1 - tile) * 128;
    const int first_column = 0;
    const int row = first_row + warp / 1 * 16 + lane / 4;
    const int pair = lane % 4 * 2;
    const int column = first_column + pair;
    const int turns7 = ((int)d_keys - 0 + 127) / 128;
    Span live = {0, turns7};
    const auto may_hold = [&](int tile) {
      const int from = 0 + tile * 128;
      const double low8 = (double)first_row + 1.0;
      const double high9 = (double)(least(first_row + 128, (int)d_seq) - 1) + 1.0;
      const double low10 = (double)(least(from + 128, (int)d_keys) - 1) < low8;
      const double high11 = (double)from < high9;
      return !(!(high11 > 0));
    };
    live = all_that(turns7, may_hold);
    const auto is_whole = [&](int tile) {
      const int from = 0 + tile * 128;
      const double low12 = (double)first_row + 1.0;
      const double high13 = (double)(least(first_row + 128, (int)d_seq) - 1) + 1.0;
      const double low14 = (double)(least(from + 128, (int)d_keys) - 1) < low12;
      const double high15 = (double)from < high13;
      return from + 128 <= (int)d_keys && low14 > 0;
    };
    Span whole = first_that(live, is_whole);
    settle(live);
    settle(whole);
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
    float c_o0[2][32] = {};
    if (live.first < live.last) {
      float s16[2][32];
      u32 p17[8][1][4];
      int turn = live.last - 1;
      rows.await();
      {
        const int first = 0 + turn * 128;
        early.await();
        products_begin();
        {
          const u32 stage = shared + 32768 + early.slot * 65536;
          const u32 tile18 = tile_at(stage, 16);
          const u32 tile19 = tile_at(shared + team * 8192, 16);
          wgmma_bf16_ss_128(s16, tile19 + 0, tile18 + 0, 0);
          wgmma_bf16_ss_128(s16, tile19 + 2, tile18 + 2, 1);
          wgmma_bf16_ss_128(s16, tile19 + 4, tile18 + 4, 1);
          wgmma_bf16_ss_128(s16, tile19 + 6, tile18 + 6, 1);
          wgmma_bf16_ss_128(s16, tile19 + 1024, tile18 + 1024, 1);
          wgmma_bf16_ss_128(s16, tile19 + 1026, tile18 + 1026, 1);
          wgmma_bf16_ss_128(s16, tile19 + 1028, tile18 + 1028, 1);
          wgmma_bf16_ss_128(s16, tile19 + 1030, tile18 + 1030, 1);
        }
        products_end();
        products_await<0>();
        settle(s16);
        early.release(early.slot);
        early.next();
        float t20[2][32];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_21 = least(row + i * 8, (int)d_seq - 1);
          const int v24 = add_i32(x_i_21, 1);
          #pragma unroll
          for (int j = 0; j < 16; j++) {
            const int x_j_22 = least(first + pair + j * 8 + 0, (int)d_keys - 1);
            const int x_j_23 = least(first + pair + j * 8 + 1, (int)d_keys - 1);
            const int v25 = (int)(x_j_22 < v24);
            const int v26 = (int)(x_j_23 < v24);
            t20[i][j * 2 + 0] = v25 ? s16[i][j * 2 + 0] : -INFINITY;
            t20[i][j * 2 + 1] = v26 ? s16[i][j * 2 + 1] : -INFINITY;
          }
        }
        float r27[2];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_28 = least(row + i * 8, (int)d_seq - 1);
          float r[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
          #pragma unroll
          for (int j = 0; j < 16; j++) {
            const int x_j_29 = least(first + pair + j * 8 + 0, (int)d_keys - 1);
            const int x_j_30 = least(first + pair + j * 8 + 1, (int)d_keys - 1);
            r[j * 2 % 4 + 0] = larger(r[j * 2 % 4 + 0], (first + pair + j * 8 < (int)d_keys ? t20[i][j * 2 + 0] : -INFINITY));
            r[j * 2 % 4 + 1] = larger(r[j * 2 % 4 + 1], (first + pair + j * 8 + 1 < (int)d_keys ? t20[i][j * 2 + 1] : -INFINITY));
          }
          r27[i] = quad_max(larger(larger(r[0], r[1]), larger(r[2], r[3]))) * 0.088388347f;
        }
        float t31[2];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_32 = least(row + i * 8, (int)d_seq - 1);
          const float v33 = larger(c_m0[i], r27[i]);
          t31[i] = v33;
        }
        float t34[2][32];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_35 = least(row + i * 8, (int)d_seq - 1);
          const float v38 = shift(t31[i], 1.442695f);
          #pragma unroll
          for (int j = 0; j < 16; j++) {
            const int x_j_36 = least(first + pair + j * 8 + 0, (int)d_keys - 1);
            const int x_j_37 = least(first + pair + j * 8 + 1, (int)d_keys - 1);
            const float v39 = power_of_two(fmaf(t20[i][j * 2 + 0], 0.12751742627516502f, v38));
            const float v40 = power_of_two(fmaf(t20[i][j * 2 + 1], 0.12751742627516502f, v38));
            const float v41 = (v39 * 1.0f);
            const float v42 = (v40 * 1.0f);
            t34[i][j * 2 + 0] = v41;
            t34[i][j * 2 + 1] = v42;
          }
        }
        float r43[2];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_44 = least(row + i * 8, (int)d_seq - 1);
          float r[4] = {0.0f, 0.0f, 0.0f, 0.0f};
          #pragma unroll
          for (int j = 0; j < 16; j++) {
            const int x_j_45 = least(first + pair + j * 8 + 0, (int)d_keys - 1);
            const int x_j_46 = least(first + pair + j * 8 + 1, (int)d_keys - 1);
            r[j * 2 % 4 + 0] = (r[j * 2 % 4 + 0] + (first + pair + j * 8 < (int)d_keys ? t34[i][j * 2 + 0] : 0.0f));
            r[j * 2 % 4 + 1] = (r[j * 2 % 4 + 1] + (first + pair + j * 8 + 1 < (int)d_keys ? t34[i][j * 2 + 1] : 0.0f));
          }
          r43[i] = ((r[0] + r[1]) + (r[2] + r[3]));
        }
        float t47[2];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_48 = least(row + i * 8, (int)d_seq - 1);
          const float v49 = subni_f32(c_m0[i], t31[i]);
          t47[i] = v49;
        }
        float t50[2];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_51 = least(row + i * 8, (int)d_seq - 1);
          const float v52 = (t47[i] * 0x1.7154760000000p+0f);
          t50[i] = v52;
        }
        float t53[2];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_54 = least(row + i * 8, (int)d_seq - 1);
          const float v55 = exp2_f32(t50[i]);
          t53[i] = v55;
        }
        float p56[2][32];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_57 = least(row + i * 8, (int)d_seq - 1);
          #pragma unroll
          for (int j = 0; j < 16; j++) {
            const int x_j_58 = least(first + pair + j * 8 + 0, (int)d_keys - 1);
            const int x_j_59 = least(first + pair + j * 8 + 1, (int)d_keys - 1);
            p56[i][j * 2 + 0] = first + pair + j * 8 < (int)d_keys ? t34[i][j * 2 + 0] : 0.0f;
            p56[i][j * 2 + 1] = first + pair + j * 8 + 1 < (int)d_keys ? t34[i][j * 2 + 1] : 0.0f;
          }
        }
        #pragma unroll
        for (int k = 0; k < 8; k++) {
          take_rows<true, false>(p17[k], p56, k);
        }
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          c_m0[i] = t31[i];
          c_l0[i] = c_l0[i] * t53[i] + r43[i];
        }
      }
      for (turn--; turn >= most_of(whole.last, live.first); turn--) {
        const int first = 0 + turn * 128;
        order_await<256>(team);
        early.await();
        products_begin();
        {
          const u32 stage = shared + 32768 + early.slot * 65536;
          const u32 tile60 = tile_at(stage, 16);
          const u32 tile61 = tile_at(shared + team * 8192, 16);
          wgmma_bf16_ss_128(s16, tile61 + 0, tile60 + 0, 0);
          wgmma_bf16_ss_128(s16, tile61 + 2, tile60 + 2, 1);
          wgmma_bf16_ss_128(s16, tile61 + 4, tile60 + 4, 1);
          wgmma_bf16_ss_128(s16, tile61 + 6, tile60 + 6, 1);
          wgmma_bf16_ss_128(s16, tile61 + 1024, tile60 + 1024, 1);
          wgmma_bf16_ss_128(s16, tile61 + 1026, tile60 + 1026, 1);
          wgmma_bf16_ss_128(s16, tile61 + 1028, tile60 + 1028, 1);
          wgmma_bf16_ss_128(s16, tile61 + 1030, tile60 + 1030, 1);
        }
        products_end();
        late.await();
        products_begin();
        {
          const u32 stage = shared + 32768 + late.slot * 65536;
          const u32 tile62 = tile_at(stage + 32768, 16384);
          wgmma_bf16_rt_128(c_o0, p17[0][0], tile62 + 0, 1);
          wgmma_bf16_rt_128(c_o0, p17[1][0], tile62 + 128, 1);
          wgmma_bf16_rt_128(c_o0, p17[2][0], tile62 + 256, 1);
          wgmma_bf16_rt_128(c_o0, p17[3][0], tile62 + 384, 1);
          wgmma_bf16_rt_128(c_o0, p17[4][0], tile62 + 512, 1);
          wgmma_bf16_rt_128(c_o0, p17[5][0], tile62 + 640, 1);
          wgmma_bf16_rt_128(c_o0, p17[6][0], tile62 + 768, 1);
          wgmma_bf16_rt_128(c_o0, p17[7][0], tile62 + 896, 1);
        }
        products_end();
        order_pass<256>(team == 1 ? 0 : team + 1);
        products_await<1>();
        settle(s16);
        early.release(early.slot);
        early.next();
        float t63[2][32];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_64 = least(row + i * 8, (int)d_seq - 1);
          const int v67 = add_i32(x_i_64, 1);
          #pragma unroll
          for (int j = 0; j < 16; j++) {
            const int x_j_65 = least(first + pair + j * 8 + 0, (int)d_keys - 1);
            const int x_j_66 = least(first + pair + j * 8 + 1, (int)d_keys - 1);
            const int v68 = (int)(x_j_65 < v67);
            const int v69 = (int)(x_j_66 < v67);
            t63[i][j * 2 + 0] = v68 ? s16[i][j * 2 + 0] : -INFINITY;
            t63[i][j * 2 + 1] = v69 ? s16[i][j * 2 + 1] : -INFINITY;
          }
        }
        float r70[2];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_71 = least(row + i * 8, (int)d_seq - 1);
          float r[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
          #pragma unroll
          for (int j = 0; j < 16; j++) {
            const int x_j_72 = least(first + pair + j * 8 + 0, (int)d_keys - 1);
            const int x_j_73 = least(first + pair + j * 8 + 1, (int)d_keys - 1);
            r[j * 2 % 4 + 0] = larger(r[j * 2 % 4 + 0], (first + pair + j * 8 < (int)d_keys ? t63[i][j * 2 + 0] : -INFINITY));
            r[j * 2 % 4 + 1] = larger(r[j * 2 % 4 + 1], (first + pair + j * 8 + 1 < (int)d_keys ? t63[i][j * 2 + 1] : -INFINITY));
          }
          r70[i] = quad_max(larger(larger(r[0], r[1]), larger(r[2], r[3]))) * 0.088388347f;
        }
        float t74[2];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_75 = least(row + i * 8, (int)d_seq - 1);
          const float v76 = larger(c_m0[i], r70[i]);
          t74[i] = v76;
        }
        float t77[2][32];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_78 = least(row + i * 8, (int)d_seq - 1);
          const float v81 = shift(t74[i], 1.442695f);
          #pragma unroll
          for (int j = 0; j < 16; j++) {
            const int x_j_79 = least(first + pair + j * 8 + 0, (int)d_keys - 1);
            const int x_j_80 = least(first + pair + j * 8 + 1, (int)d_keys - 1);
            const float v82 = power_of_two(fmaf(t63[i][j * 2 + 0], 0.12751742627516502f, v81));
            const float v83 = power_of_two(fmaf(t63[i][j * 2 + 1], 0.12751742627516502f, v81));
            const float v84 = (v82 * 1.0f);
            const float v85 = (v83 * 1.0f);
            t77[i][j * 2 + 0] = v84;
            t77[i][j * 2 + 1] = v85;
          }
        }
        float r86[2];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_87 = least(row + i * 8, (int)d_seq - 1);
          float r[4] = {0.0f, 0.0f, 0.0f, 0.0f};
          #pragma unroll
          for (int j = 0; j < 16; j++) {
            const int x_j_88 = least(first + pair + j * 8 + 0, (int)d_keys - 1);
            const int x_j_89 = least(first + pair + j * 8 + 1, (int)d_keys - 1);
            r[j * 2 % 4 + 0] = (r[j * 2 % 4 + 0] + (first + pair + j * 8 < (int)d_keys ? t77[i][j * 2 + 0] : 0.0f));
            r[j * 2 % 4 + 1] = (r[j * 2 % 4 + 1] + (first + pair + j * 8 + 1 < (int)d_keys ? t77[i][j * 2 + 1] : 0.0f));
          }
          r86[i] = ((r[0] + r[1]) + (r[2] + r[3]));
        }
        float t90[2];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_91 = least(row + i * 8, (int)d_seq - 1);
          const float v92 = subni_f32(c_m0[i], t74[i]);
          t90[i] = v92;
        }
        float t93[2];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_94 = least(row + i * 8, (int)d_seq - 1);
          const float v95 = (t90[i] * 0x1.7154760000000p+0f);
          t93[i] = v95;
        }
        float t96[2];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_97 = least(row + i * 8, (int)d_seq - 1);
          const float v98 = exp2_f32(t93[i]);
          t96[i] = v98;
        }
        float p99[2][32];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_100 = least(row + i * 8, (int)d_seq - 1);
          #pragma unroll
          for (int j = 0; j < 16; j++) {
            const int x_j_101 = least(first + pair + j * 8 + 0, (int)d_keys - 1);
            const int x_j_102 = least(first + pair + j * 8 + 1, (int)d_keys - 1);
            p99[i][j * 2 + 0] = first + pair + j * 8 < (int)d_keys ? t77[i][j * 2 + 0] : 0.0f;
            p99[i][j * 2 + 1] = first + pair + j * 8 + 1 < (int)d_keys ? t77[i][j * 2 + 1] : 0.0f;
          }
        }
        products_await<0>();
        settle(c_o0);
        settle(p17);
        late.release(late.slot);
        late.next();
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          #pragma unroll
          for (int j = 0; j < 32; j++) {
            c_o0[i][j] *= t96[i];
          }
        }
        #pragma unroll
        for (int k = 0; k < 8; k++) {
          take_rows<true, false>(p17[k], p99, k);
        }
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          c_m0[i] = t74[i];
          c_l0[i] = c_l0[i] * t96[i] + r86[i];
        }
      }
      turn++;
      for (turn--; turn >= most_of(whole.first, live.first); turn--) {
        const int first = 0 + turn * 128;
        order_await<256>(team);
        early.await();
        products_begin();
        {
          const u32 stage = shared + 32768 + early.slot * 65536;
          const u32 tile103 = tile_at(stage, 16);
          const u32 tile104 = tile_at(shared + team * 8192, 16);
          wgmma_bf16_ss_128(s16, tile104 + 0, tile103 + 0, 0);
          wgmma_bf16_ss_128(s16, tile104 + 2, tile103 + 2, 1);
          wgmma_bf16_ss_128(s16, tile104 + 4, tile103 + 4, 1);
          wgmma_bf16_ss_128(s16, tile104 + 6, tile103 + 6, 1);
          wgmma_bf16_ss_128(s16, tile104 + 1024, tile103 + 1024, 1);
          wgmma_bf16_ss_128(s16, tile104 + 1026, tile103 + 1026, 1);
          wgmma_bf16_ss_128(s16, tile104 + 1028, tile103 + 1028, 1);
          wgmma_bf16_ss_128(s16, tile104 + 1030, tile103 + 1030, 1);
        }
        products_end();
        late.await();
        products_begin();
        {
          const u32 stage = shared + 32768 + late.slot * 65536;
          const u32 tile105 = tile_at(stage + 32768, 16384);
          wgmma_bf16_rt_128(c_o0, p17[0][0], tile105 + 0, 1);
          wgmma_bf16_rt_128(c_o0, p17[1][0], tile105 + 128, 1);
          wgmma_bf16_rt_128(c_o0, p17[2][0], tile105 + 256, 1);
          wgmma_bf16_rt_128(c_o0, p17[3][0], tile105 + 384, 1);
          wgmma_bf16_rt_128(c_o0, p17[4][0], tile105 + 512, 1);
          wgmma_bf16_rt_128(c_o0, p17[5][0], tile105 + 640, 1);
          wgmma_bf16_rt_128(c_o0, p17[6][0], tile105 + 768, 1);
          wgmma_bf16_rt_128(c_o0, p17[7][0], tile105 + 896, 1);
        }
        products_end();
        order_pass<256>(team == 1 ? 0 : team + 1);
        products_await<1>();
        settle(s16);
        early.release(early.slot);
        early.next();
        float r106[2];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_107 = least(row + i * 8, (int)d_seq - 1);
          float r[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
          #pragma unroll
          for (int j = 0; j < 16; j++) {
            const int x_j_108 = first + pair + j * 8 + 0;
            const int x_j_109 = first + pair + j * 8 + 1;
            r[j * 2 % 4 + 0] = larger(r[j * 2 % 4 + 0], s16[i][j * 2 + 0]);
            r[j * 2 % 4 + 1] = larger(r[j * 2 % 4 + 1], s16[i][j * 2 + 1]);
          }
          r106[i] = quad_max(larger(larger(r[0], r[1]), larger(r[2], r[3]))) * 0.088388347f;
        }
        float t110[2];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_111 = least(row + i * 8, (int)d_seq - 1);
          const float v112 = larger(c_m0[i], r106[i]);
          t110[i] = v112;
        }
        float t113[2][32];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_114 = least(row + i * 8, (int)d_seq - 1);
          const float v117 = shift(t110[i], 1.442695f);
          #pragma unroll
          for (int j = 0; j < 16; j++) {
            const int x_j_115 = first + pair + j * 8 + 0;
            const int x_j_116 = first + pair + j * 8 + 1;
            const float v118 = power_of_two(fmaf(s16[i][j * 2 + 0], 0.12751742627516502f, v117));
            const float v119 = power_of_two(fmaf(s16[i][j * 2 + 1], 0.12751742627516502f, v117));
            const float v120 = (v118 * 1.0f);
            const float v121 = (v119 * 1.0f);
            t113[i][j * 2 + 0] = v120;
            t113[i][j * 2 + 1] = v121;
          }
        }
        float r122[2];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_123 = least(row + i * 8, (int)d_seq - 1);
          float r[4] = {0.0f, 0.0f, 0.0f, 0.0f};
          #pragma unroll
          for (int j = 0; j < 16; j++) {
            const int x_j_124 = first + pair + j * 8 + 0;
            const int x_j_125 = first + pair + j * 8 + 1;
            r[j * 2 % 4 + 0] = (r[j * 2 % 4 + 0] + t113[i][j * 2 + 0]);
            r[j * 2 % 4 + 1] = (r[j * 2 % 4 + 1] + t113[i][j * 2 + 1]);
          }
          r122[i] = ((r[0] + r[1]) + (r[2] + r[3]));
        }
        float t126[2];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_127 = least(row + i * 8, (int)d_seq - 1);
          const float v128 = subni_f32(c_m0[i], t110[i]);
          t126[i] = v128;
        }
        float t129[2];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_130 = least(row + i * 8, (int)d_seq - 1);
          const float v131 = (t126[i] * 0x1.7154760000000p+0f);
          t129[i] = v131;
        }
        float t132[2];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_133 = least(row + i * 8, (int)d_seq - 1);
          const float v134 = exp2_f32(t129[i]);
          t132[i] = v134;
        }
        float p135[2][32];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_136 = least(row + i * 8, (int)d_seq - 1);
          #pragma unroll
          for (int j = 0; j < 16; j++) {
            const int x_j_137 = first + pair + j * 8 + 0;
            const int x_j_138 = first + pair + j * 8 + 1;
            p135[i][j * 2 + 0] = t113[i][j * 2 + 0];
            p135[i][j * 2 + 1] = t113[i][j * 2 + 1];
          }
        }
        products_await<0>();
        settle(c_o0);
        settle(p17);
        late.release(late.slot);
        late.next();
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          #pragma unroll
          for (int j = 0; j < 32; j++) {
            c_o0[i][j] *= t132[i];
          }
        }
        #pragma unroll
        for (int k = 0; k < 8; k++) {
          take_rows<true, false>(p17[k], p135, k);
        }
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          c_m0[i] = t110[i];
          c_l0[i] = c_l0[i] * t132[i] + r122[i];
        }
      }
      turn++;
      for (turn--; turn >= most_of(live.first, live.first); turn--) {
        const int first = 0 + turn * 128;
        order_await<256>(team);
        early.await();
        products_begin();
        {
          const u32 stage = shared + 32768 + early.slot * 65536;
          const u32 tile139 = tile_at(stage, 16);
          const u32 tile140 = tile_at(shared + team * 8192, 16);
          wgmma_bf16_ss_128(s16, tile140 + 0, tile139 + 0, 0);
          wgmma_bf16_ss_128(s16, tile140 + 2, tile139 + 2, 1);
          wgmma_bf16_ss_128(s16, tile140 + 4, tile139 + 4, 1);
          wgmma_bf16_ss_128(s16, tile140 + 6, tile139 + 6, 1);
          wgmma_bf16_ss_128(s16, tile140 + 1024, tile139 + 1024, 1);
          wgmma_bf16_ss_128(s16, tile140 + 1026, tile139 + 1026, 1);
          wgmma_bf16_ss_128(s16, tile140 + 1028, tile139 + 1028, 1);
          wgmma_bf16_ss_128(s16, tile140 + 1030, tile139 + 1030, 1);
        }
        products_end();
        late.await();
        products_begin();
        {
          const u32 stage = shared + 32768 + late.slot * 65536;
          const u32 tile141 = tile_at(stage + 32768, 16384);
          wgmma_bf16_rt_128(c_o0, p17[0][0], tile141 + 0, 1);
          wgmma_bf16_rt_128(c_o0, p17[1][0], tile141 + 128, 1);
          wgmma_bf16_rt_128(c_o0, p17[2][0], tile141 + 256, 1);
          wgmma_bf16_rt_128(c_o0, p17[3][0], tile141 + 384, 1);
          wgmma_bf16_rt_128(c_o0, p17[4][0], tile141 + 512, 1);
          wgmma_bf16_rt_128(c_o0, p17[5][0], tile141 + 640, 1);
          wgmma_bf16_rt_128(c_o0, p17[6][0], tile141 + 768, 1);
          wgmma_bf16_rt_128(c_o0, p17[7][0], tile141 + 896, 1);
        }
        products_end();
        order_pass<256>(team == 1 ? 0 : team + 1);
        products_await<1>();
        settle(s16);
        early.release(early.slot);
        early.next();
        float t142[2][32];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_143 = least(row + i * 8, (int)d_seq - 1);
          const int v146 = add_i32(x_i_143, 1);
          #pragma unroll
          for (int j = 0; j < 16; j++) {
            const int x_j_144 = least(first + pair + j * 8 + 0, (int)d_keys - 1);
            const int x_j_145 = least(first + pair + j * 8 + 1, (int)d_keys - 1);
            const int v147 = (int)(x_j_144 < v146);
            const int v148 = (int)(x_j_145 < v146);
            t142[i][j * 2 + 0] = v147 ? s16[i][j * 2 + 0] : -INFINITY;
            t142[i][j * 2 + 1] = v148 ? s16[i][j * 2 + 1] : -INFINITY;
          }
        }
        float r149[2];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_150 = least(row + i * 8, (int)d_seq - 1);
          float r[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
          #pragma unroll
          for (int j = 0; j < 16; j++) {
            const int x_j_151 = least(first + pair + j * 8 + 0, (int)d_keys - 1);
            const int x_j_152 = least(first + pair + j * 8 + 1, (int)d_keys - 1);
            r[j * 2 % 4 + 0] = larger(r[j * 2 % 4 + 0], (first + pair + j * 8 < (int)d_keys ? t142[i][j * 2 + 0] : -INFINITY));
            r[j * 2 % 4 + 1] = larger(r[j * 2 % 4 + 1], (first + pair + j * 8 + 1 < (int)d_keys ? t142[i][j * 2 + 1] : -INFINITY));
          }
          r149[i] = quad_max(larger(larger(r[0], r[1]), larger(r[2], r[3]))) * 0.088388347f;
        }
        float t153[2];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_154 = least(row + i * 8, (int)d_seq - 1);
          const float v155 = larger(c_m0[i], r149[i]);
          t153[i] = v155;
        }
        float t156[2][32];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_157 = least(row + i * 8, (int)d_seq - 1);
          const float v160 = shift(t153[i], 1.442695f);
          #pragma unroll
          for (int j = 0; j < 16; j++) {
            const int x_j_158 = least(first + pair + j * 8 + 0, (int)d_keys - 1);
            const int x_j_159 = least(first + pair + j * 8 + 1, (int)d_keys - 1);
            const float v161 = power_of_two(fmaf(t142[i][j * 2 + 0], 0.12751742627516502f, v160));
            const float v162 = power_of_two(fmaf(t142[i][j * 2 + 1], 0.12751742627516502f, v160));
            const float v163 = (v161 * 1.0f);
            const float v164 = (v162 * 1.0f);
            t156[i][j * 2 + 0] = v163;
            t156[i][j * 2 + 1] = v164;
          }
        }
        float r165[2];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_166 = least(row + i * 8, (int)d_seq - 1);
          float r[4] = {0.0f, 0.0f, 0.0f, 0.0f};
          #pragma unroll
          for (int j = 0; j < 16; j++) {
            const int x_j_167 = least(first + pair + j * 8 + 0, (int)d_keys - 1);
            const int x_j_168 = least(first + pair + j * 8 + 1, (int)d_keys - 1);
            r[j * 2 % 4 + 0] = (r[j * 2 % 4 + 0] + (first + pair + j * 8 < (int)d_keys ? t156[i][j * 2 + 0] : 0.0f));
            r[j * 2 % 4 + 1] = (r[j * 2 % 4 + 1] + (first + pair + j * 8 + 1 < (int)d_keys ? t156[i][j * 2 + 1] : 0.0f));
          }
          r165[i] = ((r[0] + r[1]) + (r[2] + r[3]));
        }
        float t169[2];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_170 = least(row + i * 8, (int)d_seq - 1);
          const float v171 = subni_f32(c_m0[i], t153[i]);
          t169[i] = v171;
        }
        float t172[2];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_173 = least(row + i * 8, (int)d_seq - 1);
          const float v174 = (t169[i] * 0x1.7154760000000p+0f);
          t172[i] = v174;
        }
        float t175[2];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_176 = least(row + i * 8, (int)d_seq - 1);
          const float v177 = exp2_f32(t172[i]);
          t175[i] = v177;
        }
        float p178[2][32];
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          const int x_i_179 = least(row + i * 8, (int)d_seq - 1);
          #pragma unroll
          for (int j = 0; j < 16; j++) {
            const int x_j_180 = least(first + pair + j * 8 + 0, (int)d_keys - 1);
            const int x_j_181 = least(first + pair + j * 8 + 1, (int)d_keys - 1);
            p178[i][j * 2 + 0] = first + pair + j * 8 < (int)d_keys ? t156[i][j * 2 + 0] : 0.0f;
            p178[i][j * 2 + 1] = first + pair + j * 8 + 1 < (int)d_keys ? t156[i][j * 2 + 1] : 0.0f;
          }
        }
        products_await<0>();
        settle(c_o0);
        settle(p17);
        late.release(late.slot);
        late.next();
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          #pragma unroll
          for (int j = 0; j < 32; j++) {
            c_o0[i][j] *= t175[i];
          }
        }
        #pragma unroll
        for (int k = 0; k < 8; k++) {
          take_rows<true, false>(p17[k], p178, k);
        }
        #pragma unroll
        for (int i = 0; i < 2; i++) {
          c_m0[i] = t153[i];
          c_l0[i] = c_l0[i] * t175[i] + r165[i];
        }
      }
      turn++;
      rows.release(rows.slot);
      rows.next();
      late.await();
      products_begin();
      {
        const u32 stage = shared + 32768 + late.slot * 65536;
        const u32 tile182 = tile_at(stage + 32768, 16384);
        wgmma_bf16_rt_128(c_o0, p17[0][0], tile182 + 0, 1);
        wgmma_bf16_rt_128(c_o0, p17[1][0], tile182 + 128, 1);
        wgmma_bf16_rt_128(c_o0, p17[2][0], tile182 + 256, 1);
        wgmma_bf16_rt_128(c_o0, p17[3][0], tile182 + 384, 1);
        wgmma_bf16_rt_128(c_o0, p17[4][0], tile182 + 512, 1);
        wgmma_bf16_rt_128(c_o0, p17[5][0], tile182 + 640, 1);
        wgmma_bf16_rt_128(c_o0, p17[6][0], tile182 + 768, 1);
        wgmma_bf16_rt_128(c_o0, p17[7][0], tile182 + 896, 1);
      }
      products_end();
      products_await<0>();
      settle(c_o0);
      settle(p17);
      late.release(late.slot);
      late.next();
    }
    #pragma unroll
    for (int i = 0; i < 2; i++) {
      c_l0[i] = quad_sum(c_l0[i]);
    }
    #pragma unroll
    for (int i = 0; i < 2; i++) {
      const int x_i_183 = least(row + i * 8, (int)d_seq - 1);
      u32 w184[16];
      const float v186 = recipz_f32(c_l0[i]);
      #pragma unroll
      for (int j = 0; j < 16; j++) {
        const int x_e_185 = column + j * 8;
        const float v187 = (c_o0[i][j * 2 + 0] * v186);
        const float v188 = (c_o0[i][j * 2 + 1] * v186);
        w184[j] = pack<true>(v187, v188);
      }
      #pragma unroll
      for (int g = 0; g < 4; g++) {
        const uint4 eight = gather_tile(w184[g * 4 + 0], w184[g * 4 + 1], w184[g * 4 + 2], w184[g * 4 + 3]);
        const int place189 = column + lane % 4 * 6 + g * 32;
        if (row + i * 8 < (int)d_seq) *(uint4 *)(b3_R + (i64)x_g_4 * (128 * d_seq) + (i64)x_h_6 * (256 * d_seq) + (i64)x_i_183 * 128 + (i64)place189) = eight;
      }
    }
  }
  if (team == 0) order_await<256>(0);
}
extern "C" __global__ void __launch_bounds__(384, 1) attend(const u16 *__restrict__ b0_Q, const u16 *__restrict__ b1_K, const u16 *__restrict__ b2_V, u16 *__restrict__ b3_R, const i64 *__restrict__ dims) {
  extern __shared__ __align__(1024) u8 pool[];
  let_next_start();
  const u32 signals = aligned_pool(pool);
  open_signals<5, 128, 8>(signals);
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  __syncthreads();
  wait_for_previous();
  if (group_of_warps() == 0) {
    give_registers<40>();
    if (true) attend_feed(settled(b0_Q), settled(b1_K), settled(b2_V), settled(b3_R), dims, signals);
  } else {
    take_registers<232>();
    attend_use(settled(b0_Q), settled(b1_K), settled(b2_V), settled(b3_R), dims, signals);
  }
}
