// Sweeps of an app that defines them as functions.
#pragma once

#include <algorithm>
#include <cstdint>

#include "haloscope/extend/app.hpp"

namespace haloscope {

/// Calls SweepSpec::run or, on a device, launch. The step must outlive it.
class FunctionSweeper final : public Sweeper {
 public:
  /// @param strip_bytes  see StepperOptions; 0: boxes are passed whole.
  explicit FunctionSweeper(const Step& step, std::int64_t strip_bytes = 0) : step_(step), strip_bytes_(strip_bytes) {}
  void sweep(const SweepArgs& args) override {
    const SweepSpec& spec = step_.stages[args.stage].sweeps[args.sweep];
    if (args.device != nullptr) return spec.launch(args);
    const std::int64_t rows = strip_bytes_ > 0 ? strip_rows(spec, args) : 0;
    if (rows == 0) return spec.run(args);
    SweepArgs strip = args;
    for (std::int64_t at = args.region.lo[1]; at < args.region.hi[1]; at += rows) {
      strip.region.lo[1] = at;
      strip.region.hi[1] = std::min(at + rows, args.region.hi[1]);
      spec.run(strip);
    }
  }

 private:
  /// Returns the rows of a strip; 0: the box stays whole. Sweeps that gather numbers of reductions visit the whole
  /// box in order, so that sums keep their bits.
  std::int64_t strip_rows(const SweepSpec& sweep, const SweepArgs& args) const {
    constexpr std::int64_t fewest = 8;  // the rows around a strip are read twice
    if (args.dims < 3 || args.levels > 1 || sweep.in_place || args.reduced != nullptr) return 0;
    std::int64_t row_bytes = 0;  // of all planes that a row of points accesses
    for (const Access& read : sweep.reads)
      row_bytes += (2 * read.layers + 1) * bytes(read.quantity) * (args.region.extent(0) + 2 * read.layers);
    for (const int q : sweep.writes) row_bytes += bytes(q) * args.region.extent(0);
    const std::int64_t rows = std::max(strip_bytes_ / std::max<std::int64_t>(row_bytes, 1), fewest);
    return rows < args.region.extent(1) ? rows : 0;
  }
  std::int64_t bytes(int q) const { return step_.quantities[q].element_bytes; }

  const Step& step_;
  std::int64_t strip_bytes_;
};

}  // namespace haloscope
