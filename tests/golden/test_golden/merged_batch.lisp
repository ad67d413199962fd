(region "test"
  (buffers "x" "%1" "w" "%9" "%10")
  (axes [a 2] [b seq] [c 4] [d (* 2 seq)] [e 6] [f 2] [g seq])
  (accesses
    [r0 (B0 [f g e] [2 seq 6] f32)]
    [r1 (B1 [d e] [(* 2 seq) 6] f32)]
    [r2 (B2 [c e] [4 6] f32)]
    [r3 (B3 [a b c] [2 seq 4] f32)])
  (let)
  (stores
    [(B1 [f g e] [2 seq 6] f32) (exp2 r0)]
    [(B3 [d c] [(* 2 seq) 4] f32) (sum [e] (mul r1 r2))]
    [(B4 [a b c] [2 seq 4] f32) r3])
  (notes
    ["reshape" "%2" "[2 seq 6] and [(* 2 seq) 6] share no axes"]
    ["reshape" "%10" "[(* 2 seq) 4] and [2 seq 4] share no axes"]
    ["cut" "%1" "reshaped in memory to f32 [(* 2 seq) 6]"]
    ["cut" "%9" "reshaped in memory to f32 [2 seq 4]"]))
