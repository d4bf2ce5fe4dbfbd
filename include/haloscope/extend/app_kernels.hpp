// Kernels of an app, compiled once per instruction set and once per back end of devices.
#pragma once

#include "haloscope/extend/cxx20.hpp"

#include <array>
#include <vector>

namespace haloscope {

struct KernelTable;
namespace device {
struct Kernels;
}

/// Kernels of an app: the CMake function haloscope_add_app() makes a constant `<name>_kernels` of this type from the
/// headers KERNELS and DEVICE.
struct AppKernels {
  /// Kernels of the CPU for one instruction set.
  struct Isa {
    const char* name = "";                    ///< "avx512", "avx2" or "baseline"
    const KernelTable* (*table)() = nullptr;  ///< returns null where the compiler has no such instructions
  };
  /// Kernels of devices for one back end.
  struct Backend {
    const char* name = "";  ///< "host", "cuda" or "hip"
    void (*add)(device::Kernels&) = nullptr;
  };
  std::array<Isa, 3> isas = {};          ///< entries without a name are unused
  std::array<Backend, 3> backends = {};  ///< the same
};

/// Registers kernels that belong to no app, for example for add_request_kind(). They must live until the program ends.
void add_kernels(const AppKernels& kernels);
/// Returns the kernels of the registered apps, then the added ones.
std::vector<const AppKernels*> known_kernels();

}  // namespace haloscope
