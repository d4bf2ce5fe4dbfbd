// One configuration brought to life on this rank: fields, link, programs and kernel of a Choice.
#pragma once

#include <mpi.h>

#include <exception>
#include <memory>
#include <vector>

#include "haloscope/apps/app.hpp"
#include "haloscope/comm/shared_memory.hpp"
#include "haloscope/field/field.hpp"
#include "haloscope/kernels/kernel.hpp"
#include "haloscope/run/device_fields.hpp"
#include "haloscope/run/poisson_sweeps.hpp"
#include "haloscope/runner/runner.hpp"

namespace haloscope {

/// Everything a choice leaves open about how it is executed.
struct SimulationOptions {
  bool barrier = false;  ///< barrier before each exchange (desync timer)
  int tiles = 8;         ///< interior tiles of `split`
  std::string isa;       ///< "" = the best
  int stream = -1;       ///< non-temporal stores: 1 on, 0 off, -1 when the block outgrows the cache
  /// Where the fields live. A strategy that needs them in shared memory puts them there whatever is said here.
  MemoryKind memory = MemoryKind::own;
  bool flush_to_zero = false;  ///< sweeps take subnormal numbers as zero
  DeviceOptions device;
  RunnerOptions runner;
};

/// Blocks larger than this gain from stores that go around the cache (two fields of a rank no longer fit a share of
/// L2).
inline constexpr std::int64_t stream_from_bytes = 8 << 20;

/// What a global cell with these bits adds to Simulation::checksum().
std::uint64_t checksum_term(const GridSpec& grid, const Index& cell, std::uint64_t bits);

class Simulation {
 public:
  /// Collective over `comm`, which must have choice.ranks ranks.
  /// @throws UsageError for an illegal choice or parameters, before any MPI call.
  Simulation(MPI_Comm comm, const Choice& choice, const AppParameters& parameters, const SimulationOptions& options);
  ~Simulation();

  /// Fill slot 0 with initial data, fixed boundary values into all slots, and NaN into every halo.
  void initialise();
  /// The same with other initial data, see AppParameters::initial.
  void initialise(std::string initial);
  /// Advance by `steps` >= 0 steps. @param poison  overwrite the exchanged halos with NaN before each exchange.
  void run(std::int64_t steps, bool poison = false);

  // For whoever decides after each step whether there is another: open(), then enter() and step() as often as wanted,
  // then close(); run() does the same. Schedules other than `pipeline` do everything in step().
  void open(bool poison = false);
  /// Wait for what the next step cannot begin without. @param stop  asked while waiting (null: never); once it says so,
  /// the wait is given up. @return whether the step may begin.
  bool enter(bool (*stop)(void* context) = nullptr, void* context = nullptr);
  void step(bool poison = false);
  void close();
  /// Take back the last step, of which the second slot still holds the field before. Once per step, at depth 1.
  void step_back();
  /// Largest |difference| of the last two steps over this rank's own cells. Local; needs two slots and f64.
  double last_change() const;
  /// poisson2d's sweeps; null for other apps.
  PoissonSweeps* poisson() { return poisson_.get(); }
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
  void reset_traces();
  /// The runners in use: of whole programs, and of a last, shorter one where the steps need it.
  std::vector<const Runner*> runners() const;
  /// Seconds per timer over all programs since reset_timers().
  std::array<double, timer_count> seconds() const;
  const char* isa() const { return kernel_.isa; }
  /// Cells written by one program of full depth.
  std::int64_t swept_points() const;
  /// Messages that this rank sends in one run() of `steps` steps, and their bytes.
  struct Traffic {
    std::int64_t messages = 0, bytes = 0;
  };
  Traffic traffic(std::int64_t steps) const;
  /// Bytes of this rank's fields, halos included.
  std::int64_t field_bytes() const;
  /// Value of the current time at local cell p; for tests.
  double value(const Index& p) const;
  /// Where the fields are: as asked for, or as the strategy needs them.
  MemoryKind memory() const { return options_.memory; }
  /// Link::report() of this rank's transport.
  std::string transport_report() const { return link_->report(); }
  bool canaries_alive() const;
  /// The device that holds the fields; null without one.
  device::Device* device() const { return fields_ ? &fields_->device() : nullptr; }

 private:
  struct Bound {  // a program with what executes it
    Program program;
    std::unique_ptr<CommOps> comm;
    std::unique_ptr<DeviceOps> device;
    std::unique_ptr<Runner> runner;
  };
  void allocate(const Strategy& strategy, const std::vector<int>& nodes);
  std::unique_ptr<Bound> bind(int steps, Series series = Series::body) const;
  std::vector<Bound*> bounds() const;
  bool pipelined() const { return opening_ != nullptr; }
  void advance(Bound& bound, bool poison);
  Bound& remainder(int steps);
  void poison_halos(int slot);
  void finish_device();
  void refresh() const;
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
  std::unique_ptr<DeviceFields> fields_;  // with a device: what steps work on; storage_ is then its copy
  std::unique_ptr<Link> link_;
  std::unique_ptr<Bound> full_, rest_;
  std::unique_ptr<Bound> opening_, entry_, closing_;  // schedule `pipeline` only
  std::unique_ptr<PoissonSweeps> poisson_;
  std::vector<Memory> scratch_;  // per thread
  std::int64_t time_ = 0;
  int slot_ = 0;
  int exceptions_ = std::uncaught_exceptions();  // when it was made
  mutable bool stale_ = false;                   // the device's fields have changed since storage_ had their values
};

}  // namespace haloscope
