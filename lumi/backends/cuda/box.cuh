/* Boxes, which the copy engine brings as a map of the driver says. */

struct __align__(64) TensorMap { u8 bytes[128]; };

INLINE void fetch_map(const TensorMap *map) { asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory"); }
INLINE void fetch_box(u32 to, const TensorMap *map, u32 signal, int half, int line, int plane) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
               " [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(to), "l"(map), "r"(signal), "r"(half), "r"(line), "r"(plane)
               : "memory");
}
