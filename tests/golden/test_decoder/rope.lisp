(region "rope"
  (buffers "%29" "%30" "%39" "%40")
  (axes [a seq] [b 8])
  (accesses)
  (let
    [%0 (cast.f32 (add (position a) $past))]
    [%1 (cast.f32 (mod (position b) 4.0))]
    [%2 (mul %0 (exp2 (mul %1 -3.321928094887362)))]
    [%3 (mul %0 (exp2 (mul %1 -4.9828921423310435)))])
  (stores
    [(B0 [a b] [seq 8] f32) (sin (add %2 1.5707963267948966))]
    [(B1 [a b] [seq 8] f32) (sin %2)]
    [(B2 [a b] [seq 8] f32) (sin (add %3 1.5707963267948966))]
    [(B3 [a b] [seq 8] f32) (sin %3)])
  (notes))
