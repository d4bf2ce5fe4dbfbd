// Machine probes for x86-64-v4: AVX-512 F, BW, CD, DQ, VL.
#include "haloscope/kernels/isa_table.hpp"
#if defined(__AVX512F__) && defined(__AVX512VL__)
#define HALOSCOPE_ISA isa_avx512
#include "haloscope/kernels/probe_loops.hpp"

namespace haloscope {
const IsaTable* isa_table_avx512() { return isa_avx512::table("avx512"); }
}  // namespace haloscope
#else
namespace haloscope {
const IsaTable* isa_table_avx512() { return nullptr; }
}  // namespace haloscope
#endif
