(region "test"
  (buffers "x" "g" "q" "k" "v" "%77")
  (axes [a seq] [b 8] [c seq] [d 16] [e 8])
  (accesses
    [r0 (B0 [a d] [seq 16] f32)]
    [r1 (B1 [d] [16] f32)]
    [r2 (B2 [e d] [8 16] f32)]
    [r3 (B0 [c d] [seq 16] f32)]
    [r4 (B3 [e d] [8 16] f32)]
    [r5 (B4 [b d] [8 16] f32)])
  (let
    [%0 (mul (mul r3 (recip (sqrt (add (mul (sum [d] (mul r3 r3)) 0.0625) 1e-06)))) r1)]
    [%1 (sum [e] (mul (sum [d] (mul (mul (mul r0 (recip (sqrt (add (mul (sum [d] (mul r0 r0)) 0.0625) 1e-06)))) r1) r2)) (sum [d] (mul %0 r4))))]
    [%2 (select (lt (position c) (add (position a) 1.0)) (mul %1 0.35) -inf)]
    [%3 (exp2 (mul (sub %2 (max [c] %2)) 1.4426950408889634))])
  (stores
    [(B5 [a b] [seq 8] f32) (sum [c] (mul (mul %3 (recip (sum [c] %3))) (sum [d] (mul %0 r5))))])
  (notes
    ["duplicate" "%2" "2 roles [c d] | [a d]"]
    ["duplicate" "%3" "2 roles [c] | [a]"]
    ["duplicate" "%7" "2 roles [c 0] | [a 0]"]
    ["duplicate" "%10" "2 roles [c 0] | [a 0]"]
    ["duplicate" "%11" "2 roles [c 0] | [a 0]"]
    ["duplicate" "%12" "2 roles [c 0] | [a 0]"]
    ["duplicate" "%14" "2 roles [c d] | [a d]"]
    ["duplicate" "%16" "2 roles [c d] | [a d]"]))
