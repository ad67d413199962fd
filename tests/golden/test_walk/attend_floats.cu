__device__ float attend_left[528 * 260];
__device__ u32 attend_arrived[264];
INLINE void attend_copy(const float *__restrict__ b0_B0, const float *__restrict__ b1_B3, const float *__restrict__ b2_B1, const float *__restrict__ b3_B2, float *__restrict__ b4_T3, const i64 *__restrict__ dims, u8 *to, int cell, int from, int last) {
  const i64 d_past = dims[0];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int x_c_1 = cell;
  if (from + 15 <= last) {
    {
      const int x_g_2 = lane % 32 * 4;
      const int row3 = from + lane / 32;
      const auto *const first = b2_B1 + x_c_1 * 81920 + row3 * 128 + x_g_2;
      u8 *const at = to + 0 + lane / 32 * 528 + lane % 32 * 16;
      #pragma unroll
for (int j = 0; j < 16; j++)
        copy_piece(at + j * 528, first + j * 128, 16);
    }
    {
      const int x_e_4 = lane % 32 * 4;
      const int row5 = from + lane / 32;
      const auto *const first = b3_B2 + x_c_1 * 81920 + row5 * 128 + x_e_4;
      u8 *const at = to + 8448 + lane / 32 * 528 + lane % 32 * 16;
      #pragma unroll
for (int j = 0; j < 16; j++)
        copy_piece(at + j * 528, first + j * 128, 16);
    }
  }
  else {
    #pragma unroll 1
    for (int j = 0; j < 16; j++) {
      const int place = j * 1 + lane / 32;
      const int x_g_6 = lane % 32 * 4;
      const int row7 = least(from + place, last);
      copy_piece(to + 0 + place * 528 + lane % 32 * 16, b2_B1 + x_c_1 * 81920 + row7 * 128 + x_g_6, from + place <= last ? 16 : 0);
    }
    #pragma unroll 1
    for (int j = 0; j < 16; j++) {
      const int place = j * 1 + lane / 32;
      const int x_e_8 = lane % 32 * 4;
      const int row9 = least(from + place, last);
      copy_piece(to + 8448 + place * 528 + lane % 32 * 16, b3_B2 + x_c_1 * 81920 + row9 * 128 + x_e_8, from + place <= last ? 16 : 0);
    }
  }
  (void)warp;
}
INLINE Share attend_line(const float *__restrict__ b0_B0, const float *__restrict__ b1_B3, const float *__restrict__ b2_B1, const float *__restrict__ b3_B2, float *__restrict__ b4_T3, const i64 *__restrict__ dims) {
  const i64 d_past = dims[0];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  Share line = {};
  line.units = ((int)(d_past + 1) + 63) / 64;
  line.units = most(line.units, 1);
  const int cells = 2, blocks = least(gridDim.x, 264);
  line.deal(cells, blocks, 2);
  (void)warp, (void)lane;
  return line;
}
INLINE bool attend_ahead(const float *__restrict__ b0_B0, const float *__restrict__ b1_B3, const float *__restrict__ b2_B1, const float *__restrict__ b3_B2, float *__restrict__ b4_T3, const i64 *__restrict__ dims, u8 *pool, const Share &line, int unchanged) {
  const i64 d_past = dims[0];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int at = line.begin;
  const int cell = line.cell + at / line.units, begun = at % line.units;
  const int ended = least(begun + line.end - at, line.units);
  const int x_c_10 = cell;
  const int start = 0 + (line.first + begun) * 64;
  const int stop = least((int)(d_past + 1), 0 + (line.first + ended) * 64);
  const int mine = start + warp * 16, last = stop - 1;
  const int count = mine < stop ? (stop - mine + 63) / 64 : 0;
  if (least(stop, start + 128) > unchanged) return false;
  u8 *const ring = pool + 1024 + warp * 50688;
  #pragma unroll
  for (int k = 0; k < 2; k++) {
    if (k < count) {
      attend_copy(b0_B0, b1_B3, b2_B1, b3_B2, b4_T3, dims, ring + k * 16896, cell, mine + k * 64, last);
    }
    close_lot();
  }
  (void)lane;
  return true;
}
INLINE void attend_walk(const float *__restrict__ b0_B0, const float *__restrict__ b1_B3, const float *__restrict__ b2_B1, const float *__restrict__ b3_B2, float *__restrict__ b4_T3, const i64 *__restrict__ dims, u8 *pool, const Share &line, bool ahead) {
  const i64 d_past = dims[0];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  u8 *const ring = pool + 1024 + warp * 50688;
  const int v29 = add_i32((int)d_past, 1);
  for (int at = line.begin; at < line.end; ) {
    const int cell = line.cell + at / line.units, begun = at % line.units;
    const int ended = least(begun + line.end - at, line.units);
    const int x_c_11 = cell;
    const int start = 0 + (line.first + begun) * 64;
    const int stop = least((int)(d_past + 1), 0 + (line.first + ended) * 64);
    const int mine = start + warp * 16, last = stop - 1;
    const int count = mine < stop ? (stop - mine + 63) / 64 : 0;
    if (!ahead) {
      #pragma unroll
      for (int k = 0; k < 2; k++) {
        if (k < count) {
          attend_copy(b0_B0, b1_B3, b2_B1, b3_B2, b4_T3, dims, ring + k * 16896, cell, mine + k * 64, last);
        }
        close_lot();
      }
    }
    ahead = false;
    for (int n = threadIdx.x; n < 256; n += 128) {
      const int head = n / 128, place = n % 128;
      const int x_h_12 = head;
      const float v13 = *(b0_B0 + x_c_11 * 256 + x_h_12 * 128 + place);
      const float v14 = *(b1_B3 + place);
      const float v15 = (v13 * v14);
      ((float *)pool)[0 + n] = v15;
    }
    __syncthreads();
    const int x_h_16 = lane % 2;
    float c_v1 = -INFINITY;
    float c_v2 = 0.0f;
    float o0[8] = {};
    float q0[8];
    #pragma unroll
    for (int h = 0; h < 2; h++) {
      #pragma unroll
      for (int k = 0; k < 4; k++) {
        q0[h * 4 + k] = ((const float *)pool)[0 + h * 128 + lane % 32 * 4 + k];
      }
    }
    int slot = 0;
    for (int k = 0; k < count; k++) {
      const int free = slot ? slot - 1 : 2;
      if ((k + 2) < count) {
        attend_copy(b0_B0, b1_B3, b2_B1, b3_B2, b4_T3, dims, ring + free * 16896, cell, mine + (k + 2) * 64, last);
      }
      close_lot();
      await_lots<2>();
      const u8 *const stage = ring + slot * 16896;
      slot = slot == 2 ? 0 : slot + 1;
      const int from = mine + k * 64;
      const int own = from + lane % 32 / 2 * 1 + lane / 32;
      const bool within = own <= last;
      const int x_17 = least(own, last);
      float p18[32] = {};
      #pragma unroll
      for (int j = 0; j < 16; j++) {
        const int place = j * 1 + lane / 32;
        const auto w19 = wide_load((const uint4 *)(stage + 0 + place * 528 + (lane % 32 * 4 + 0) * 4));
        const float v20 = __uint_as_float(w19.w[0]);
        const float v21 = __uint_as_float(w19.w[1]);
        const float v22 = __uint_as_float(w19.w[2]);
        const float v23 = __uint_as_float(w19.w[3]);
        const float v24 = v20;
        const float v25 = v21;
        const float v26 = v22;
        const float v27 = v23;
        #pragma unroll
        for (int h = 0; h < 2; h++) {
          float a = 0.0f;
          a = fma_f32(q0[h * 4 + 0], v24, a);
          a = fma_f32(q0[h * 4 + 1], v25, a);
          a = fma_f32(q0[h * 4 + 2], v26, a);
          a = fma_f32(q0[h * 4 + 3], v27, a);
          p18[j * 2 + h] = a;
        }
      }
      const float v28 = spread_sums<32, 32>(p18);
      const int v30 = (int)(x_17 < v29);
      const float v31 = (v28 * 0x1.0000000000000p-2f);
      const float v32 = (v30 ? v31 : -INFINITY);
      const float v33 = above_max_f32<2>(within ? v32 : -INFINITY);
      const float v34 = max_f32(c_v1, v33);
      const float v35 = subni_f32(v32, v34);
      const float v36 = (v35 * 0x1.7154760000000p+0f);
      const float v37 = exp2_f32(v36);
      const float v38 = above_sum_f32<2>(within ? v37 : 0.0f);
      const float v39 = subni_f32(c_v1, v34);
      const float v40 = (v39 * 0x1.7154760000000p+0f);
      const float v41 = exp2_f32(v40);
      const float v42 = (c_v2 * v41);
      const float v43 = (v42 + v38);
      const float v44 = within ? v37 : 0.0f;
      #pragma unroll
      for (int h = 0; h < 2; h++) {
        const float f = __shfl_sync(FULL_WARP, v41, h);
        #pragma unroll
        for (int k = 0; k < 4; k++) {
          o0[h * 4 + k] = o0[h * 4 + k] * f;
        }
      }
      #pragma unroll
      for (int j = 0; j < 16; j++) {
        const int place = j * 1 + lane / 32;
        const auto w45 = wide_load((const uint4 *)(stage + 8448 + place * 528 + (lane % 32 * 4 + 0) * 4));
        const float v46 = __uint_as_float(w45.w[0]);
        const float v47 = __uint_as_float(w45.w[1]);
        const float v48 = __uint_as_float(w45.w[2]);
        const float v49 = __uint_as_float(w45.w[3]);
        const float v50 = v46;
        const float v51 = v47;
        const float v52 = v48;
        const float v53 = v49;
        const int owner54 = place * 2;
        #pragma unroll
        for (int h = 0; h < 2; h++) {
          const float p = __shfl_sync(FULL_WARP, v44, owner54 + h);
          o0[h * 4 + 0] = fma_f32(p, v50, o0[h * 4 + 0]);
          o0[h * 4 + 1] = fma_f32(p, v51, o0[h * 4 + 1]);
          o0[h * 4 + 2] = fma_f32(p, v52, o0[h * 4 + 2]);
          o0[h * 4 + 3] = fma_f32(p, v53, o0[h * 4 + 3]);
        }
      }
      c_v1 = v34;
      c_v2 = v43;
      if (k % 16 == 15 && k < (stop - start) / 64) __syncthreads();
      else __syncwarp();
    }
    await_lots<0>();
    __syncthreads();
    float *const state = (float *)(pool + 1024) + warp * 260;
    if (lane < 2) {
      state[0 + lane % 2] = c_v1;
      state[2 + lane % 2] = c_v2;
    }
    #pragma unroll
for (int k = 0; k < 8; k++)
      o0[k] = above_sum_f32<32>(o0[k]);
    float *const to0 = state + 4 + lane * 4;
    if (lane < 32) {
      #pragma unroll
      for (int k = 0; k < 8; k++) {
        to0[k / 4 * 128 + k % 4] = o0[k];
      }
    }
    __syncthreads();
    if (ended - begun == line.units) {
      for (int item = threadIdx.x; item < 128; item += 128) {
        const int head55 = item / 64;
        const int x_e_56 = item % 64 * 2;
        const int x_h_57 = head55;
        float all_v1 = -INFINITY;
        float all_v2 = 0.0f;
        float total0[2] = {};
        const int base = 0;
        float single0[4];
        float single1[4];
        float2 sums0[4];
        #pragma unroll
        for (int k = 0; k < 4; k++) {
          {
            const float *const state = (const float *)(pool + 1024) + (base + k) * 260;
            single0[k] = shared_value(state + 0 + head55);
            single1[k] = shared_value(state + 2 + head55);
            sums0[k] = shared_value((const float2 *)(state + 4 + head55 * 128 + x_e_56));
          }
        }
        float next_v1 = all_v1;
        #pragma unroll
        for (int k = 0; k < 4; k++) {
          {
            next_v1 = most(next_v1, single0[k]);
          }
        }
        all_v1 = next_v1;
        #pragma unroll
        for (int k = 0; k < 4; k++) {
          {
            const float v58 = subni_f32(single0[k], next_v1);
            const float v59 = (v58 * 0x1.7154760000000p+0f);
            const float v60 = exp2_f32(v59);
            const float v61 = (single1[k] * v60);
            all_v2 = sum_f32(all_v2, v61);
            total0[0] = fma_f32(v60, sums0[k].x, total0[0]);
            total0[1] = fma_f32(v60, sums0[k].y, total0[1]);
          }
        }
        const float v62 = recip_f32(all_v2);
        const float v63 = (total0[0] * v62);
        const float v64 = (total0[1] * v62);
        wide_store((uint2 *)(b4_T3 + x_c_11 * 256 + x_h_57 * 128 + x_e_56), __float_as_uint(v63), __float_as_uint(v64));
      }
    }
    else {
      const int low = (cell - line.cell) * line.units;
      const int first = line.part_of(low), parts = line.part_of(low + line.units - 1) - first + 1;
      const int number = blockIdx.x - line.part + first;
      const int behind = line.begin_of(first) < low ? 1 : 0;
      float *const left = attend_left + (2 * blockIdx.x + (line.part == first ? behind : 0)) * 260;
      for (int item = threadIdx.x; item < 128; item += 128) {
        const int head65 = item / 64;
        const int x_e_66 = item % 64 * 2;
        const int x_h_67 = head65;
        float all_v1 = -INFINITY;
        float all_v2 = 0.0f;
        float total0[2] = {};
        const int base = 0;
        float single0[4];
        float single1[4];
        float2 sums0[4];
        #pragma unroll
        for (int k = 0; k < 4; k++) {
          {
            const float *const state = (const float *)(pool + 1024) + (base + k) * 260;
            single0[k] = shared_value(state + 0 + head65);
            single1[k] = shared_value(state + 2 + head65);
            sums0[k] = shared_value((const float2 *)(state + 4 + head65 * 128 + x_e_66));
          }
        }
        float next_v1 = all_v1;
        #pragma unroll
        for (int k = 0; k < 4; k++) {
          {
            next_v1 = most(next_v1, single0[k]);
          }
        }
        all_v1 = next_v1;
        #pragma unroll
        for (int k = 0; k < 4; k++) {
          {
            const float v68 = subni_f32(single0[k], next_v1);
            const float v69 = (v68 * 0x1.7154760000000p+0f);
            const float v70 = exp2_f32(v69);
            const float v71 = (single1[k] * v70);
            all_v2 = sum_f32(all_v2, v71);
            total0[0] = fma_f32(v70, sums0[k].x, total0[0]);
            total0[1] = fma_f32(v70, sums0[k].y, total0[1]);
          }
        }
        if (x_e_66 == 0) {
          left[0 + head65] = all_v1;
          left[2 + head65] = all_v2;
        }
        *(float2 *)(left + 4 + head65 * 128 + x_e_66) = make_float2(total0[0], total0[1]);
      }
      if (comes_last(attend_arrived + number, parts)) {
        const float *const all = attend_left + 2 * number * 260;
        for (int item = threadIdx.x; item < 128; item += 128) {
          const int head72 = item / 64;
          const int x_e_73 = item % 64 * 2;
          const int x_h_74 = head72;
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
                const float *const state = all + (base + k) * 520 + (base + k ? 0 : behind * 260);
                single0[k] = written_by_others(state + 0 + head72);
                single1[k] = written_by_others(state + 2 + head72);
                sums0[k] = written_by_others((const float2 *)(state + 4 + head72 * 128 + x_e_73));
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
              const float v75 = subni_f32(all_v1, next_v1);
              const float v76 = (v75 * 0x1.7154760000000p+0f);
              const float v77 = exp2_f32(v76);
              const float v78 = (all_v2 * v77);
              all_v2 = v78;
              total0[0] = v77 * total0[0];
              total0[1] = v77 * total0[1];
            }
            all_v1 = next_v1;
            #pragma unroll
            for (int k = 0; k < 16; k++) {
              if (base + k < parts) {
                const float v79 = subni_f32(single0[k], next_v1);
                const float v80 = (v79 * 0x1.7154760000000p+0f);
                const float v81 = exp2_f32(v80);
                const float v82 = (single1[k] * v81);
                all_v2 = sum_f32(all_v2, v82);
                total0[0] = fma_f32(v81, sums0[k].x, total0[0]);
                total0[1] = fma_f32(v81, sums0[k].y, total0[1]);
              }
            }
          }
          const float v83 = recip_f32(all_v2);
          const float v84 = (total0[0] * v83);
          const float v85 = (total0[1] * v83);
          wide_store((uint2 *)(b4_T3 + x_c_11 * 256 + x_h_74 * 128 + x_e_73), __float_as_uint(v84), __float_as_uint(v85));
        }
      }
    }
    at += ended - begun;
    if (at < line.end) __syncthreads();
  }
}
extern "C" __global__ void __launch_bounds__(128, 1) attend(const float *__restrict__ b0_B0, const float *__restrict__ b1_B3, const float *__restrict__ b2_B1, const float *__restrict__ b3_B2, float *__restrict__ b4_T3, const i64 *__restrict__ dims, u32 constant, int since) {
  extern __shared__ __align__(16) u8 pool[];
  let_next_start();
  const Share line = attend_line(b0_B0, b1_B3, b2_B1, b3_B2, b4_T3, dims);
  const int unchanged = (constant & 12) == 12 ? INT32_MAX : since < 0 ? 0 : (int)dims[since];
  const bool ahead = line.begin < line.end && attend_ahead(b0_B0, b1_B3, b2_B1, b3_B2, b4_T3, dims, pool, line, unchanged);
  wait_for_previous();
  attend_walk(settled(b0_B0), settled(b1_B3), settled(b2_B1), settled(b3_B2), settled(b4_T3), dims, pool, line, ahead);
}
