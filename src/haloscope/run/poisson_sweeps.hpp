// Sweeps of poisson2d on one rank's fields: kernels, right-hand side, residuum over threads, work per block of lines.
#pragma once

#include <string>
#include <vector>

#include "haloscope/apps/app.hpp"
#include "haloscope/apps/poisson.hpp"
#include "haloscope/field/memory.hpp"
#include "haloscope/program.hpp"
#include "haloscope/view.hpp"

namespace haloscope {

/// Processor seconds of computing by block of lines and window of iterations: finds ranks slowed by their data.
struct WorkMeter {
  int blocks = 0;               ///< even blocks of the grid's lines, as many ranks would own them; 0: no metering
  std::int64_t window = 100;    ///< iterations
  std::int64_t lines = 1;       ///< of the whole grid
  std::vector<double> seconds;  ///< [window][block], this rank's part

  int block_of(std::int64_t line) const;
  std::int64_t first_line(int block) const;
  void add(std::int64_t iteration, int block, double seconds);
};

class PoissonSweeps {
 public:
  /// @param most_fused  iterations that one sweep of a program may hold at most. @throws UsageError for an unknown ISA.
  PoissonSweeps(const Choice& choice, const AppParameters& parameters, const Layout& layout, const Plan& plan,
                const std::string& isa, bool stream, int most_fused);

  /// Thread `thread`'s part. In place (Gauss-Seidel) every thread of the team calls it with the whole box.
  void run(const Sweep& sweep, const Box& box, const SlotView& in, const SlotView& out, int thread);

  /// Let sweeps also find the largest |old - new|. Fused sweeps cannot.
  void want_residuum(bool wanted) { wanted_ = wanted; }
  /// The largest since the last call, over this rank's threads.
  double take_residuum();
  /// Number of the first iteration that the next sweeps compute, for the meter.
  void at_iteration(std::int64_t iteration) { iteration_ = iteration; }
  WorkMeter& meter() { return meter_; }
  const char* isa() const { return kernel_.isa; }

 private:
  struct alignas(64) PerThread {
    double residuum = 0;
    Memory scratch;
  };
  double call(const PoissonArgs& args, const Sweep& sweep, int thread);

  bool in_place_;
  bool wanted_ = false, stream_;
  PoissonKernel kernel_;
  std::vector<double> row_factors_, column_factors_;
  Index first_;  // global line and column of local cell (0, 0), counted with the border
  std::vector<PerThread> threads_;
  std::vector<PoissonProgress> progress_;
  WorkMeter meter_;
  std::int64_t iteration_ = 0;
};

}  // namespace haloscope
