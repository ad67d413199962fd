(region "layers.0"
  (buffers "%5" "layers.0.attn_norm" "layers.0.wk" "layers.0.k_norm" "%131" "%29" "%30" "layers.0.k" "layers.0.wv" "layers.0.v" "layers.0.wq" "layers.0.q_norm" "%97" "layers.0.wo" "layers.0.post_attn_norm" "layers.0.ffn_norm" "layers.0.gate" "layers.0.up" "layers.0.down" "layers.0.post_ffn_norm" "%293")
  (axes [a 2] [b seq] [c 32] [d 48] [e 2] [f 2] [g 8] [h (+ past seq)] [i 8])
  (accesses
    [r0 (B0 [a b c] [2 seq 32] f32)]
    [r1 (B1 [c] [32] f32)]
    [r2 (B2 [(+ (* 8 e) i) c] [16 32] f32)]
    [r3 (B3 [i] [8] f32)]
    [r4 (B4 [a b e i] [2 seq 2 8] f32)]
    [r5 (B5 [b i] [seq 8] f32)]
    [r6 (B4 [a b e (+ i 4)] [2 seq 2 8] f32 :clamp)]
    [r7 (B4 [a b e (+ i -4)] [2 seq 2 8] f32 :clamp)]
    [r8 (B6 [b i] [seq 8] f32)]
    [r9 (B8 [(+ (* 8 e) g) c] [16 32] f32)]
    [r10 (B10 [(+ (* 16 e) (* 8 f) i) c] [32 32] f32)]
    [r11 (B11 [i] [8] f32)]
    [r12 (B12 [a b (+ (* 2 e) f) i] [2 seq 4 8] f32)]
    [r13 (B12 [a b (+ (* 2 e) f) (+ i 4)] [2 seq 4 8] f32 :clamp)]
    [r14 (B12 [a b (+ (* 2 e) f) (+ i -4)] [2 seq 4 8] f32 :clamp)]
    [r15 (B7 [a e h i] [2 2 24 8] f32)]
    [r16 (B9 [a e h g] [2 2 24 8] f32)]
    [r17 (B13 [c (+ (* 16 e) (* 8 f) g)] [32 32] f32)]
    [r18 (B14 [c] [32] f32)]
    [r19 (B15 [c] [32] f32)]
    [r20 (B16 [d c] [48 32] f32)]
    [r21 (B17 [d c] [48 32] f32)]
    [r22 (B18 [c d] [32 48] f32)]
    [r23 (B19 [c] [32] f32)])
  (let
    [%0 (mul (mul r0 (recip (sqrt (add (mul (sum [c] (mul r0 r0)) 0.03125) 1e-06)))) (add r1 1.0))]
    [%1 (sum [c] (mul %0 r2))]
    [%2 (lt (position i) 4.0)]
    [%3 (sum [c] (mul %0 r10))]
    [%4 (add (position b) $past)]
    [%5 (select (and (lt (position h) (add %4 1.0)) (lt %4 (add (position h) 5.0))) (mul (sum [i] (mul (add (mul r12 r5) (mul (select %2 (mul r13 -1.0) r14) r8)) r15)) 0.3535533905932738) -inf)]
    [%6 (exp2 (mul (sub %5 (max [h] %5)) 1.4426950408889634))]
    [%7 (sum [e f g] (mul (sum [h] (mul (mul %6 (recip (sum [h] %6))) r16)) r17))]
    [%8 (add r0 (mul (mul %7 (recip (sqrt (add (mul (sum [c] (mul %7 %7)) 0.03125) 1e-06)))) (add r18 1.0)))]
    [%9 (mul (mul %8 (recip (sqrt (add (mul (sum [c] (mul %8 %8)) 0.03125) 1e-06)))) (add r19 1.0))]
    [%10 (sum [c] (mul %9 r20))]
    [%11 (mul (mul (mul %10 (recip (add (exp2 (mul (mul (add %10 (mul (mul (mul %10 %10) %10) 0.044715)) 0.7978845608028654) -2.8853900817779268)) 1.0))) (sum [c] (mul %9 r21))) r22)]
    [%12 (sum [d] %11)])
  (stores
    [(B4 [a b e i] [2 seq 2 8] f32) (mul (mul %1 (recip (sqrt (add (mul (sum [i] (mul %1 %1)) 0.125) 1e-06)))) (add r3 1.0))]
    [(B7 [a e (+ b (dim past)) i] [2 2 24 8] f32) (add (mul r4 r5) (mul (select %2 (mul r6 -1.0) r7) r8))]
    [(B9 [a e (+ b (dim past)) g] [2 2 24 8] f32) (sum [c] (mul %0 r9))]
    [(B12 [a b (+ (* 2 e) f) i] [2 seq 4 8] f32) (mul (mul %3 (recip (sqrt (add (mul (sum [i] (mul %3 %3)) 0.125) 1e-06)))) (add r11 1.0))]
    [(B20 [a b c] [2 seq 32] f32) (add %8 (mul (mul %12 (recip (sqrt (add (mul (sum [c] (mul %12 %12)) 0.03125) 1e-06)))) (add r23 1.0)))])
  (notes
    ["cut" "%131" "heavy, 3 roles [a b e (+ i -4)] | [a b e (+ i 4)] | [a b e i]"]
    ["cut" "%97" "heavy, 3 roles [a b (+ (* 2 e) f) (+ i -4)] | [a b (+ (* 2 e) f) (+ i 4)] | [a b (+ (* 2 e) f) i]"]))
