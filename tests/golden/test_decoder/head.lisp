(region "head"
  (buffers "%496" "norm" "embed" "%515")
  (axes [a 2] [b seq] [c 97] [d 32])
  (accesses
    [r0 (B0 [a b d] [2 seq 32] f32)]
    [r1 (B1 [d] [32] f32)]
    [r2 (B2 [c d] [97 32] f32)])
  (let)
  (stores
    [(B3 [a b c] [2 seq 97] f32) (sum [d] (mul (mul (mul r0 (recip (sqrt (add (mul (sum [d] (mul r0 r0)) 0.03125) 1e-06)))) (add r1 1.0)) r2))])
  (notes))
