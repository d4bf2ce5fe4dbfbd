// Runs of one choice on this rank: fields, links, programs and kernels, and the steps that they compute.
#pragma once

#include <mpi.h>

#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "haloscope/comm/handles.hpp"
#include "haloscope/extend/candidate.hpp"
#include "haloscope/field/field.hpp"
#include "haloscope/rank/measure/temporaries.hpp"
#include "haloscope/runner/runner.hpp"
#include "haloscope/stepper/device_fields.hpp"
#include "haloscope/stepper/halo_poison.hpp"
#include "haloscope/stepper/stage_loop.hpp"

namespace haloscope {

/// Returns the term of Run::checksum() for a global point of a quantity with these bits.
std::uint64_t checksum_term(const GridSpec& grid, int quantity, const Index& point, std::uint64_t bits);

class Pipeline;

class Run {
 public:
  /// Collective over `comm`, which must have choice.ranks ranks. See open_run().
  /// @param hatch_bytes  bytes of each of the two staging buffers of a device's fields: all host memory of these
  ///                     fields, except where the host computes walls around them.
  /// @param margin  layers around the fields and their halos that no sweep may read; for fields in host memory.
  /// @throws UsageError for an illegal choice, before any MPI call; UnavailableError for features not available here.
  Run(MPI_Comm comm, const Choice& choice, const RunnerOptions& options = {},
      std::size_t hatch_bytes = usual_hatch_bytes, int margin = 0);
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  /// Fills all quantities with initial data, fixed boundary values in all slots, NaN in every halo, and poison in the
  /// margin.
  void initialise();
  /// The same with other initial data, a word of parameter `initial`.
  void initialise(const std::string& initial);
  /// Advances by `steps` >= 1 steps, or until App::finished ends the run. @param poison overwrites the exchanged
  /// halos with NaN before each exchange.
  Progress advance(std::int64_t steps, bool poison = false);
  /// Checks the points that this rank owns. Collective. @throws UsageError if a sweep has read the margin.
  void require_unread_margin() const;
  /// Runs one sweep of a stage once, by the team, for calibration. Values are unspecified afterwards.
  void sweep_alone(int stage, int sweep);
  /// The same on a device, for apps of several sweeps. @return the seconds that the device took.
  double seconds_on_device(int stage, int sweep);
  std::int64_t time() const { return loop_->at.time; }
  /// Returns the latest numbers of a reduction; empty before the first.
  std::span<const double> reduced(int stage, int reduction) const;

  /// Returns the app's scalars, see App::scalars.
  std::span<const double> scalars() const { return scalars_; }
  /// Returns the latest numbers of all reductions, stage by stage, of the last series of steps.
  std::span<const double> reduced() const { return loop_->latest(); }
  /// Returns the sum of term(global point, value) over the points of a quantity that this rank counts.
  double sum_of(int quantity, const std::function<double(const Index& point, double value)>& term) const;

  /// Checks a quantity. @throws UsageError for a quantity that is freed within each step.
  void require_lasting(int quantity) const;

  /// Returns the sum over all points and ranks of hash(global point, bytes), of all quantities whose values outlive a
  /// step; equal fields give equal sums. Collective.
  std::uint64_t checksum() const;
  struct Norms {
    double max = 0, l2 = 0;
  };
  /// Returns the distance of the first quantity to the exact solution. Collective. Requires has_exact_solution().
  Norms error_norms() const;
  bool has_exact_solution() const;
  /// Returns the app's entries of records, see App::entries. Collective.
  std::vector<RecordEntry> entries() const;
  /// Returns the value of a quantity at the current time at a local point, for tests and readers. One copy where it
  /// is on a device.
  double value(const Index& point, int quantity = 0) const;
  bool canaries_alive() const;

  const Candidate& candidate() const { return candidate_; }
  const Choice& choice() const { return choice_; }
  const Layout& layout() const { return candidate_.layout; }
  int stages() const { return loop_->stages(); }
  BoundStage& stage(int number) const { return loop_->stage(number); }
  /// Returns the plan of the first stage.
  const Plan& plan() const { return stage(0).plan(); }
  const Program& program() const { return stage(0).program(); }

  void reset_timers();
  /// Resets traces and counts.
  void reset_traces();
  /// Returns the runners in use, of all stages.
  std::vector<const Runner*> runners() const;
  /// Returns the seconds per timer over all programs since reset_timers().
  std::array<double, timer_count> seconds() const;
  /// Returns the work of this rank since reset_traces().
  Counts counts() const;
  std::string isa() const { return sweeper_->isa(); }
  /// Returns the cost of temporaries where they are freed; null where they are kept.
  const FreedTemporaries* temporaries() const { return temporaries_.get(); }
  /// Returns the maximum of resident bytes of this rank's fields, now or where temporaries were allocated since
  /// reset_traces().
  std::int64_t most_resident() const;
  /// Returns the bytes of this rank's fields, halos included.
  std::int64_t field_bytes() const { return arrangement().size(); }
  /// Returns the kind of memory of the fields: as requested, or as the strategy needs it.
  MemoryKind memory() const { return memory_; }
  /// Returns Link::report() of this rank's transports.
  std::string transport_report() const;
  /// Returns the device that holds the fields; null without one.
  device::Device* device() const { return fields_ ? &fields_->device() : nullptr; }

 private:
  friend class Pipeline;
  void allocate(const std::vector<int>& nodes, std::size_t hatch_bytes);
  void allocate_here(const std::vector<int>& nodes, const std::vector<int>& slots);
  const Arrangement& arrangement() const { return storage_ ? storage_->arrangement() : fields_->arrangement(); }
  void bind_stages(const std::vector<int>& nodes);
  void update_scalars(int stage, std::int64_t iteration);
  bool ends_early() const;
  void add_poison();
  void poison_margin();
  void finish_device();
  void refresh() const;
  void read(int quantity, const Box& box, const DeviceFields::LookAtRow& look) const;
  template <class Visit>
  void for_owned_points(int quantity, Visit visit) const;

  OwnedComm comm_;
  std::shared_ptr<LibraryComm> own_;  // of the links' messages
  Choice choice_;
  Candidate candidate_;
  RunnerOptions options_;
  int rank_ = 0;
  int margin_ = 0;
  MemoryKind memory_ = MemoryKind::own;
  Plan points_;                                   // without messages: all quantities, with the widest halos
  std::unique_ptr<Storage> storage_;              // null where only a device has the fields
  std::vector<std::optional<StageGroup>> lives_;  // lifetimes of quantities that do not outlive a step
  std::unique_ptr<FreedTemporaries> temporaries_;
  std::unique_ptr<DeviceFields> fields_;  // with a device: its fields; a storage_ has the cells around its block
  Views views_;  // of storage_ or of fields_, by quantity and slot; one-slot quantities in every slot
  std::unique_ptr<Sweeper> sweeper_;
  std::vector<double> scalars_;  // see App::scalars
  std::unique_ptr<StageLoop> loop_;
  std::unique_ptr<HaloPoison> poison_;           // of the halos that exchanges fill; null before the first use
  bool poisons_ = false;                         // in the current steps
  std::unique_ptr<Pipeline> pipeline_;           // of sweeps in place
  int exceptions_ = std::uncaught_exceptions();  // when it was made
  mutable bool stale_ = false;                   // the device's block has changed since storage_ had its values
};

/// Opens a run; where all ranks have an error, it leaves no resources behind.
inline std::unique_ptr<Run> open_run(MPI_Comm comm, const Choice& choice, const RunnerOptions& options = {},
                                     int margin = 0) {
  return collectively(comm, "a run",
                      [&] { return std::make_unique<Run>(comm, choice, options, usual_hatch_bytes, margin); });
}

}  // namespace haloscope
