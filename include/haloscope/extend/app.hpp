// Apps: the computations that Haloscope runs. An app is a value: quantities, parameters, the stages of a step,
// initial data, checks, kernels.
#pragma once

#include "haloscope/extend/cxx20.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "haloscope/extend/parameters.hpp"
#include "haloscope/extend/program.hpp"
#include "haloscope/stage.hpp"
#include "haloscope/sweep.hpp"

namespace haloscope {

struct AppKernels;
struct Candidate;

/// The kernels of an app, opened for one rank.
class Sweeper {
 public:
  virtual ~Sweeper() = default;
  /// Computes one part. All threads of a team call it concurrently, each with a different part; for a sweep in
  /// place every thread gets the whole region, and the threads divide it among themselves.
  virtual void sweep(const SweepArgs& args) = 0;
  /// Discards data gathered during an earlier run; called when the fields have just received initial data.
  virtual void begin() {}
  /// Returns the bytes of scratch, private to a thread and aligned to 64, for `levels` fused steps of a region; 0:
  /// none.
  virtual std::size_t scratch_bytes(const Box&, int) const { return 0; }
  /// Returns the instruction set of the kernels, for records.
  virtual std::string isa() const { return ""; }
};

/// The input of App::open: a problem, and the rank that computes it.
struct KernelContext {
  const Problem& problem;
  const Step& step;
  Index first;      ///< global coordinates of the rank's first cell
  Index cells;      ///< that the rank owns
  std::string isa;  ///< instruction set; "": the best
  int threads = 1;  ///< per rank
};

/// The device kernels of an app with one sweep.
struct DeviceKernel {
  std::string form;             ///< name in the list of kernels of a back end
  std::vector<double> weights;  ///< its coefficients
};

/// Values of the fields after a run, for entries in records. Calls are collective: every rank makes the same calls.
class FieldReader {
 public:
  virtual ~FieldReader() = default;
  /// Returns the values of a quantity at global points, the same on all ranks.
  virtual std::vector<double> values(int quantity, std::span<const Index> points) const = 0;
  /// Sums numbers over all ranks, in place; every rank passes equally many.
  virtual void sum(std::span<double> numbers) const = 0;
  /// Returns the minimum of the numbers of all ranks.
  virtual double least(double number) const = 0;
  /// Returns the sum of term(global point, value) over all points of a quantity; points of planes that ranks share
  /// count once.
  virtual double sum_of(int quantity, const std::function<double(const Index& point, double value)>& term) const = 0;
  virtual std::span<const double> scalars() const = 0;
  /// Returns the latest numbers of all reductions, as in StageStart::reduced.
  virtual std::span<const double> reduced() const = 0;
};

/// A number, text or list that a record stores as `name` in its `app` object.
struct RecordEntry {
  std::string name;
  std::variant<bool, std::int64_t, double, std::string, std::vector<double>, std::vector<std::vector<double>>> value;
};

/// The state in which scalars are updated: just before a stage runs.
struct StageStart {
  int stage = 0;
  std::int64_t step = 0;   ///< time step that the stage starts from
  std::int64_t times = 0;  ///< completed executions of its loop in this step
  /// The latest numbers of all reductions of the step, stage by stage; zeros before the first results.
  std::span<const double> reduced;
};

/// The value at a global point, if the point has one.
using InitialValue = std::function<std::optional<double>(const Index& point)>;

/// An app. A member left empty has the default that its comment names.
struct App {
  std::string name;
  std::string summary = {};  ///< one sentence for help texts
  int dims = 3;
  std::vector<Quantity> quantities = {};
  std::vector<Stage> stages = {};
  std::vector<Parameter> parameters = {};
  std::vector<std::string> forms = {"plain"};  ///< of its kernels, the default first
  std::vector<std::string> reals = {"f64"};    ///< scalar types of quantities without an element size, default first
  std::string process_grid = {};               ///< rule; empty: square in 2D, else cubic
  bool periodic = true;                        ///< default of GridSpec::periodic: dimensions wrap around
  /// Words for initial data besides `random` and `id`, which every app has; the first one is the default if
  /// `starts_random` is false.
  std::vector<std::string> initials = {};
  bool starts_random = true;
  std::vector<std::string> fused_forms = {};  ///< forms with kernels of the CPU that fuse time steps
  int device_levels = 0;                      ///< max time steps fused by its device kernels; 0: it has none

  /// Quantities and stages of a problem, where they depend on its form or parameters; empty: the members above.
  std::function<Step(const Problem&)> step = {};
  /// The value of a quantity at each global point at time 0, for a word of `initials`, and of points beyond a grid
  /// that does not wrap around, which keep it. A point without a value gets the value of `id` if that is the word,
  /// else of `random`. Empty: no point has one.
  std::function<InitialValue(const Problem&, int quantity)> initial = {};
  /// The exact solution of a quantity after some steps, on a box of global cells; null where none is available.
  std::function<std::function<double(const Index&)>(const Problem&, int quantity, const Box& cells, std::int64_t steps)>
      exact = {};
  /// Kernels; empty: SweepSpec::run computes.
  std::function<std::unique_ptr<Sweeper>(const KernelContext&)> open = {};
  /// Kernels of instruction sets and devices that `open` and `device` refer to; null: the app has none.
  const AppKernels* kernels = nullptr;
  /// For sweeps in place: the sweep as a plain loop over the whole grid on one rank. Runs must match its results
  /// bit for bit.
  std::function<void(const SweepArgs&)> plain = {};
  /// Kernels of devices.
  std::function<DeviceKernel(const Problem&)> device = {};
  /// Names of numbers that are equal on all ranks, such as a time step or the coefficients of a Krylov method. They
  /// are zeros at time 0; sweeps read them in SweepArgs::scalars. `update` updates them before each stage; it has
  /// no other state.
  std::vector<std::string> scalars = {};
  std::function<void(const Problem&, const StageStart&, std::span<double> scalars)> update = {};
  /// Returns true if the loop that a stage opens, or with `stage` -1 the run, has finished. `reduced` holds the
  /// latest numbers of the reductions of the loop's stages, or of all stages, in order; the scalars have their
  /// values of the last stage.
  /// Null: a run ends after its number of steps.
  std::function<bool(const Problem&, int stage, std::span<const double> reduced, std::span<const double> scalars)>
      finished = {};
  /// Returns true if `finished` can end a run of this problem before its last step.
  std::function<bool(const Problem&)> ends_early = {};
  /// Returns the reason why a candidate cannot run, beyond the rules that follow from its stages; empty if it can.
  std::function<std::string(const Candidate&)> illegal = {};
  /// Entries that this app adds to a record.
  std::function<std::vector<RecordEntry>(const Problem&, const Sweeper&, const FieldReader&)> entries = {};
};

/// Returns the quantities, reductions and stages of a problem, checked, with element sizes filled in.
/// @throws UsageError as resolved() does.
Step step_of(const App& app, const Problem& problem);

/// Returns all apps, in the order in which they were added.
const std::vector<const App*>& apps();
/// Returns the app of that name. @throws UsageError naming the nearest valid names.
const App& find_app(const std::string& name);
/// Checks an app. @throws UsageError for an app that cannot be run.
void check_app(const App& app);
/// Registers a copy of an app by its name.
/// @throws UsageError for a name that is taken or an app that cannot be run.
void add_app(const App& app);
/// Registers an app of another program, and replaces the app declared earlier under its name. Must not be called
/// while that one is in use.
/// @throws UsageError as add_app() does.
void declare_app(const App& app);

/// Returns the parameters of an app, including the ones that every app has: initial, seed.
std::vector<Parameter> parameters_of(const App& app);

/// Initial data available for every app, at a global point; defined outside the grid too.
double random_value(std::uint64_t seed, int quantity, const GridSpec& grid, const Index& point);
double id_value(const GridSpec& grid, const Index& point);
/// Returns the initial values of a problem: at global points of the box for the initials that the app defines, at
/// any point for `random` and `id`.
std::function<double(const Index& point)> initial_values(const App& app, const Problem& problem, int quantity,
                                                         const Box& points);

}  // namespace haloscope
