(region "model/layer.0"
  (buffers "x" "a weight.key" "%12")
  (axes [a 3] [b (+ seq 1)] [seq seq])
  (accesses
    [r0 (B0 [b a] [9 3] f32)]
    [g (B1 [(data 0)] [5] i32)])
  (let
    [%0 (exp2 r0)]
    [%1 (add (add (add (add (add (add (add (add (add (add (add (mul %0 %0) 0.0) 1.0) 2.0) 3.0) 4.0) 5.0) 6.0) 7.0) 8.0) 9.0) 10.0)]
    [%2 (add (add (add (add (add (add (add (add (add (add (add (add %1 11.0) 12.0) 13.0) 14.0) 15.0) 16.0) 17.0) 18.0) 19.0) 20.0) 21.0) 22.0)])
  (stores
    [(B0 [b a] [9 3] f32) (add (add (add (add (add (add (add %2 23.0) 24.0) 25.0) 26.0) 27.0) 28.0) 29.0)]
    [(B0 [b a] [9 3] f32) (sum [a] %0)])
  (notes
    ["cut" "%3" "heavy, \"quoted\""]))
