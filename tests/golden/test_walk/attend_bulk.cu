__device__ float attend_left[528 * 520];
__device__ u32 attend_arrived[264];
INLINE void attend_copy(const float *__restrict__ b0_B0, const float *__restrict__ b1_B3, const u16 *__restrict__ b2_B1, const u16 *__restrict__ b3_B2, float *__restrict__ b4_T1, float *__restrict__ b5_T2, float *__restrict__ b6_T3, const i64 *__restrict__ dims, u8 *to, int cell, int from, int last, u64 *full, const TensorMap &map0, const TensorMap &map1) {
  const i64 d_past = dims[0];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int x_ch_1 = (cell) % 3;
  const int rest2 = (cell) / 3;
  const int x_c_3 = rest2;
  (void)last;
  if (lane == 0) {
    stage_announce(full, 8192);
    fetch_box(shared_place(to + 0), &map0, shared_place(full), 0, from, x_c_3 * 1);
    fetch_box(shared_place(to + 2048), &map0, shared_place(full), 64, from, x_c_3 * 1);
    fetch_box(shared_place(to + 4096), &map1, shared_place(full), 0, from, x_c_3 * 1);
    fetch_box(shared_place(to + 6144), &map1, shared_place(full), 64, from, x_c_3 * 1);
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
INLINE bool attend_ahead(const float *__restrict__ b0_B0, const float *__restrict__ b1_B3, const u16 *__restrict__ b2_B1, const u16 *__restrict__ b3_B2, float *__restrict__ b4_T1, float *__restrict__ b5_T2, float *__restrict__ b6_T3, const i64 *__restrict__ dims, u8 *pool, const Share &line, int unchanged, const TensorMap &map0, const TensorMap &map1) {
  const i64 d_past = dims[0];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int at = line.begin;
  const int cell = line.cell + at / line.units, begun = at % line.units;
  const int ended = least(begun + line.end - at, line.units);
  const int x_ch_4 = (cell) % 3;
  const int rest5 = (cell) / 3;
  const int x_c_6 = rest5;
  const int share7 = chunk_length((int)(d_past + 1), 3);
  const int start8 = least((int)(d_past + 1), x_ch_4 * share7);
  const int stop9 = least((int)(d_past + 1), start8 + share7);
  const int start = start8 + (line.first + begun) * 128;
  const int stop = least(stop9, start8 + (line.first + ended) * 128);
  const int mine = start + warp * 16, last = stop - 1;
  const int count = mine < stop ? (stop - mine + 127) / 128 : 0;
  if (least(stop, start + 256) > unchanged) return false;
  u8 *const ring = pool + 5120 + warp * 24576;
  u64 *const full = (u64 *)(pool + 4096) + warp * 3;
  #pragma unroll
  for (int k = 0; k < 2; k++) {
    if (k < count) {
      attend_copy(b0_B0, b1_B3, b2_B1, b3_B2, b4_T1, b5_T2, b6_T3, dims, ring + k * 8192, cell, mine + k * 128, last, full + k, map0, map1);
    }
  }
  (void)lane;
  return true;
}
INLINE void attend_walk(const float *__restrict__ b0_B0, const float *__restrict__ b1_B3, const u16 *__restrict__ b2_B1, const u16 *__restrict__ b3_B2, float *__restrict__ b4_T1, float *__restrict__ b5_T2, float *__restrict__ b6_T3, const i64 *__restrict__ dims, u8 *pool, const Share &line, bool ahead, const TensorMap &map0, const TensorMap &map1) {
  const i64 d_past = dims[0];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  u8 *const ring = pool + 5120 + warp * 24576;
  u64 *const full = (u64 *)(pool + 4096) + warp * 3;
  int slot = 0; u32 lap = 0;
  const int v48 = add_i32((int)d_past, 1);
  for (int at = line.begin; at < line.end; ) {
    const int cell = line.cell + at / line.units, begun = at % line.units;
    const int ended = least(begun + line.end - at, line.units);
    const int x_ch_10 = (cell) % 3;
    const int rest11 = (cell) / 3;
    const int x_c_12 = rest11;
    const int share13 = chunk_length((int)(d_past + 1), 3);
    const int start14 = least((int)(d_past + 1), x_ch_10 * share13);
    const int stop15 = least((int)(d_past + 1), start14 + share13);
    const int start = start14 + (line.first + begun) * 128;
    const int stop = least(stop15, start14 + (line.first + ended) * 128);
    const int mine = start + warp * 16, last = stop - 1;
    const int count = mine < stop ? (stop - mine + 127) / 128 : 0;
    if (!ahead) {
      #pragma unroll
      for (int k = 0; k < 2; k++) {
        if (k < count) {
          attend_copy(b0_B0, b1_B3, b2_B1, b3_B2, b4_T1, b5_T2, b6_T3, dims, ring + ((slot + k) % 3) * 8192, cell, mine + k * 128, last, full + ((slot + k) % 3), map0, map1);
        }
      }
    }
    ahead = false;
    for (int m = warp; m < 8; m += 8) {
      const int head = least(lane / 4 % 4, 3);
      const int x_h_16 = head;
      const int x17 = least(m * 16 + lane % 4 * 2 + 0, 127);
      const int x18 = least(m * 16 + lane % 4 * 2 + 1, 127);
      const int x19 = least(m * 16 + lane % 4 * 2 + 8, 127);
      const int x20 = least(m * 16 + lane % 4 * 2 + 9, 127);
      const float v21 = *(b0_B0 + x_c_12 * 512 + x_h_16 * 128 + x17);
      const float v22 = *(b0_B0 + x_c_12 * 512 + x_h_16 * 128 + x18);
      const float v23 = *(b0_B0 + x_c_12 * 512 + x_h_16 * 128 + x19);
      const float v24 = *(b0_B0 + x_c_12 * 512 + x_h_16 * 128 + x20);
      const float v25 = *(b1_B3 + x17);
      const float v26 = *(b1_B3 + x18);
      const float v27 = *(b1_B3 + x19);
      const float v28 = *(b1_B3 + x20);
      const float v29 = (v21 * v25);
      const float v30 = (v22 * v26);
      const float v31 = (v23 * v27);
      const float v32 = (v24 * v28);
      const float v33 = v29;
      const float v34 = v30;
      const float v35 = v31;
      const float v36 = v32;
      u32 *const to = (u32 *)(pool + 0) + (m * 32 + lane) * 4;
      to[0] = parts_of(v33, v34, (0 + lane / 4) / 4);
      to[1] = parts_of(v35, v36, (0 + lane / 4) / 4);
      to[2] = parts_of(v33, v34, (8 + lane / 4) / 4);
      to[3] = parts_of(v35, v36, (8 + lane / 4) / 4);
    }
    __syncthreads();
    const int x_h_37 = lane / 4 % 4;
    float c_v1 = -INFINITY;
    float c_v2 = 0.0f;
    float o0[8][4] = {};
    const u32 *const of0 = (const u32 *)(pool + 0) + lane * 4;
    u32 q0[32];
    #pragma unroll
for (int k = 0; k < 32; k++)
      q0[k] = of0[k / 4 * 128 + k % 4];
    for (int k = 0; k < count; k++) {
      const int free = slot ? slot - 1 : 2;
      if ((k + 2) < count) {
        attend_copy(b0_B0, b1_B3, b2_B1, b3_B2, b4_T1, b5_T2, b6_T3, dims, ring + free * 8192, cell, mine + (k + 2) * 128, last, full + free, map0, map1);
      }
      stage_await(full + slot, lap);
      if (mine + k * 128 + 15 > last) {
        for (int n = (last + 1 - mine - k * 128) * 8 + lane; n < 128; n += 32)
          for (int box = 0; box < 4; box++)
            ((uint4 *)(ring + slot * 8192 + box * 2048))[n] = make_uint4(0, 0, 0, 0);
      }
      __syncwarp();
      const u8 *const stage = ring + slot * 8192;
      if (++slot == 3) slot = 0, lap ^= 1;
      const int from = mine + k * 128;
      const int own0 = from + lane % 4 * 2 + 0;
      const int x_38 = least(own0, last);
      const int own1 = from + lane % 4 * 2 + 1;
      const int x_39 = least(own1, last);
      const int own2 = from + lane % 4 * 2 + 8;
      const int x_40 = least(own2, last);
      const int own3 = from + lane % 4 * 2 + 9;
      const int x_41 = least(own3, last);
      float s42[2][4] = {};
      const u8 * rows43 = stage + 0 + (lane / 16 * 8 + lane % 8) * 128;
      #pragma unroll
      for (int m = 0; m < 8; m++) {
        u32 t[4];
read_tiles(t, rows43 + m / 4 * 2048 + (m % 4 * 2 ^ lane / 8 % 2 ^ lane % 8) * 16);
        multiply_tiles(s42[0], q0[m * 4 + 0], q0[m * 4 + 2], q0[m * 4 + 1], q0[m * 4 + 3], t[0], t[1]);
        multiply_tiles(s42[1], q0[m * 4 + 0], q0[m * 4 + 2], q0[m * 4 + 1], q0[m * 4 + 3], t[2], t[3]);
      }
      const float v44 = above_sum_f32<16>(s42[0][0] + s42[0][2]);
      const float v45 = above_sum_f32<16>(s42[0][1] + s42[0][3]);
      const float v46 = above_sum_f32<16>(s42[1][0] + s42[1][2]);
      const float v47 = above_sum_f32<16>(s42[1][1] + s42[1][3]);
      const int v49 = (int)(x_38 < v48);
      const int v50 = (int)(x_39 < v48);
      const int v51 = (int)(x_40 < v48);
      const int v52 = (int)(x_41 < v48);
      const float v53 = (v44 * 0x1.0000000000000p-2f);
      const float v54 = (v45 * 0x1.0000000000000p-2f);
      const float v55 = (v46 * 0x1.0000000000000p-2f);
      const float v56 = (v47 * 0x1.0000000000000p-2f);
      const float v57 = (v49 ? v53 : -INFINITY);
      const float v58 = (v50 ? v54 : -INFINITY);
      const float v59 = (v51 ? v55 : -INFINITY);
      const float v60 = (v52 ? v56 : -INFINITY);
      const float v61 = across_max_f32<4>(most(most((own0 <= last ? v57 : -INFINITY), (own1 <= last ? v58 : -INFINITY)), most((own2 <= last ? v59 : -INFINITY), (own3 <= last ? v60 : -INFINITY))));
      const float v62 = max_f32(c_v1, v61);
      const float v63 = subni_f32(v57, v62);
      const float v64 = subni_f32(v58, v62);
      const float v65 = subni_f32(v59, v62);
      const float v66 = subni_f32(v60, v62);
      const float v67 = (v63 * 0x1.7154760000000p+0f);
      const float v68 = (v64 * 0x1.7154760000000p+0f);
      const float v69 = (v65 * 0x1.7154760000000p+0f);
      const float v70 = (v66 * 0x1.7154760000000p+0f);
      const float v71 = exp2_f32(v67);
      const float v72 = exp2_f32(v68);
      const float v73 = exp2_f32(v69);
      const float v74 = exp2_f32(v70);
      const float v75 = across_sum_f32<4>(sum_f32(sum_f32((own0 <= last ? v71 : 0.0f), (own1 <= last ? v72 : 0.0f)), sum_f32((own2 <= last ? v73 : 0.0f), (own3 <= last ? v74 : 0.0f))));
      const float v76 = subni_f32(c_v1, v62);
      const float v77 = (v76 * 0x1.7154760000000p+0f);
      const float v78 = exp2_f32(v77);
      const float v79 = (c_v2 * v78);
      const float v80 = (v79 + v75);
      const float v81 = (own0 <= last ? v71 : 0.0f);
      const float v82 = (own1 <= last ? v72 : 0.0f);
      const float v83 = (own2 <= last ? v73 : 0.0f);
      const float v84 = (own3 <= last ? v74 : 0.0f);
      const float f0 = __shfl_sync(FULL_WARP, v78, lane % 4 * 8);
      const float f1 = __shfl_sync(FULL_WARP, v78, lane % 4 * 8 + 4);
      #pragma unroll
      for (int m = 0; m < 8; m++) {
        o0[m][0] = o0[m][0] * f0;
        o0[m][1] = o0[m][1] * f1;
        o0[m][2] = o0[m][2] * f0;
        o0[m][3] = o0[m][3] * f1;
      }
      const u32 w0_0_0 = parts_of(v81, v82, (0 + lane / 4) / 4);
      const u32 w0_0_1 = parts_of(v83, v84, (0 + lane / 4) / 4);
      const u32 w0_1_0 = parts_of(v81, v82, (8 + lane / 4) / 4);
      const u32 w0_1_1 = parts_of(v83, v84, (8 + lane / 4) / 4);
      const u8 * rows85 = stage + 4096 + (lane / 16 * 8 + lane % 8) * 128;
      #pragma unroll
      for (int m = 0; m < 8; m++) {
        u32 t[4];
read_turned(t, rows85 + m / 4 * 2048 + (m % 4 * 2 ^ lane / 8 % 2 ^ lane % 8) * 16);
        multiply_tiles(o0[m], t[0], t[1], t[2], t[3], w0_0_0, w0_0_1);
        multiply_tiles(o0[m], t[0], t[1], t[2], t[3], w0_1_0, w0_1_1);
      }
      c_v1 = v62;
      c_v2 = v80;
      before_copies();
      __syncwarp();
    }
    __syncthreads();
    float *const state = (float *)(pool + 5120) + warp * 520;
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
        const int head86 = item / 64;
        const int x_e_87 = item % 64 * 2;
        const int x_h_88 = head86;
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
            const float *const state = (const float *)(pool + 5120) + (base + k) * 520;
            single0[k] = shared_value(state + 0 + head86);
            single1[k] = shared_value(state + 4 + head86);
            sums0[k] = shared_value((const float2 *)(state + 8 + head86 * 128 + x_e_87));
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
            const float v89 = subni_f32(single0[k], next_v1);
            const float v90 = (v89 * 0x1.7154760000000p+0f);
            const float v91 = exp2_f32(v90);
            const float v92 = (single1[k] * v91);
            all_v2 = sum_f32(all_v2, v92);
            total0[0] = fma_f32(v91, sums0[k].x, total0[0]);
            total0[1] = fma_f32(v91, sums0[k].y, total0[1]);
          }
        }
        if (x_e_87 == 0) {
          *(b4_T1 + x_c_12 * 12 + x_h_88 * 3 + x_ch_10) = all_v1;
          *(b5_T2 + x_c_12 * 12 + x_h_88 * 3 + x_ch_10) = all_v2;
        }
        *(b6_T3 + x_c_12 * 1536 + x_h_88 * 384 + x_e_87 * 3 + x_ch_10) = total0[0];
        *(b6_T3 + x_c_12 * 1536 + x_h_88 * 384 + x_e_87 * 3 + x_ch_10 + 3) = total0[1];
      }
    }
    else {
      const int low = (cell - line.cell) * line.units;
      const int first = line.part_of(low), parts = line.part_of(low + line.units - 1) - first + 1;
      const int number = blockIdx.x - line.part + first;
      const int behind = line.begin_of(first) < low ? 1 : 0;
      float *const left = attend_left + (2 * blockIdx.x + (line.part == first ? behind : 0)) * 520;
      for (int item = threadIdx.x; item < 256; item += 256) {
        const int head93 = item / 64;
        const int x_e_94 = item % 64 * 2;
        const int x_h_95 = head93;
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
            const float *const state = (const float *)(pool + 5120) + (base + k) * 520;
            single0[k] = shared_value(state + 0 + head93);
            single1[k] = shared_value(state + 4 + head93);
            sums0[k] = shared_value((const float2 *)(state + 8 + head93 * 128 + x_e_94));
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
            const float v96 = subni_f32(single0[k], next_v1);
            const float v97 = (v96 * 0x1.7154760000000p+0f);
            const float v98 = exp2_f32(v97);
            const float v99 = (single1[k] * v98);
            all_v2 = sum_f32(all_v2, v99);
            total0[0] = fma_f32(v98, sums0[k].x, total0[0]);
            total0[1] = fma_f32(v98, sums0[k].y, total0[1]);
          }
        }
        if (x_e_94 == 0) {
          left[0 + head93] = all_v1;
          left[4 + head93] = all_v2;
        }
        *(float2 *)(left + 8 + head93 * 128 + x_e_94) = make_float2(total0[0], total0[1]);
      }
      if (comes_last(attend_arrived + number, parts)) {
        const float *const all = attend_left + 2 * number * 520;
        for (int item = threadIdx.x; item < 256; item += 256) {
          const int head100 = item / 64;
          const int x_e_101 = item % 64 * 2;
          const int x_h_102 = head100;
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
                single0[k] = written_by_others(state + 0 + head100);
                single1[k] = written_by_others(state + 4 + head100);
                sums0[k] = written_by_others((const float2 *)(state + 8 + head100 * 128 + x_e_101));
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
              const float v103 = subni_f32(all_v1, next_v1);
              const float v104 = (v103 * 0x1.7154760000000p+0f);
              const float v105 = exp2_f32(v104);
              const float v106 = (all_v2 * v105);
              all_v2 = v106;
              total0[0] = v105 * total0[0];
              total0[1] = v105 * total0[1];
            }
            all_v1 = next_v1;
            #pragma unroll
            for (int k = 0; k < 16; k++) {
              if (base + k < parts) {
                const float v107 = subni_f32(single0[k], next_v1);
                const float v108 = (v107 * 0x1.7154760000000p+0f);
                const float v109 = exp2_f32(v108);
                const float v110 = (single1[k] * v109);
                all_v2 = sum_f32(all_v2, v110);
                total0[0] = fma_f32(v109, sums0[k].x, total0[0]);
                total0[1] = fma_f32(v109, sums0[k].y, total0[1]);
              }
            }
          }
          if (x_e_101 == 0) {
            *(b4_T1 + x_c_12 * 12 + x_h_102 * 3 + x_ch_10) = all_v1;
            *(b5_T2 + x_c_12 * 12 + x_h_102 * 3 + x_ch_10) = all_v2;
          }
          *(b6_T3 + x_c_12 * 1536 + x_h_102 * 384 + x_e_101 * 3 + x_ch_10) = total0[0];
          *(b6_T3 + x_c_12 * 1536 + x_h_102 * 384 + x_e_101 * 3 + x_ch_10 + 3) = total0[1];
        }
      }
    }
    at += ended - begun;
    if (at < line.end) {
      before_copies();
      __syncthreads();
    }
  }
}
extern "C" __global__ void __launch_bounds__(256, 1) attend(const float *__restrict__ b0_B0, const float *__restrict__ b1_B3, const u16 *__restrict__ b2_B1, const u16 *__restrict__ b3_B2, float *__restrict__ b4_T1, float *__restrict__ b5_T2, float *__restrict__ b6_T3, const i64 *__restrict__ dims, u32 constant, int since, const __grid_constant__ TensorMap map0, const __grid_constant__ TensorMap map1) {
  extern __shared__ __align__(1024) u8 pool[];
  let_next_start();
  if (threadIdx.x % 32 == 0)
    for (int k = 0; k < 3; k++) stage_open((u64 *)(pool + 4096) + threadIdx.x / 32 * 3 + k, 1);
  before_copies();
  __syncwarp();
  const Share line = attend_line(b0_B0, b1_B3, b2_B1, b3_B2, b4_T1, b5_T2, b6_T3, dims);
  const int unchanged = (constant & 12) == 12 ? INT32_MAX : since < 0 ? 0 : (int)dims[since];
  const bool ahead =
      line.begin < line.end && attend_ahead(b0_B0, b1_B3, b2_B1, b3_B2, b4_T1, b5_T2, b6_T3, dims, pool, line, unchanged, map0, map1);
  wait_for_previous();
  attend_walk(settled(b0_B0), settled(b1_B3), settled(b2_B1), settled(b3_B2), settled(b4_T1), settled(b5_T2), settled(b6_T3), dims, pool, line, ahead, map0, map1);
}
