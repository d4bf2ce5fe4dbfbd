// The kernels of all apps, for the instruction set that the including translation unit is compiled for (see simd.hpp).
//
// A form of a stencil says how to compute a tile of JY rows x JZ planes for N neighbouring cells in x. It thereby fixes
// the order of operations of a point: tile shape, vector width and instruction set never change it, so every kernel of
// a form gives the bits of the plain loop with one fma per term. `src.plane(k, x)(j)` points to cell x of the row j
// rows and k planes away from the tile's first one. `emit(j, k, value)` takes a finished row: as early as possible, so
// that stores are spread evenly over the work. `rows` and `planes` shape the tile of large boxes; `fetch_bytes` is the
// prefetch distance along x for a source in memory (all measured, on one server core).
#pragma once

#include "haloscope/apps/kernels.hpp"  // made by cmake/app_kernels.cmake
#include "haloscope/kernels/isa_table.hpp"
#include "haloscope/kernels/probe_loops.hpp"

namespace haloscope::HALOSCOPE_ISA {

inline IsaTable fill_table(const char* isa) {
  IsaTable table;
#define ADD(name) add_##name(table, isa);
  HALOSCOPE_APPS_WITH_KERNELS(ADD)
#undef ADD
  table.copy_plain = copy<1, false>;
  table.copy_stream = copy<1, true>;
  table.copy_stream4 = copy<4, true>;
  const MemoryPass passes[memory_passes] = {pass_scale, pass_add, pass_triad, pass_read, pass_write, pass_update};
  for (int p = 0; p < memory_passes; ++p) table.pass[p] = passes[p];
  table.fma_burst = fma_burst;
  return table;
}

inline const IsaTable* table(const char* isa) {
  static const IsaTable filled = fill_table(isa);
  return &filled;
}

}  // namespace haloscope::HALOSCOPE_ISA
