// Apps: what is computed. A value: quantities, parameters, the stages of a step, initial data, checks, kernels.
#pragma once

#include "haloscope/cxx20.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "haloscope/parameters.hpp"
#include "haloscope/program.hpp"
#include "haloscope/stage.hpp"
#include "haloscope/sweep.hpp"

namespace haloscope {

struct AppKernels;
struct Candidate;

/// An app's kernels brought to life for one rank.
class Sweeper {
 public:
  virtual ~Sweeper() = default;
  /// Compute one part. All threads of a team call it at once, each with its own part; for a sweep in place every thread
  /// gets the whole region, and the threads divide it among themselves.
  virtual void sweep(const SweepArgs& args) = 0;
  /// The fields have just received initial data: forget what was gathered about an earlier run.
  virtual void begin() {}
  /// Bytes of scratch, private to a thread and aligned to 64, for `levels` fused steps of a region; 0: none.
  virtual std::size_t scratch_bytes(const Box&, int) const { return 0; }
  /// Instruction set of the kernels, for records.
  virtual std::string isa() const { return ""; }
};

/// What kernels are opened for.
struct KernelContext {
  const Problem& problem;
  const Step& step;
  Index first;      ///< global coordinates of the rank's first cell
  Index cells;      ///< that the rank owns
  std::string isa;  ///< instruction set; "": the best
  int threads = 1;  ///< per rank
};

/// The kernels of devices for an app's one sweep.
struct DeviceKernel {
  std::string form;             ///< as back ends list their kernels
  std::vector<double> weights;  ///< its coefficients
};

/// Values of the fields after a run, for entries in records. Calls are collective: every rank makes the same ones.
class FieldReader {
 public:
  virtual ~FieldReader() = default;
  /// Values of a quantity at global points, the same on all ranks.
  virtual std::vector<double> values(int quantity, std::span<const Index> points) const = 0;
  /// Sums over all ranks, in place; every rank passes the same number of numbers.
  virtual void sum(std::span<double> numbers) const = 0;
  /// The least of all ranks' numbers.
  virtual double least(double number) const = 0;
  /// The sum of term(global point, value) over all points of a quantity; those of planes that ranks share count once.
  virtual double sum_of(int quantity, const std::function<double(const Index& point, double value)>& term) const = 0;
  virtual std::span<const double> scalars() const = 0;
  /// The latest numbers of all reductions, as StageStart::reduced.
  virtual std::span<const double> reduced() const = 0;
};

/// A number, text or list of a record, and where it goes: `name` in the record's `app` object.
struct RecordEntry {
  std::string name;
  std::variant<bool, std::int64_t, double, std::string, std::vector<double>, std::vector<std::vector<double>>> value;
};

/// When scalars are brought up to date: before a stage is carried out.
struct StageStart {
  int stage = 0;
  std::int64_t step = 0;   ///< time step that is computed from
  std::int64_t times = 0;  ///< how often its loop was carried out in this step already
  /// The latest numbers of all reductions of the step, stage by stage, one after the other; zeros before there are any.
  std::span<const double> reduced;
};

/// Value at a global point, if there is one.
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
  bool periodic = true;                        ///< whether dimensions wrap around unless the user says otherwise
  /// Words for initial data besides `random` and `id`, which every app has; the first one is the default if
  /// `starts_random` is false.
  std::vector<std::string> initials = {};
  bool starts_random = true;
  std::vector<std::string> fused_forms = {};  ///< forms with kernels of the CPU that fuse time steps
  int device_levels = 0;                      ///< most time steps that its device kernels fuse; 0: it has none

  /// Quantities and stages of a problem, where they depend on its form or parameters; empty: those above.
  std::function<Step(const Problem&)> step = {};
  /// The value of a quantity at each global point at time 0, for a word of `initials`, and of points beyond a grid that
  /// does not wrap around, which keep it; none: what `random` and `id` say. Empty: none everywhere.
  std::function<InitialValue(const Problem&, int quantity)> initial = {};
  /// The exact solution of a quantity after some steps, on a box of global cells; null where it is not known.
  std::function<std::function<double(const Index&)>(const Problem&, int quantity, const Box& cells, std::int64_t steps)>
      exact = {};
  /// Kernels; empty: those of SweepSpec::run.
  std::function<std::unique_ptr<Sweeper>(const KernelContext&)> open = {};
  /// Kernels of instruction sets and devices that `open` and `device` refer to; null: the app brings none.
  const AppKernels* kernels = nullptr;
  /// For sweeps in place: the sweep as a plain loop over the whole grid on one rank; runs must match it bit for bit.
  std::function<void(const SweepArgs&)> plain = {};
  /// Kernels of devices.
  std::function<DeviceKernel(const Problem&)> device = {};
  /// Names of numbers that all ranks have alike, as a time step or the coefficients of a Krylov method. Zeros at time
  /// 0; sweeps read them in SweepArgs::scalars. `update` brings them up to date before each stage; it has no other
  /// state.
  std::vector<std::string> scalars = {};
  std::function<void(const Problem&, const StageStart&, std::span<double> scalars)> update = {};
  /// Whether the loop that a stage opens, or with `stage` -1 the run, has done enough. `reduced` holds the latest
  /// numbers of the reductions of the loop's stages, or of all, one after the other; the scalars are those of the last
  /// stage.
  /// Null: a run ends after its number of steps.
  std::function<bool(const Problem&, int stage, std::span<const double> reduced, std::span<const double> scalars)>
      finished = {};
  /// Whether `finished` can end a run of this problem before its steps are done.
  std::function<bool(const Problem&)> ends_early = {};
  /// Why a candidate cannot be, beyond what follows from its stages; empty when it can.
  std::function<std::string(const Candidate&)> illegal = {};
  /// Entries that this app adds to a record.
  std::function<std::vector<RecordEntry>(const Problem&, const Sweeper&, const FieldReader&)> entries = {};
};

/// Quantities, reductions and stages of a problem, checked, element sizes filled in.
/// @throws UsageError as resolved() does.
Step step_of(const App& app, const Problem& problem);

/// All apps, in the order in which they were added.
const std::vector<const App*>& apps();
/// @throws UsageError naming the nearest valid names.
const App& find_app(const std::string& name);
/// @throws UsageError for an app that cannot be run.
void check_app(const App& app);
/// Make an app known by its name. It is copied.
/// @throws UsageError for a name that is taken or an app that cannot be run.
void add_app(const App& app);
/// Make an app of another program known, in place of one declared earlier under its name. Not while others use it.
/// @throws UsageError as add_app() does.
void declare_app(const App& app);

/// Parameters of an app with those that every app has: initial, seed.
std::vector<Parameter> parameters_of(const App& app);

/// Initial data that every app has, at a global point; defined outside the grid too.
double random_value(std::uint64_t seed, int quantity, const GridSpec& grid, const Index& point);
double id_value(const GridSpec& grid, const Index& point);
/// What a problem starts with, at global points of a box for the app's own words, at any for others.
std::function<double(const Index& point)> initial_values(const App& app, const Problem& problem, int quantity,
                                                         const Box& points);

}  // namespace haloscope
