// Machine probes for one instruction set. Three translation units fill one table each from the same templates, see
// simd.hpp.
#pragma once

#include <string>
#include <vector>

#include "haloscope/kernels/probe.hpp"

namespace haloscope {

/// Copies `bytes` (a multiple of 64) between 64-byte aligned arrays that do not overlap.
using CopyFunction = void (*)(void* out, const void* in, std::size_t bytes);

/// The machine probes compiled for one instruction set. A plain struct: code of the standard library must not be
/// compiled for one instruction set and then be shared by all.
struct IsaTable {
  const char* isa = "";
  CopyFunction copy_plain, copy_stream, copy_stream4;
  MemoryPass pass[memory_passes];  ///< by Pass
  /// Runs at least `count` independent vector fmas on doubles and returns the scalar fmas done.
  double (*fma_burst)(std::int64_t count);
};

/// Null where this build has no such instruction set.
const IsaTable* isa_table_avx512();
const IsaTable* isa_table_avx2();
const IsaTable* isa_table_baseline();

/// The tables of the instruction sets that this build holds and this CPU runs, best first.
std::vector<const IsaTable*> usable_isas();
/// @param isa  one of kernel_isas(), or "" for the best
/// @throws UsageError for any other name.
const IsaTable& isa_table(const std::string& isa);

}  // namespace haloscope
