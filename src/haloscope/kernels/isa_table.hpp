// What one instruction set offers. Three translation units fill one each from the same templates, see simd.hpp.
#pragma once

#include "haloscope/kernels/kernel.hpp"
#include "haloscope/kernels/probe.hpp"

namespace haloscope {

/// Copies `bytes` (a multiple of 64) between 64-byte aligned arrays that do not overlap.
using CopyFunction = void (*)(void* out, const void* in, std::size_t bytes);

/// The kernels and the machine probes compiled for one instruction set. A plain struct: code of the standard library
/// must not be compiled for one instruction set and then be shared by all.
struct IsaTable {
  struct Entry {
    const char* form;
    Real real;
    Kernel kernel;
  };
  static constexpr int most_entries = 64;
  Entry kernel[most_entries];
  int entries = 0;
  CopyFunction copy_plain, copy_stream, copy_stream4;
  MemoryPass pass[memory_passes];  ///< by Pass
  /// Runs at least `count` independent vector fmas on doubles and returns the scalar fmas done.
  double (*fma_burst)(std::int64_t count);

  [[gnu::always_inline]] void add(const Entry& entry) {
    if (entries < most_entries) kernel[entries++] = entry;
  }
};

/// Null where this build has no such instruction set.
const IsaTable* isa_table_avx512();
const IsaTable* isa_table_avx2();
const IsaTable* isa_table_baseline();

}  // namespace haloscope
