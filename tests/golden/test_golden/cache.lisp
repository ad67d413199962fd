(region "test"
  (buffers "x" "w" "kc" "q" "%15")
  (axes [a (+ past seq)] [b 4] [c seq] [d 8])
  (accesses
    [r0 (B0 [c d] [seq 8] f32)]
    [r1 (B1 [b d] [4 8] f32)]
    [r2 (B3 [b] [4] f32)]
    [r3 (B2 [a b] [20 4] f32)])
  (let)
  (stores
    [(B2 [(+ c (dim past)) b] [20 4] f32) (sum [d] (mul r0 r1))]
    [(B4 [a] [(+ past seq)] f32) (sum [b] (mul r2 r3))])
  (notes))
