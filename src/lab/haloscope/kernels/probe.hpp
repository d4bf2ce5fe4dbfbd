// The best that one core can do: the bounds that kernels are measured against.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace haloscope {

/// Ways to copy memory. Which is fastest depends on the machine; a *best copy* is the fastest of all three.
enum class CopyKind : std::uint8_t {
  plain,   ///< ordinary vector loads and stores (the destination is read first)
  stream,  ///< non-temporal stores
  stream4  ///< non-temporal stores, four parts 32 KiB apart advancing together
};

/// Copies `bytes` (a multiple of 64) from `in` to `out`, both 64-byte aligned and apart.
/// @param isa  one of kernel_isas(), or "" for the best
/// @throws UsageError for an unknown instruction set. Cost: memory bandwidth.
void copy_bytes(CopyKind kind, void* out, const void* in, std::size_t bytes, const std::string& isa = "");

/// Passes over arrays of doubles in ordinary vector loads and stores. With copy_bytes(CopyKind::plain), the first three
/// are the kernels of STREAM, the last three the kernels of CacheBench.
enum class Pass : std::uint8_t {
  scale,  ///< a = q b
  add,    ///< a = b + c
  triad,  ///< a = b + q c
  read,   ///< the sum of a, in no particular order
  write,  ///< a = q
  update  ///< a = a + q: read, modify, write
};
constexpr int memory_passes = 6;
constexpr std::size_t pass_doubles = 32;  ///< the length of arrays is a multiple of it

/// One pass over arrays of n doubles, 64-byte aligned and apart; unused arrays may be null.
/// @return the sum of Pass::read, else 0.
using MemoryPass = double (*)(double* a, const double* b, const double* c, double q, std::size_t n);

/// @param isa  one of kernel_isas(), or "" for the best
/// @throws UsageError for an unknown instruction set.
MemoryPass find_memory_pass(Pass pass, const std::string& isa = "");

/// Runs independent multiply-adds on doubles in registers, for timing the peak rate of one core.
/// @param count  vector operations to run, >= 1 (rounded up a little)
/// @param isa    one of kernel_isas(), or "" for the best
/// @returns the scalar multiply-adds done (two flops each)
/// @throws UsageError for an unknown instruction set.
double run_fma(std::int64_t count, const std::string& isa = "");

}  // namespace haloscope
