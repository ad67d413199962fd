(region "test"
  (buffers "x" "w" "%12")
  (axes [a 2] [b 9] [c 9] [d 4] [e 3] [f 3] [g 3])
  (accesses
    [r0 (B0 [a (+ b e -1) (+ c f -1) g] [2 9 9 3] f32 :clamp)]
    [r1 (B1 [d e f g] [4 3 3 3] f32)])
  (let
    [%0 (add (position b) (position e))]
    [%1 (add (position c) (position f))])
  (stores
    [(B2 [a b c d] [2 9 9 4] f32) (sum [e f g] (mul (select (and (and (and (lt 0.0 %0) (lt %0 10.0)) (lt 0.0 %1)) (lt %1 10.0)) r0 0.0) r1))])
  (notes))
