// Kernels of the CPU for several quantities on a device, a thread for each cell or point: `Passes` lists them.
// Included once per back end, after its launches.
//   fields, weights, count: operands and coefficients of a kernel, and the number of kernels
//   scratch: doubles that a kernel of a point, or of two in a row, stores
//   has(number), over_points(number): true if the kernel exists, and true if a thread has a point of
//     KernelArgs::points; otherwise it has a cell of KernelArgs::region and the points that belong to it
//   run(const KernelArgs&): runs a kernel on the box of one thread
#pragma once

#include <utility>

#include "haloscope/device/gather_kernel.hpp"
#include "haloscope/device/kernels.hpp"
#include "haloscope/device/launch.hpp"

namespace haloscope::device::HALOSCOPE_BACKEND {

/// A pass over a box. Numbers are combined over a block's threads in their order, so sums are the same in every run.
template <class Passes, int number>
struct PassBlocks {
  static constexpr int threads = pass_threads;
  static constexpr bool over_points = Passes::over_points(number);
  Operand operands[Passes::fields];
  double weights[Passes::weights];
  std::int32_t first[3], extent[3];  ///< of the threads' cells or points
  std::int32_t beyond[3];            ///< additional points of the last cell of a dimension
  PassNumbers numbers;

  HALOSCOPE_FUNCTION void run(std::int32_t place, double* reduced) const {
    const std::int32_t row = place / extent[0], plane = row / extent[1];
    const std::int32_t at[3] = {place - row * extent[0], row - plane * extent[1], plane};
    KernelArgs args;
    std::int64_t bounds[2][2][3];  // of region and points: lower and upper
    HALOSCOPE_UNROLL(3)
    for (int d = 0; d < 3; ++d) {
      const std::int64_t lower = first[d] + at[d];
      bounds[0][0][d] = bounds[1][0][d] = lower;
      bounds[0][1][d] = bounds[1][1][d] = lower + 1;
      if (!over_points && at[d] + 1 == extent[d]) bounds[1][1][d] += beyond[d];
    }
    memcpy(&args.region, bounds[0], sizeof args.region);
    memcpy(&args.points, bounds[1], sizeof args.points);
    double kept[Passes::scratch];
    args.operands = operands;
    args.weights = weights;
    args.scratch = kept;
    args.reduced = reduced;
    args.number = number;
    Passes::run(args);
  }
  HALOSCOPE_FUNCTION void operator()(const Team& team) const {
    double* const gathered = team.shared<double>();
    const std::int32_t all = extent[0] * extent[1] * extent[2];
    team.each([&](int thread) {
      double* const mine = gathered + thread * numbers.count;
      for (int i = 0; i < numbers.count; ++i) mine[i] = identity_of(numbers.ops[i]);
      const std::int64_t place = std::int64_t{team.block()} * threads + thread;
      if (place < all) run(static_cast<std::int32_t>(place), numbers.count > 0 ? mine : nullptr);
    });
    if (numbers.count == 0) return;
    team.sync();
    team.each([&](int thread) {
      for (int i = thread; i < numbers.count; i += threads) {
        double sum = identity_of(numbers.ops[i]);
        for (int t = 0; t < threads; ++t) sum = combined(numbers.ops[i], sum, gathered[t * numbers.count + i]);
        numbers.partials[std::int64_t{team.block()} * numbers.count + i] = sum;
      }
    });
  }
};

template <class Passes, int number>
void launch_pass(Stream& stream, const KernelArgs& args, const PassNumbers& numbers) {
  using Body = PassBlocks<Passes, number>;
  Body body{};
  const Box& box = Body::over_points ? args.points : args.region;
  if (box.empty()) return;
  std::copy(args.operands, args.operands + Passes::fields, body.operands);
  std::copy(args.weights, args.weights + Passes::weights, body.weights);
  for (int d = 0; d < 3; ++d) {
    body.first[d] = narrow(box.lo[d]);
    body.extent[d] = narrow(box.extent(d));
    body.beyond[d] = narrow(args.points.hi[d] - args.region.hi[d]);
  }
  body.numbers = numbers;
  const int blocks = pass_blocks(box);
  launch(stream, blocks, Body::threads, sizeof(double) * Body::threads * static_cast<std::size_t>(numbers.count), body);
  combine_blocks(stream, numbers, blocks);
}

/// PassFunction of an app.
template <class Passes>
void run_pass(Stream& stream, const KernelArgs& args, const PassNumbers& numbers) {
  [&]<int... number>(std::integer_sequence<int, number...>) {
    const auto try_one = [&]<int one>(std::integral_constant<int, one>) {
      if constexpr (Passes::has(one)) {
        if (args.number == one) launch_pass<Passes, one>(stream, args, numbers);
        return args.number == one;
      }
      return false;
    };
    if (!(try_one(std::integral_constant<int, number>{}) || ...))
      throw UsageError("kernel " + std::to_string(args.number) + " does not exist on devices");
  }
  (std::make_integer_sequence<int, Passes::count>{});
}

}  // namespace haloscope::device::HALOSCOPE_BACKEND
