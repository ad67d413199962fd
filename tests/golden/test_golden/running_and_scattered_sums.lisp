(region "test"
  (buffers "x" "%1" "i" "u" "%4")
  (axes [a 4] [b 6] [c 5] [d 6])
  (accesses
    [r0 (B0 [a d] [4 6] f32)]
    [r1 (B0 [a b] [4 6] f32)]
    [r2 (B2 [c] [5] i32)]
    [r3 (B3 [a c] [4 5] f32)])
  (let)
  (stores
    [(B1 [a b] [4 6] f32) (sum [d] (select (le (position d) (position b)) r0 0.0))]
    [(B4 [a b] [4 6] f32) (add r1 (sum [c] (select (eq r2 (position b)) r3 0.0)))])
  (notes))
