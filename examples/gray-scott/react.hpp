// One time step of Gray-Scott on a box of cells, with vectors on a CPU and single cells on a device.
#pragma once

#include <haloscope/kernels/along.hpp>
#include <haloscope/kernels/bounds.hpp>
#include <haloscope/kernels/kernel_table.hpp>

namespace haloscope::HALOSCOPE_ISA::gray_scott {

template <int N>
HALOSCOPE_INLINE Vec<double, N> laplacian(const double* f, std::int64_t row, Vec<double, N> here) {
  using V = Vec<double, N>;
  return V::load(f - 1) + V::load(f + 1) + V::load(f - row) + V::load(f + row) - V::splat(4) * here;
}

/// Performs the operations of react() in gray_scott.cpp, in the same order, so that the results have the same bits.
/// @tparam Row  along(n, f) calls f(Lanes<N>, x) for n cells of a row.
template <class Row>
HALOSCOPE_KERNEL void react(const KernelArgs& args) {
  const Bounds cells(args.region);
  if (cells.empty()) return;
  const Operand u = args.operands[0], v = args.operands[1];
  const double feed = args.weights[0], kill = args.weights[1], du = args.weights[2], dv = args.weights[3],
               dt = args.weights[4];
  for (std::int64_t j = cells.lo[1]; j < cells.hi[1]; ++j) {
    const double *old_u = u.from + cells.lo[0] + j * u.row, *old_v = v.from + cells.lo[0] + j * v.row;
    double *new_u = u.to + cells.lo[0] + j * u.row, *new_v = v.to + cells.lo[0] + j * v.row;
    Row::along(cells.hi[0] - cells.lo[0], [&](auto lanes, std::int64_t x) HALOSCOPE_LAMBDA {
      using V = Vec<double, decltype(lanes)::count>;
      const V a = V::load(old_u + x), b = V::load(old_v + x), reaction = a * b * b;
      (a +
       V::splat(dt) * (V::splat(du) * laplacian(old_u + x, u.row, a) - reaction + V::splat(feed) * (V::splat(1) - a)))
          .store(new_u + x);
      (b + V::splat(dt) * (V::splat(dv) * laplacian(old_v + x, v.row, b) + reaction - V::splat(feed + kill) * b))
          .store(new_v + x);
    });
  }
}

}  // namespace haloscope::HALOSCOPE_ISA::gray_scott
