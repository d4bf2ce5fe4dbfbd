// The kernels of one app for one instruction set. A translation unit per instruction set fills one, see simd.hpp.
#pragma once

#include "haloscope/kernels/kernel.hpp"

namespace haloscope {

/// A plain struct: code of the standard library must not be compiled for one instruction set and then be shared by all.
struct KernelTable {
  struct Entry {
    const char* form;
    Real real;
    Kernel kernel;
  };
  static constexpr int max_entries = 64;
  Entry kernel[max_entries] = {};
  int entries = 0;

  [[gnu::always_inline]] void add(const Entry& entry) {
    if (entries < max_entries) kernel[entries++] = entry;
  }
};

}  // namespace haloscope
