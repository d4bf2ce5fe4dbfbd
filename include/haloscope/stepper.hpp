// The library call for whole time steps: runs a choice on the user's grid, fields and sweep.
#pragma once

#include "haloscope/extend/cxx20.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "haloscope/choice.hpp"
#include "haloscope/extend/which_mpi.hpp"
#include "haloscope/field.hpp"
#include "haloscope/sweep.hpp"
#include "haloscope/view.hpp"

namespace haloscope {

template <int D>
class Grid;

struct StepperOptions {
  /// True if the sweep computes SweepArgs::levels time steps in one call where there are several, as substeps
  /// `blocked` require: from slot `in`, whose halos are wider by that factor, to slot `out`. The step then has one
  /// sweep in one stage.
  bool fused = false;
  /// Poisons halos before each exchange and checks for poison after each stage: finds sweeps that read more layers,
  /// or corners, than they declare. HALOSCOPE_GUARD=1 or 0 overrides it. Cost: one store for each number in the
  /// halos, one load for each written number, and a reduction, all once a stage and exchange.
  bool guard = false;
  /// Bytes of cache for which the order of visits is optimised: a 3D box is passed to a sweep in strips, rows of all
  /// its planes, sized so that the planes which a point reads and writes stay in that cache. 0: boxes are passed whole.
  /// Sweeps of a 2D grid, in place, of several levels, or that gather numbers, get whole boxes in any case. The bits
  /// are the same. Whole boxes are faster where the next cache and the prefetcher keep up (figure `stepper_order`),
  /// so measure before you set it.
  std::int64_t strip_bytes = 0;
  /// Returns true if the loop that stage number `stage` opens has finished in this step; called before each execution
  /// after the first Stage::least. `reduced` holds the latest numbers of the reductions of the loop's stages, in
  /// order; a loop whose reductions have no numbers yet continues. The result must be equal on all ranks. Empty:
  /// loops have `least` equal to `most`, like sub-cycles of a fixed number.
  std::function<bool(int stage, std::span<const double> reduced)> finished = {};
};

/// Runs time steps on the user's fields: exchanges and sweeps, by a choice. The result has the same bits under every
/// choice if the sweep follows the rules of docs/extend/app.md.
///
/// A sweep computes the box `args.region` of any size, which with a depth above 1 reaches into the halos;
/// several threads may call it concurrently. A sweep in place computes its box in the order of x, then y, then z. It
/// must not throw, allocate or communicate. Fields are numbered by their positions in the list: args.read<T, D>(0) is
/// the first one in the current slot, args.write<T, D>(0) in the next one.
///
/// Ghost points beyond an edge of the grid, or in a hole, keep the user's values; sweeps read them in both slots.
/// Halos are filled when a step needs them: after run() they are stale. With substeps `full`, sweeps of deep halos
/// also compute points without valid neighbours; nothing reads these results.
///
/// Fields may be in the memory of a device, which the choice then names (`device`), and SweepSpec::launch then
/// enqueues the sweeps; schedules are bulk and streams, strategies are device strategies. Kernels write the numbers
/// of each cell for reductions (SweepArgs::numbers).
class Stepper {
 public:
  using SweepFunction = std::function<void(const SweepArgs&)>;

  /// Opens a stepper for a step of any stages, of one sweep, or of one sweep that reads all fields in a star of one
  /// layer and writes them all.
  /// Collective over the grid's communicator.
  /// @param fields  one or more, with 2 slots, or 1 where a sweep only writes, reads at the point that it writes, or
  ///                is in place. They must stay in place as long as the Stepper lives. Large fields in private memory
  ///                are moved to huge pages, as by an Exchange.
  /// @param choice  best().choice or another: schedule, depth, substeps, strategy, threads, tiles, piece, sharing,
  ///                barrier, stores, ftz. Its app, its parameters, isa, nodes and memory are ignored: the sweep, the
  ///                grid and the fields determine them. Grid, ranks and process grid may be left at their defaults.
  ///                HALOSCOPE_STRATEGY overrides the strategy, see Exchange.
  /// @param stages  stages whose quantities are the fields. A sweep in place (SweepSpec::in_place) reads fields of
  ///                one slot, one layer deep, and needs schedule `pipeline`, one thread and a grid in slabs, see
  ///                docs/use/library.md. Stages may open loops (Stage::repeats), see StepperOptions::finished. A
  ///                reduction's numbers are in reduced().
  /// @param sweep   if its `reads` and `writes` are empty, it reads and writes all fields, one layer, in a star.
  /// @throws on all ranks: UsageError for a choice that the grid or the sweep does not allow, one made for another
  ///         grid, a field with too few halo layers or slots or whose points are not contiguous in x, a description
  ///         that cannot be run, fields in a different memory space than the choice's; UnavailableError for transports
  ///         that are
  ///         not available.
  template <int D>
  Stepper(const Grid<D>& grid, const std::vector<FieldRef>& fields, const Choice& choice,
          const std::vector<Stage>& stages, const StepperOptions& options = {})
      : Stepper(grid.comm(), grid.layout(), grid.nodes(), fields, choice, stages, options) {}
  template <int D>
  Stepper(const Grid<D>& grid, const std::vector<FieldRef>& fields, const Choice& choice, const SweepSpec& sweep,
          const StepperOptions& options = {})
      : Stepper(grid, fields, choice, stages_of(sweep, fields), options) {}
  template <int D>
  Stepper(const Grid<D>& grid, const std::vector<FieldRef>& fields, const Choice& choice, const SweepFunction& sweep,
          const StepperOptions& options = {})
      : Stepper(grid, fields, choice, stages_of({.run = sweep}, fields), options) {}
  /// Collective.
  ~Stepper();
  Stepper(Stepper&&) noexcept;
  Stepper& operator=(Stepper&&) noexcept;

  /// Runs `steps` >= 0 time steps. Collective. @return the slot that holds the result.
  /// @throws UsageError for a negative number; with StepperOptions::guard, on all ranks, where a sweep has read ghost
  ///         points that it does not declare. The steps of that round do not count: slot() and time() have their
  ///         values from before them, and run() may be called again; values written into fields of one slot stay.
  ///         Error where a step fails on this rank or, for fields of a device, would not end because one has failed
  ///         on another rank: the text names that rank and the reason. Later steps fail, too.
  /// Cost: ceil(steps / depth) exchanges, all of that depth. Allocates when a round of some length runs for the first
  /// time, later never outside MPI.
  /// Fields of a device: runs after the work already enqueued on the default stream; waits until the device is done.
  int run(std::int64_t steps);
  /// The same for fields of a device, but on a caller's stream: after the work already enqueued on it, and before
  /// work enqueued later; the host does not wait for the end of the last steps.
  /// @throws also UsageError for fields in host memory.
  int run(std::int64_t steps, DeviceStream stream);
  /// Returns the slot that holds the current values: 0 before the first step.
  int slot() const;
  /// Returns the number of finished time steps, which is SweepArgs::step of the next one.
  std::int64_t time() const;
  /// Returns the latest numbers of a reduction of a stage; empty before the first result.
  /// @throws UsageError for a reduction that does not exist.
  std::span<const double> reduced(int reduction = 0, int stage = 0) const;
  /// Returns one line with schedule, depth and threads; for each stage its strategy, the messages that this rank
  /// sends in an exchange, and the choice of a transport that chooses, such as `auto`.
  std::string report() const;

 private:
  Stepper(MPI_Comm comm, const Layout& layout, const std::vector<int>& nodes, const std::vector<FieldRef>& fields,
          const Choice& choice, const std::vector<Stage>& stages, const StepperOptions& options);
  static std::vector<Stage> stages_of(SweepSpec sweep, const std::vector<FieldRef>& fields);

  struct State;
  /// @throws UsageError for a moved-from Stepper.
  State& state(const char* call) const;
  std::unique_ptr<State> state_;
};

}  // namespace haloscope
