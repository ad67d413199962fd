(region "test"
  (buffers "x" "y" "%6" "u" "%10" "z" "%12")
  (axes [a 3] [b 5] [c 5])
  (accesses
    [r0 (B0 [c] [5] bf16)]
    [r1 (B1 [c] [5] bf16)]
    [r2 (B3 [b] [5] u8)]
    [r3 (B5 [a 0] [3 2] u8)]
    [r4 (B5 [a 1] [3 2] u8)])
  (let
    [%0 (cast.f32 r0)]
    [%1 (add (cast.i32 r3) (mul (cast.i32 r4) 256.0))]
    [%2 (bitand %1 32767.0)]
    [%3 (mul %2 8192.0)])
  (stores
    [(B2 [c] [5] bf16) (cast.bf16 (sub (cast.f32 (cast.bf16 (mul %0 (cast.f32 r1)))) %0))]
    [(B4 [b] [5] u8) (cast.u8 (add (cast.i32 r2) 7.0))]
    [(B6 [a] [3] f16) (cast.f16 (bits.f32 (add (bits.i32 (select (lt %2 31744.0) (select (lt %2 1024.0) (mul (cast.f32 %2) 5.960464477539063e-08) (bits.f32 (add %3 939524096.0))) (bits.f32 (add %3 1879048192.0)))) (mul (bitand %1 32768.0) 65536.0))))])
  (notes))
