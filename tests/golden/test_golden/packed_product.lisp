(region "test"
  (buffers "x" "d" "sc" "qs" "dm" "%74")
  (axes [a 8] [b 2] [c 4] [d 2] [e 32])
  (accesses
    [r0 (B0 [0 (+ (* 256 b) (* 64 c) (* 32 d) e)] [1 512] f32)]
    [r1 (B1 [a b] [8 2] f16)]
    [r2 (B2 [a b (+ (* 2 c) d)] [8 2 12] u8)]
    [r3 (B2 [a b (+ (* 2 c) d 4)] [8 2 12] u8)]
    [r4 (B2 [a b (+ (* 2 c) d -4)] [8 2 12] u8 :clamp)]
    [r5 (B3 [a b (+ (* 32 c) e)] [8 2 128] u8)]
    [r6 (B4 [a b] [8 2] f16)])
  (let
    [%0 (lt (add (mul (position c) 2.0) (position d)) 4.0)]
    [%1 (cast.i32 r2)]
    [%2 (cast.i32 r3)]
    [%3 (cast.i32 r5)])
  (stores
    [(B5 [0 a] [1 8] f32) (sum [b c d e] (mul r0 (sub (mul (mul (cast.f32 r1) (cast.f32 (select %0 (mod %1 64.0) (add (mod %2 16.0) (mul (div (cast.i32 r4) 64.0) 16.0))))) (cast.f32 (select (lt (position d) 1.0) (mod %3 16.0) (div %3 16.0)))) (mul (cast.f32 r6) (cast.f32 (select %0 (mod %2 64.0) (add (div %2 16.0) (mul (div %1 64.0) 16.0))))))))])
  (notes
    ["duplicate" "%2" "3 roles [a b (+ (* 2 c) d)] | [a b (+ (* 2 c) d 4)] | [a b (+ (* 2 c) d -4)]"]))
