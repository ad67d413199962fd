__device__ float attend_left[528 * 520];
__device__ u32 attend_arrived[264];
INLINE void attend_copy(const float *__restrict__ b0_B0, const float *__restrict__ b1_B3, const u16 *__restrict__ b2_B1, const u16 *__restrict__ b3_B2, float *__restrict__ b4_T1, float *__restrict__ b5_T2, float *__restrict__ b6_T3, const i64 *__restrict__ dims, u8 *to, int cell, int from, int last) {
  const i64 d_past = dims[0];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int x_ch_1 = (cell) % 3;
  const int rest2 = (cell) / 3;
  const int x_c_3 = rest2;
  if (from + 15 <= last) {
    {
      const int x_g_4 = lane % 16 * 8;
      const int row5 = from + lane / 16;
      const auto *const first = b2_B1 + x_c_3 * 81920 + row5 * 128 + x_g_4;
      u8 *const at = to + 0 + lane / 16 * 272 + lane % 16 * 16;
      #pragma unroll
for (int j = 0; j < 8; j++)
        copy_piece(at + j * 544, first + j * 256, 16);
    }
    {
      const int x_e_6 = lane % 16 * 8;
      const int row7 = from + lane / 16;
      const auto *const first = b3_B2 + x_c_3 * 81920 + row7 * 128 + x_e_6;
      u8 *const at = to + 4352 + lane / 16 * 272 + lane % 16 * 16;
      #pragma unroll
for (int j = 0; j < 8; j++)
        copy_piece(at + j * 544, first + j * 256, 16);
    }
  }
  else {
    #pragma unroll 1
    for (int j = 0; j < 8; j++) {
      const int place = j * 2 + lane / 16;
      const int x_g_8 = lane % 16 * 8;
      const int row9 = least(from + place, last);
      copy_piece(to + 0 + place * 272 + lane % 16 * 16, b2_B1 + x_c_3 * 81920 + row9 * 128 + x_g_8, from + place <= last ? 16 : 0);
    }
    #pragma unroll 1
    for (int j = 0; j < 8; j++) {
      const int place = j * 2 + lane / 16;
      const int x_e_10 = lane % 16 * 8;
      const int row11 = least(from + place, last);
      copy_piece(to + 4352 + place * 272 + lane % 16 * 16, b3_B2 + x_c_3 * 81920 + row11 * 128 + x_e_10, from + place <= last ? 16 : 0);
    }
  }
  (void)warp;
}
INLINE Share attend_line(const float *__restrict__ b0_B0, const float *__restrict__ b1_B3, const u16 *__restrict__ b2_B1, const u16 *__restrict__ b3_B2, float *__restrict__ b4_T1, float *__restrict__ b5_T2, float *__restrict__ b6_T3, const i64 *__restrict__ dims) {
  const i64 d_past = dims[0];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  Share line = {};
  line.units = (chunk_length((int)(d_past + 1), 3) + 127) / 128;
  line.units = most(line.units, 1);
  const int cells = 2 * 3, blocks = least(gridDim.x, 264);
  line.deal(cells, blocks, 2);
  (void)warp, (void)lane;
  return line;
}
INLINE bool attend_ahead(const float *__restrict__ b0_B0, const float *__restrict__ b1_B3, const u16 *__restrict__ b2_B1, const u16 *__restrict__ b3_B2, float *__restrict__ b4_T1, float *__restrict__ b5_T2, float *__restrict__ b6_T3, const i64 *__restrict__ dims, u8 *pool, const Share &line, int unchanged) {
  const i64 d_past = dims[0];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int at = line.begin;
  const int cell = line.cell + at / line.units, begun = at % line.units;
  const int ended = least(begun + line.end - at, line.units);
  const int x_ch_12 = (cell) % 3;
  const int rest13 = (cell) / 3;
  const int x_c_14 = rest13;
  const int share15 = chunk_length((int)(d_past + 1), 3);
  const int start16 = least((int)(d_past + 1), x_ch_12 * share15);
  const int stop17 = least((int)(d_past + 1), start16 + share15);
  const int start = start16 + (line.first + begun) * 128;
  const int stop = least(stop17, start16 + (line.first + ended) * 128);
  const int mine = start + warp * 16, last = stop - 1;
  const int count = mine < stop ? (stop - mine + 127) / 128 : 0;
  if (least(stop, start + 256) > unchanged) return false;
  u8 *const ring = pool + 4096 + warp * 26112;
  #pragma unroll
  for (int k = 0; k < 2; k++) {
    if (k < count) {
      attend_copy(b0_B0, b1_B3, b2_B1, b3_B2, b4_T1, b5_T2, b6_T3, dims, ring + k * 8704, cell, mine + k * 128, last);
    }
    close_lot();
  }
  (void)lane;
  return true;
}
INLINE void attend_walk(const float *__restrict__ b0_B0, const float *__restrict__ b1_B3, const u16 *__restrict__ b2_B1, const u16 *__restrict__ b3_B2, float *__restrict__ b4_T1, float *__restrict__ b5_T2, float *__restrict__ b6_T3, const i64 *__restrict__ dims, u8 *pool, const Share &line, bool ahead) {
  const i64 d_past = dims[0];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  u8 *const ring = pool + 4096 + warp * 26112;
  const int v56 = add_i32((int)d_past, 1);
  for (int at = line.begin; at < line.end; ) {
    const int cell = line.cell + at / line.units, begun = at % line.units;
    const int ended = least(begun + line.end - at, line.units);
    const int x_ch_18 = (cell) % 3;
    const int rest19 = (cell) / 3;
    const int x_c_20 = rest19;
    const int share21 = chunk_length((int)(d_past + 1), 3);
    const int start22 = least((int)(d_past + 1), x_ch_18 * share21);
    const int stop23 = least((int)(d_past + 1), start22 + share21);
    const int start = start22 + (line.first + begun) * 128;
    const int stop = least(stop23, start22 + (line.first + ended) * 128);
    const int mine = start + warp * 16, last = stop - 1;
    const int count = mine < stop ? (stop - mine + 127) / 128 : 0;
    if (!ahead) {
      #pragma unroll
      for (int k = 0; k < 2; k++) {
        if (k < count) {
          attend_copy(b0_B0, b1_B3, b2_B1, b3_B2, b4_T1, b5_T2, b6_T3, dims, ring + k * 8704, cell, mine + k * 128, last);
        }
        close_lot();
      }
    }
    ahead = false;
    for (int m = warp; m < 8; m += 8) {
      const int head = least(lane / 4 % 4, 3);
      const int x_h_24 = head;
      const int x25 = least(m * 16 + lane % 4 * 2 + 0, 127);
      const int x26 = least(m * 16 + lane % 4 * 2 + 1, 127);
      const int x27 = least(m * 16 + lane % 4 * 2 + 8, 127);
      const int x28 = least(m * 16 + lane % 4 * 2 + 9, 127);
      const float v29 = *(b0_B0 + x_c_20 * 512 + x_h_24 * 128 + x25);
      const float v30 = *(b0_B0 + x_c_20 * 512 + x_h_24 * 128 + x26);
      const float v31 = *(b0_B0 + x_c_20 * 512 + x_h_24 * 128 + x27);
      const float v32 = *(b0_B0 + x_c_20 * 512 + x_h_24 * 128 + x28);
      const float v33 = *(b1_B3 + x25);
      const float v34 = *(b1_B3 + x26);
      const float v35 = *(b1_B3 + x27);
      const float v36 = *(b1_B3 + x28);
      const float v37 = (v29 * v33);
      const float v38 = (v30 * v34);
      const float v39 = (v31 * v35);
      const float v40 = (v32 * v36);
      const float v41 = v37;
      const float v42 = v38;
      const float v43 = v39;
      const float v44 = v40;
      u32 *const to = (u32 *)(pool + 0) + (m * 32 + lane) * 4;
      to[0] = parts_of(v41, v42, (0 + lane / 4) / 4);
      to[1] = parts_of(v43, v44, (0 + lane / 4) / 4);
      to[2] = parts_of(v41, v42, (8 + lane / 4) / 4);
      to[3] = parts_of(v43, v44, (8 + lane / 4) / 4);
    }
    __syncthreads();
    const int x_h_45 = lane / 4 % 4;
    float c_v1 = -INFINITY;
    float c_v2 = 0.0f;
    float o0[8][4] = {};
    const u32 *const of0 = (const u32 *)(pool + 0) + lane * 4;
    u32 q0[32];
    #pragma unroll
for (int k = 0; k < 32; k++)
      q0[k] = of0[k / 4 * 128 + k % 4];
    int slot = 0;
    for (int k = 0; k < count; k++) {
      const int free = slot ? slot - 1 : 2;
      if ((k + 2) < count) {
        attend_copy(b0_B0, b1_B3, b2_B1, b3_B2, b4_T1, b5_T2, b6_T3, dims, ring + free * 8704, cell, mine + (k + 2) * 128, last);
      }
      close_lot();
      await_lots<2>();
      const u8 *const stage = ring + slot * 8704;
      slot = slot == 2 ? 0 : slot + 1;
      const int from = mine + k * 128;
      const int own0 = from + lane % 4 * 2 + 0;
      const int x_46 = least(own0, last);
      const int own1 = from + lane % 4 * 2 + 1;
      const int x_47 = least(own1, last);
      const int own2 = from + lane % 4 * 2 + 8;
      const int x_48 = least(own2, last);
      const int own3 = from + lane % 4 * 2 + 9;
      const int x_49 = least(own3, last);
      float s50[2][4] = {};
      const u8 * rows51 = stage + 0 + (lane / 16 * 8 + lane % 8) * 272 + lane / 8 % 2 * 16;
      #pragma unroll
      for (int m = 0; m < 8; m++) {
        u32 t[4];
read_tiles(t, rows51 + m * 32);
        multiply_tiles(s50[0], q0[m * 4 + 0], q0[m * 4 + 2], q0[m * 4 + 1], q0[m * 4 + 3], t[0], t[1]);
        multiply_tiles(s50[1], q0[m * 4 + 0], q0[m * 4 + 2], q0[m * 4 + 1], q0[m * 4 + 3], t[2], t[3]);
      }
      const float v52 = above_sum_f32<16>(s50[0][0] + s50[0][2]);
      const float v53 = above_sum_f32<16>(s50[0][1] + s50[0][3]);
      const float v54 = above_sum_f32<16>(s50[1][0] + s50[1][2]);
      const float v55 = above_sum_f32<16>(s50[1][1] + s50[1][3]);
      const int v57 = (int)(x_46 < v56);
      const int v58 = (int)(x_47 < v56);
      const int v59 = (int)(x_48 < v56);
      const int v60 = (int)(x_49 < v56);
      const float v61 = (v52 * 0x1.0000000000000p-2f);
      const float v62 = (v53 * 0x1.0000000000000p-2f);
      const float v63 = (v54 * 0x1.0000000000000p-2f);
      const float v64 = (v55 * 0x1.0000000000000p-2f);
      const float v65 = (v57 ? v61 : -INFINITY);
      const float v66 = (v58 ? v62 : -INFINITY);
      const float v67 = (v59 ? v63 : -INFINITY);
      const float v68 = (v60 ? v64 : -INFINITY);
      const float v69 = across_max_f32<4>(most(most((own0 <= last ? v65 : -INFINITY), (own1 <= last ? v66 : -INFINITY)), most((own2 <= last ? v67 : -INFINITY), (own3 <= last ? v68 : -INFINITY))));
      const float v70 = max_f32(c_v1, v69);
      const float v71 = subni_f32(v65, v70);
      const float v72 = subni_f32(v66, v70);
      const float v73 = subni_f32(v67, v70);
      const float v74 = subni_f32(v68, v70);
      const float v75 = (v71 * 0x1.7154760000000p+0f);
      const float v76 = (v72 * 0x1.7154760000000p+0f);
      const float v77 = (v73 * 0x1.7154760000000p+0f);
      const float v78 = (v74 * 0x1.7154760000000p+0f);
      const float v79 = exp2_f32(v75);
      const float v80 = exp2_f32(v76);
      const float v81 = exp2_f32(v77);
      const float v82 = exp2_f32(v78);
      const float v83 = across_sum_f32<4>(sum_f32(sum_f32((own0 <= last ? v79 : 0.0f), (own1 <= last ? v80 : 0.0f)), sum_f32((own2 <= last ? v81 : 0.0f), (own3 <= last ? v82 : 0.0f))));
      const float v84 = subni_f32(c_v1, v70);
      const float v85 = (v84 * 0x1.7154760000000p+0f);
      const float v86 = exp2_f32(v85);
      const float v87 = (c_v2 * v86);
      const float v88 = (v87 + v83);
      const float v89 = (own0 <= last ? v79 : 0.0f);
      const float v90 = (own1 <= last ? v80 : 0.0f);
      const float v91 = (own2 <= last ? v81 : 0.0f);
      const float v92 = (own3 <= last ? v82 : 0.0f);
      const float f0 = __shfl_sync(FULL_WARP, v86, lane % 4 * 8);
      const float f1 = __shfl_sync(FULL_WARP, v86, lane % 4 * 8 + 4);
      #pragma unroll
      for (int m = 0; m < 8; m++) {
        o0[m][0] = o0[m][0] * f0;
        o0[m][1] = o0[m][1] * f1;
        o0[m][2] = o0[m][2] * f0;
        o0[m][3] = o0[m][3] * f1;
      }
      const u32 w0_0_0 = parts_of(v89, v90, (0 + lane / 4) / 4);
      const u32 w0_0_1 = parts_of(v91, v92, (0 + lane / 4) / 4);
      const u32 w0_1_0 = parts_of(v89, v90, (8 + lane / 4) / 4);
      const u32 w0_1_1 = parts_of(v91, v92, (8 + lane / 4) / 4);
      const u8 * rows93 = stage + 4352 + (lane / 16 * 8 + lane % 8) * 272 + lane / 8 % 2 * 16;
      #pragma unroll
      for (int m = 0; m < 8; m++) {
        u32 t[4];
read_turned(t, rows93 + m * 32);
        multiply_tiles(o0[m], t[0], t[1], t[2], t[3], w0_0_0, w0_0_1);
        multiply_tiles(o0[m], t[0], t[1], t[2], t[3], w0_1_0, w0_1_1);
      }
      c_v1 = v70;
      c_v2 = v88;
      if (k % 16 == 15 && k < (stop - start) / 128) __syncthreads();
      else __syncwarp();
    }
    await_lots<0>();
    __syncthreads();
    float *const state = (float *)(pool + 4096) + warp * 520;
    if (lane % 4 == 0 && lane < 16) {
      state[0 + lane / 4 % 4] = c_v1;
      state[4 + lane / 4 % 4] = c_v2;
    }
    #pragma unroll
    for (int m = 0; m < 8; m++) {
      #pragma unroll
      for (int k = 0; k < 4; k += 2) {
        o0[m][k + 0] = sum_across<2>(o0[m][k + 0]);
        o0[m][k + 1] = sum_across<2>(o0[m][k + 1]);
      }
    }
    float *const to0 = state + 8 + lane % 4 * 256 + lane / 4;
    if (lane % 4 * 2 + 0 < 4) {
      #pragma unroll
      for (int m = 0; m < 8; m++) {
        to0[0 + m * 16] = o0[m][0];
        to0[8 + m * 16] = o0[m][2];
      }
    }
    if (lane % 4 * 2 + 1 < 4) {
      #pragma unroll
      for (int m = 0; m < 8; m++) {
        to0[128 + m * 16] = o0[m][1];
        to0[136 + m * 16] = o0[m][3];
      }
    }
    __syncthreads();
    if (ended - begun == line.units) {
      for (int item = threadIdx.x; item < 256; item += 256) {
        const int head94 = item / 64;
        const int x_e_95 = item % 64 * 2;
        const int x_h_96 = head94;
        float all_v1 = -INFINITY;
        float all_v2 = 0.0f;
        float total0[2] = {};
        const int base = 0;
        float single0[8];
        float single1[8];
        float2 sums0[8];
        #pragma unroll
        for (int k = 0; k < 8; k++) {
          {
            const float *const state = (const float *)(pool + 4096) + (base + k) * 520;
            single0[k] = shared_value(state + 0 + head94);
            single1[k] = shared_value(state + 4 + head94);
            sums0[k] = shared_value((const float2 *)(state + 8 + head94 * 128 + x_e_95));
          }
        }
        float next_v1 = all_v1;
        #pragma unroll
        for (int k = 0; k < 8; k++) {
          {
            next_v1 = most(next_v1, single0[k]);
          }
        }
        all_v1 = next_v1;
        #pragma unroll
        for (int k = 0; k < 8; k++) {
          {
            const float v97 = subni_f32(single0[k], next_v1);
            const float v98 = (v97 * 0x1.7154760000000p+0f);
            const float v99 = exp2_f32(v98);
            const float v100 = (single1[k] * v99);
            all_v2 = sum_f32(all_v2, v100);
            total0[0] = fma_f32(v99, sums0[k].x, total0[0]);
            total0[1] = fma_f32(v99, sums0[k].y, total0[1]);
          }
        }
        if (x_e_95 == 0) {
          *(b4_T1 + x_c_20 * 12 + x_h_96 * 3 + x_ch_18) = all_v1;
          *(b5_T2 + x_c_20 * 12 + x_h_96 * 3 + x_ch_18) = all_v2;
        }
        *(b6_T3 + x_c_20 * 1536 + x_h_96 * 384 + x_e_95 * 3 + x_ch_18) = total0[0];
        *(b6_T3 + x_c_20 * 1536 + x_h_96 * 384 + x_e_95 * 3 + x_ch_18 + 3) = total0[1];
      }
    }
    else {
      const int low = (cell - line.cell) * line.units;
      const int first = line.part_of(low), parts = line.part_of(low + line.units - 1) - first + 1;
      const int number = blockIdx.x - line.part + first;
      const int behind = line.begin_of(first) < low ? 1 : 0;
      float *const left = attend_left + (2 * blockIdx.x + (line.part == first ? behind : 0)) * 520;
      for (int item = threadIdx.x; item < 256; item += 256) {
        const int head101 = item / 64;
        const int x_e_102 = item % 64 * 2;
        const int x_h_103 = head101;
        float all_v1 = -INFINITY;
        float all_v2 = 0.0f;
        float total0[2] = {};
        const int base = 0;
        float single0[8];
        float single1[8];
        float2 sums0[8];
        #pragma unroll
        for (int k = 0; k < 8; k++) {
          {
            const float *const state = (const float *)(pool + 4096) + (base + k) * 520;
            single0[k] = shared_value(state + 0 + head101);
            single1[k] = shared_value(state + 4 + head101);
            sums0[k] = shared_value((const float2 *)(state + 8 + head101 * 128 + x_e_102));
          }
        }
        float next_v1 = all_v1;
        #pragma unroll
        for (int k = 0; k < 8; k++) {
          {
            next_v1 = most(next_v1, single0[k]);
          }
        }
        all_v1 = next_v1;
        #pragma unroll
        for (int k = 0; k < 8; k++) {
          {
            const float v104 = subni_f32(single0[k], next_v1);
            const float v105 = (v104 * 0x1.7154760000000p+0f);
            const float v106 = exp2_f32(v105);
            const float v107 = (single1[k] * v106);
            all_v2 = sum_f32(all_v2, v107);
            total0[0] = fma_f32(v106, sums0[k].x, total0[0]);
            total0[1] = fma_f32(v106, sums0[k].y, total0[1]);
          }
        }
        if (x_e_102 == 0) {
          left[0 + head101] = all_v1;
          left[4 + head101] = all_v2;
        }
        *(float2 *)(left + 8 + head101 * 128 + x_e_102) = make_float2(total0[0], total0[1]);
      }
      if (comes_last(attend_arrived + number, parts)) {
        const float *const all = attend_left + 2 * number * 520;
        for (int item = threadIdx.x; item < 256; item += 256) {
          const int head108 = item / 64;
          const int x_e_109 = item % 64 * 2;
          const int x_h_110 = head108;
          float all_v1 = -INFINITY;
          float all_v2 = 0.0f;
          float total0[2] = {};
          for (int base = 0; base < parts; base += 16) {
            float single0[16];
            float single1[16];
            float2 sums0[16];
            #pragma unroll
            for (int k = 0; k < 16; k++) {
              if (base + k < parts) {
                const float *const state = all + (base + k) * 1040 + (base + k ? 0 : behind * 520);
                single0[k] = written_by_others(state + 0 + head108);
                single1[k] = written_by_others(state + 4 + head108);
                sums0[k] = written_by_others((const float2 *)(state + 8 + head108 * 128 + x_e_109));
              }
            }
            float next_v1 = all_v1;
            #pragma unroll
            for (int k = 0; k < 16; k++) {
              if (base + k < parts) {
                next_v1 = most(next_v1, single0[k]);
              }
            }
            if (base) {
              const float v111 = subni_f32(all_v1, next_v1);
              const float v112 = (v111 * 0x1.7154760000000p+0f);
              const float v113 = exp2_f32(v112);
              const float v114 = (all_v2 * v113);
              all_v2 = v114;
              total0[0] = v113 * total0[0];
              total0[1] = v113 * total0[1];
            }
            all_v1 = next_v1;
            #pragma unroll
            for (int k = 0; k < 16; k++) {
              if (base + k < parts) {
                const float v115 = subni_f32(single0[k], next_v1);
                const float v116 = (v115 * 0x1.7154760000000p+0f);
                const float v117 = exp2_f32(v116);
                const float v118 = (single1[k] * v117);
                all_v2 = sum_f32(all_v2, v118);
                total0[0] = fma_f32(v117, sums0[k].x, total0[0]);
                total0[1] = fma_f32(v117, sums0[k].y, total0[1]);
              }
            }
          }
          if (x_e_109 == 0) {
            *(b4_T1 + x_c_20 * 12 + x_h_110 * 3 + x_ch_18) = all_v1;
            *(b5_T2 + x_c_20 * 12 + x_h_110 * 3 + x_ch_18) = all_v2;
          }
          *(b6_T3 + x_c_20 * 1536 + x_h_110 * 384 + x_e_109 * 3 + x_ch_18) = total0[0];
          *(b6_T3 + x_c_20 * 1536 + x_h_110 * 384 + x_e_109 * 3 + x_ch_18 + 3) = total0[1];
        }
      }
    }
    at += ended - begun;
    if (at < line.end) __syncthreads();
  }
}
extern "C" __global__ void __launch_bounds__(256, 1) attend(const float *__restrict__ b0_B0, const float *__restrict__ b1_B3, const u16 *__restrict__ b2_B1, const u16 *__restrict__ b3_B2, float *__restrict__ b4_T1, float *__restrict__ b5_T2, float *__restrict__ b6_T3, const i64 *__restrict__ dims, u32 constant, int since) {
  extern __shared__ __align__(16) u8 pool[];
  let_next_start();
  const Share line = attend_line(b0_B0, b1_B3, b2_B1, b3_B2, b4_T1, b5_T2, b6_T3, dims);
  const int unchanged = (constant & 12) == 12 ? INT32_MAX : since < 0 ? 0 : (int)dims[since];
  const bool ahead = line.begin < line.end && attend_ahead(b0_B0, b1_B3, b2_B1, b3_B2, b4_T1, b5_T2, b6_T3, dims, pool, line, unchanged);
  wait_for_previous();
  attend_walk(settled(b0_B0), settled(b1_B3), settled(b2_B1), settled(b3_B2), settled(b4_T1), settled(b5_T2), settled(b6_T3), dims, pool, line, ahead);
}
