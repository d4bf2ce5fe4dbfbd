// Apps with one quantity and one sweep, whose kernels are this library's.
#pragma once

#include <string>
#include <vector>

#include "haloscope/extend/app.hpp"
#include "haloscope/kernels/kernel.hpp"

namespace haloscope {

/// A kernel with its coefficients as an app's sweeper.
class KernelSweeper : public Sweeper {
 public:
  /// @param form  name of a form for find_kernel(). @throws UsageError as find_kernel() does.
  KernelSweeper(const KernelContext& opening, const std::string& form, std::vector<double> weights)
      : kernel_(find_kernel(form, opening.problem.real, opening.isa)), weights_(std::move(weights)) {}

  void sweep(const SweepArgs& args) override {
    const KernelArgs k = kernel_args(args);
    return args.levels == 1 ? kernel_.sweep(k) : kernel_.fused(k);
  }
  std::size_t scratch_bytes(const Box& region, int levels) const override {
    return kernel_.scratch_bytes ? kernel_.scratch_bytes(region, levels) : 0;
  }
  std::string isa() const override { return kernel_.isa; }

 protected:
  KernelArgs kernel_args(const SweepArgs& args) const {
    KernelArgs k;
    k.in = args.in[0].origin;
    k.out = args.out[0].origin;
    k.row = args.in[0].stride[1] / args.in[0].stride[0];
    k.plane = args.in[0].stride[2] / args.in[0].stride[0];
    k.region = args.region;
    k.weights = weights_.data();
    k.stream = args.stream;
    k.levels = args.levels;
    k.scratch = args.scratch;
    return k;
  }
  const Kernel kernel_;

 private:
  std::vector<double> weights_;
};

}  // namespace haloscope
