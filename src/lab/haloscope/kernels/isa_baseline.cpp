// Machine probes for any CPU of this architecture. Where it has no fma instruction libm rounds correctly, at a price.
#define HALOSCOPE_ISA isa_baseline
#include "haloscope/kernels/probe_loops.hpp"

namespace haloscope {
const IsaTable* isa_table_baseline() { return isa_baseline::table("baseline"); }
}  // namespace haloscope
