/* Floats of one byte (see lumi/dtype.py), in C and CUDA alike.
 *
 * The file around it defines INLINE, uint8_t, uint32_t, and bits_of and float_of, which read a float as
 * its bits and the other way round.
 */
#define power_of(n) float_of((uint32_t)((n) + 127) << 23)

/* FRACTION bits of fraction, BIAS of the exponent, codes of what is ABOVE and of NaN. */
#define E4M3(MACRO) MACRO(f8e4m3, 3, 7, 0x7f, 0x7f)
#define E5M2(MACRO) MACRO(f8e5m2, 2, 15, 0x7c, 0x7e)

/* Codes, as if of a f32, times a power of two are the values, subnormal ones too. */
#define FROM_BYTE(name, FRACTION, BIAS, ABOVE, NAN_CODE)                                          \
  INLINE float from_##name(uint8_t raw) {                                                         \
    uint32_t low = raw & 127, bits = bits_of(float_of(low << (23 - FRACTION)) * power_of(127 - BIAS)); \
    if (low >= ABOVE) bits = low == ABOVE && ABOVE != NAN_CODE ? 0x7f800000 : 0x7fc00000;         \
    return float_of(bits | (uint32_t)(raw & 128) << 24);                                          \
  }

/* To nearest even; below the least normal 1.5 · 2²³ spacings are added, so that the sum rounds. */
#define TO_BYTE(name, FRACTION, BIAS, ABOVE, NAN_CODE)                                            \
  INLINE uint8_t to_##name(float x) {                                                             \
    uint32_t bits = bits_of(x) & 0x7fffffff, code;                                                \
    if (bits > 0x7f800000) return NAN_CODE;                                                       \
    if (bits < (uint32_t)(128 - BIAS) << 23)                                                      \
      code = bits_of(float_of(bits) * power_of(BIAS - 1 + FRACTION) + 12582912.0f) & 15;          \
    else {                                                                                        \
      code = bits + ((1u << (22 - FRACTION)) - 1) + (bits >> (23 - FRACTION) & 1);                \
      code = (code >> (23 - FRACTION)) - ((127 - BIAS) << FRACTION);                              \
    }                                                                                             \
    return (uint8_t)((bits_of(x) >> 24 & 128) | (code > ABOVE ? ABOVE : code));                   \
  }
