// The sweeps of an app that gives them as functions.
#pragma once

#include "haloscope/app.hpp"

namespace haloscope {

/// Calls SweepSpec::run. The step must outlive it.
class FunctionSweeper final : public Sweeper {
 public:
  explicit FunctionSweeper(const Step& step) : step_(step) {}
  void sweep(const SweepArgs& args) override {
    step_.stages[static_cast<std::size_t>(args.stage)].sweeps[static_cast<std::size_t>(args.sweep)].run(args);
  }

 private:
  const Step& step_;
};

}  // namespace haloscope
