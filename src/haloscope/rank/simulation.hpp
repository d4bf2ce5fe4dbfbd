// One configuration brought to life on this rank: fields, link, programs and kernel of a Choice.
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "haloscope/apps/app.hpp"
#include "haloscope/apps/kernel.hpp"
#include "haloscope/field/field.hpp"
#include "haloscope/runner/runner.hpp"

namespace haloscope {

/// Everything a choice leaves open about how it is executed.
struct SimulationOptions {
  bool barrier = false;        ///< barrier before each exchange (desync timer)
  int tiles = 8;               ///< interior tiles of `split`
  std::string isa;             ///< "" = the best
  int stream = -1;             ///< non-temporal stores: 1 on, 0 off, -1 when the block outgrows the cache
  RunnerOptions runner;
};

class Simulation {
 public:
  /// Collective over `comm`, which must have choice.ranks ranks.
  /// @throws UsageError for an illegal choice or parameters, before any MPI call.
  Simulation(MPI_Comm comm, const Choice& choice, const AppParameters& parameters, const SimulationOptions& options);
  ~Simulation();

  /// Fill slot 0 with initial data, fixed boundary values into all slots, and NaN into every halo.
  void initialise();
  /// Advance by `steps` >= 0 steps. @param poison  overwrite the exchanged halos with NaN before each exchange.
  void run(std::int64_t steps, bool poison = false);
  std::int64_t time() const { return time_; }

  /// Sum over all owned cells of all ranks of hash(global cell, bytes); equal fields give equal sums. Collective.
  std::uint64_t checksum() const;
  struct Norms {
    double max = 0, l2 = 0;
  };
  /// Distance to the exact solution. Collective. Requires has_exact_solution().
  Norms error_norms() const;

  const Plan& plan() const { return plan_; }
  const Layout& layout() const { return layout_; }
  const Program& program() const { return full_->program; }
  const Runner& runner() const { return *full_->runner; }
  void reset_timers();
  /// Seconds per timer over all programs since reset_timers().
  std::array<double, timer_count> seconds() const;
  const char* isa() const { return kernel_.isa; }
  /// Cells written by one program of full depth.
  std::int64_t swept_points() const;
  /// Value of the current time at local cell p; for tests.
  double value(const Index& p) const;
  bool canaries_alive() const { return storage_->canaries_alive(); }

 private:
  struct Bound {  // a program with what executes it
    Program program;
    std::unique_ptr<CommOps> comm;
    std::unique_ptr<Runner> runner;
  };
  std::unique_ptr<Bound> bind(int steps) const;
  Bound& remainder(int steps);
  void poison_halos(int slot);
  static void sweep(void* context, const Sweep& sweep, const Box& box, int slot, int into, int thread);
  template <class T>
  void fill();

  MPI_Comm comm_;
  Choice choice_;
  AppParameters parameters_;
  SimulationOptions options_;
  Layout layout_;
  Plan plan_;
  std::vector<double> weights_;
  Kernel kernel_;
  bool stream_ = false;
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<Link> link_;
  std::unique_ptr<Bound> full_, rest_;
  std::vector<Memory> scratch_;  // per thread
  std::int64_t time_ = 0;
  int slot_ = 0;
};

}  // namespace haloscope
