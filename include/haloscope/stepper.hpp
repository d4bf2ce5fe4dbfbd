// The library call for whole time steps: a choice carried out on the user's own grid, fields and sweep.
#pragma once

#include "haloscope/cxx20.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "haloscope/choice.hpp"
#include "haloscope/device_stream.hpp"
#include "haloscope/field.hpp"
#include "haloscope/sweep.hpp"
#include "haloscope/which_mpi.hpp"

namespace haloscope {

template <int D>
class Grid;

struct StepperOptions {
  /// Whether the sweep computes SweepArgs::levels time steps at once where those are more than one, as substeps
  /// `blocked` need: from slot `in`, whose halos are as many times wider, to slot `out`. It has then one sweep in one
  /// stage.
  bool fused = false;
  /// Poison halos before each exchange and look for poison after each stage: finds sweeps that read more layers, or
  /// corners, than they say. HALOSCOPE_GUARD=1 or 0 overrides it. Cost: one store for each number in the halos, one
  /// load for each that is written, a reduction, all once a stage and exchange.
  bool guard = false;
  /// Bytes of cache that the order of visiting is made for: a 3D box is handed to a sweep in strips, rows of all its
  /// planes, so many that the planes which a point reads and writes stay there. 0: boxes are handed over whole. Sweeps
  /// of a 2D grid, in place, of several levels at once, or that gather numbers, get whole boxes in any case. The bits
  /// are the same. Whole boxes win where the next cache and the prefetcher keep up (figure `stepper_order`), so measure
  /// before you set it.
  std::int64_t strip_bytes = 0;
  /// Whether the loop that stage number `stage` opens has been carried out often enough in this step; asked before each
  /// time but the first Stage::least. `reduced` holds the latest numbers of the reductions of the loop's stages, one
  /// after the other; a loop whose reductions have none yet goes on. All ranks must answer alike. Empty: loops have
  /// `least` equal to `most`, as sub-cycles of a number that is known.
  std::function<bool(int stage, std::span<const double> reduced)> finished = {};
};

/// Time steps of the user's fields: exchanges and sweeps, when and how a choice says. The result has the same bits
/// under every choice if the sweep keeps to the rules of docs/extend/app.md.
///
/// A sweep computes the box `args.region` of whatever size, which with a depth above 1 reaches into the halos; several
/// threads may call it at once. A sweep in place computes its box in the order of x, then y, then z. It must not throw,
/// allocate or communicate. Fields have the numbers of their places in
/// the list: args.read<T, D>(0) is the first one in the current slot, args.write<T, D>(0) in the next one.
///
/// Ghost points beyond an edge of the grid, or in a hole, keep what the user has put there; sweeps read them in both
/// slots.
/// Halos are filled when a step needs them: after run() they are out of date. With substeps `full`, sweeps of deep
/// halos also compute points of which they have no valid neighbours, and nothing reads these results.
///
/// Fields may be in the memory of a device, which the choice then names (`device`), and whose sweeps SweepSpec::launch
/// gives to it; schedules are bulk and streams, strategies those of devices. Kernels write what each cell gives to
/// reductions (SweepArgs::numbers).
class Stepper {
 public:
  using SweepFunction = std::function<void(const SweepArgs&)>;

  /// A step of any stages, of one sweep, or of one sweep that reads all fields in a star of one layer and writes them
  /// all.
  /// Collective over the grid's communicator.
  /// @param fields  one or more, with 2 slots, or 1 where a sweep only writes, reads at the point that it writes, or is
  ///                in place. They must stay in place as long as the Stepper lives. Large ones in private memory are
  ///                moved to huge pages, as an Exchange does.
  /// @param choice  best().choice or one's own: schedule, depth, substeps, strategy, threads, tiles, piece, sharing,
  ///                barrier, stores, ftz. Its app and its parameters do not matter, nor do isa, nodes and memory, which
  ///                are the sweep's, the grid's and the fields' own. Grid, ranks and process grid may be left at their
  ///                defaults. HALOSCOPE_STRATEGY overrides the strategy, see Exchange.
  /// @param stages  their quantities are the fields. A sweep in place (SweepSpec::in_place) reads fields of one slot,
  ///                one layer deep, and needs schedule `pipeline`, one thread and a grid in slabs, see
  ///                docs/use/library.md. Stages may open loops (Stage::repeats), see StepperOptions::finished. A
  ///                reduction's numbers are in reduced().
  /// @param sweep   one that names neither what it reads nor what it writes does so with all fields, one layer, in a
  ///         star.
  /// @throws on all ranks alike: UsageError for a choice that the grid or the sweep does not allow, one made for
  ///         another grid, a field whose halo or slots are too few or whose points do not follow each other in x, a
  ///         description that cannot be run, fields in other memory than the choice's; UnavailableError for transports
  ///         that are not here.
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

  /// Carry out `steps` >= 0 time steps. Collective. @return the slot that holds the result.
  /// @throws UsageError for a negative number; with StepperOptions::guard, on all ranks alike, where a sweep has read
  ///         ghost points that it does not say it reads. The steps of that round do not count: slot() and time() are
  ///         those before them, and run() may be called again; what has been written into fields of one slot stays.
  ///         Error where a step fails on this rank or, for fields of a device, would not end because one has failed on
  ///         another rank: the text names that rank and the reason. Later steps fail, too.
  /// Cost: ceil(steps / depth) exchanges, all as deep. Allocates the first time that a round of some length is carried
  /// out, then never outside MPI.
  /// Fields of a device: all that the default stream has been given comes before; waits until the device is done.
  int run(std::int64_t steps);
  /// The same for fields of a device, but on a stream of the caller's: what it has been given comes before, what it is
  /// given later after, and the host does not wait for the end of the last steps.
  /// @throws also UsageError for fields in host memory.
  int run(std::int64_t steps, DeviceStream stream);
  /// The slot that holds the current values: 0 before the first step.
  int slot() const;
  /// Time steps done so far: SweepArgs::step of the next one.
  std::int64_t time() const;
  /// The latest numbers of a reduction of a stage; empty before there are any.
  /// @throws UsageError for one that does not exist.
  std::span<const double> reduced(int reduction = 0, int stage = 0) const;
  /// Schedule, depth and threads; for each stage its strategy, what this rank sends in an exchange, and what a
  /// transport that chooses, as `auto`, has chosen. One line.
  std::string report() const;

 private:
  Stepper(MPI_Comm comm, const Layout& layout, const std::vector<int>& nodes, const std::vector<FieldRef>& fields,
          const Choice& choice, const std::vector<Stage>& stages, const StepperOptions& options);
  static std::vector<Stage> stages_of(SweepSpec sweep, const std::vector<FieldRef>& fields);

  struct State;
  /// @throws UsageError for a Stepper that was moved away.
  State& state(const char* call) const;
  std::unique_ptr<State> state_;
};

}  // namespace haloscope
