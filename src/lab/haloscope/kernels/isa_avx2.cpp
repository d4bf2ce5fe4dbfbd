// Machine probes for x86-64-v3: AVX2 and FMA.
#include "haloscope/kernels/isa_table.hpp"
#if defined(__AVX2__) && defined(__FMA__)
#define HALOSCOPE_ISA isa_avx2
#include "haloscope/kernels/probe_loops.hpp"

namespace haloscope {
const IsaTable* isa_table_avx2() { return isa_avx2::table("avx2"); }
}  // namespace haloscope
#else
namespace haloscope {
const IsaTable* isa_table_avx2() { return nullptr; }
}  // namespace haloscope
#endif
