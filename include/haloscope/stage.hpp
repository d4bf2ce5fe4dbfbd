// Time steps and their stages: each is an exchange, the sweeps that need it, and optional reductions.
#pragma once

#include "haloscope/extend/cxx20.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "haloscope/extend/plan.hpp"
#include "haloscope/extend/words.hpp"

namespace haloscope {

struct SweepArgs;

/// The read access of a sweep to a quantity: the points that touch a written one, and `layers` >= 0 further layers
/// around them. For two quantities with the same centring the touching point is the point itself; a cell touches two
/// faces in a dimension, and a face two cells.
struct Access {
  int quantity = 0;  ///< number in the step
  int layers = 0;
  Widths reach{};  ///< per dimension, cells read around a region of written cells; resolved() fills it in
  std::optional<Centring> of = {};  ///< only for written points of this centring; empty: for all
  bool concerns(Centring written) const { return !of || *of == written; }
};

/// One pass over the points of a box.
struct SweepSpec {
  std::string name = {};
  std::vector<Access> reads = {};
  std::vector<int> writes = {};  ///< quantities; one with two slots is read in one and written in the other. Empty
                                 ///< only for a sweep that only gathers numbers for a reduction
  bool box_stencil = false;      ///< reads edges and corners of its neighbourhood, else a star
  bool in_place = false;         ///< line by line, x rising, new values used as soon as they exist (Gauss-Seidel)
  double flops_per_point = 0;    ///< for rates in records
  /// Computes part of the sweep on one thread; empty where App::open provides the kernels.
  std::function<void(const SweepArgs&)> run = {};
  /// The same for fields in the memory of a device: enqueues on SweepArgs::device_stream the kernel that computes
  /// `region`, whose arguments are addresses of device memory, and returns immediately. The device is current. Where
  /// SweepArgs::numbers are requested, the kernel writes the numbers of every cell. For a Stepper; apps of this
  /// library launch by their sweeper.
  std::function<void(const SweepArgs&)> launch = {};
  /// Returns the suffix of the sweep's name in traces of a time step, such as the dimension that it goes along;
  /// empty: none.
  std::function<std::string(std::int64_t step)> in_step = {};
};

enum class ReduceOp : std::uint8_t { sum, max, min };
HALOSCOPE_WORDS(ReduceOp, "operation of a reduction", "sum", "max", "min");

/// The time at which ranks wait for the result: immediately; at the end of the program of the stage or of a later
/// stage of the step, during which sweeps and exchanges run; or at the end of the next execution of the stage.
enum class ReduceMode : std::uint8_t { blocking, nonblocking, deferred };
HALOSCOPE_WORDS(ReduceMode, "mode of a reduction", "blocking", "nonblocking", "deferred");

/// The way in which the numbers of ranks become one result: the MPI library reduces them; every rank gathers the
/// numbers of all ranks and combines them in the order of ranks, so that sums do not depend on the library; or the
/// same with lists, whose lengths every rank gathers before.
enum class ReduceBy : std::uint8_t { reduce, gather, lists };
HALOSCOPE_WORDS(ReduceBy, "way of a reduction", "reduce", "gather", "lists");

/// The type in which gathered numbers are sent: doubles, integers of 4 bytes, characters of 1 byte (0 to 255). As
/// integers and characters, numbers lose their fraction and are limited to the range of the type.
enum class NumberType : std::uint8_t { real, integer, character };
HALOSCOPE_WORDS(NumberType, "type of a reduction's numbers", "real", "integer", "character");

/// k numbers that a stage's sweeps gather over all points of all ranks.
struct Reduction {
  std::string name;
  ReduceOp op = ReduceOp::sum;  ///< a NaN of any sweep or rank makes the result a NaN, if of type `real`
  int numbers = 1;              ///< k >= 1
  ReduceMode mode = ReduceMode::blocking;
  int sweep = -1;       ///< the sweep of the stage that gathers them, possibly for several reductions; -1: the last
  int collectives = 1;  ///< calls that the numbers are divided among evenly, as in codes that reduce each separately
  ReduceBy by = ReduceBy::reduce;
  NumberType type = NumberType::real;  ///< type sent by `gather` and `lists`
  std::string until = {};              ///< nonblocking: the later stage at whose end ranks wait; "": the stage itself
  bool last_only = false;              ///< only in the last step of a run, where nothing else depends on it
  std::string scheme = {};  ///< of pipelines: way of numbers to the last rank, see reduction_schemes(); "": first

  /// Returns the calls of the MPI library that combine its numbers once.
  int calls() const { return by == ReduceBy::lists ? 2 * collectives : collectives; }
};

/// A way to combine a reduction's numbers over the ranks of a pipeline, which are in different steps at any one time.
struct ReductionScheme {
  std::string name;
  std::string summary;  ///< one sentence for help texts
};
const std::vector<ReductionScheme>& reduction_schemes();

/// An exchange, the sweeps that need it, and the reductions that end them.
struct Stage {
  std::string name = "step";
  std::vector<SweepSpec> sweeps;
  std::vector<Reduction> reductions = {};
  /// Reductions of earlier stages that end with this one, counted from this stage's first reduction and so negative;
  /// resolved() fills it in.
  std::vector<int> awaited = {};
  /// The quantities exchanged first, with their widths. Empty optional: all quantities that the sweeps read beyond
  /// the rank's own points, as wide as they need them.
  std::optional<std::vector<Access>> exchange = {};
  /// Number of stages, from this one on, that are repeated until App::finished returns true, `least` to `most` times
  /// a step; 0: it does not open a loop.
  int repeats = 0;
  std::int64_t least = 1, most = 1000000;
};

/// All quantities of an app and the stages of one time step.
struct Step {
  std::vector<Quantity> quantities;
  std::vector<Stage> stages;

  /// Returns the slots of a double-buffered app, else 1: the stage that writes double-buffered quantities changes
  /// their slots.
  int slots() const;
};
/// Stages that run together, once a step or, in a loop, several times: [first, end), in order.
struct StageGroup {
  int first = 0, end = 1;
};
std::vector<StageGroup> groups_of(const Step& step);
/// Returns true if some of a step's stages run several times.
bool has_loops(const Step& step);
/// Returns true if a step is one sweep over one quantity, as in a plain stencil code.
bool is_one_sweep(const Step& step);
/// Returns the lifetime of each quantity in a step: the stages from its first use to its last, loops as a whole.
/// Empty for a quantity whose values outlive the step. A *temporary* is a quantity that each step writes before it
/// reads it, with one slot and without fixed values beyond the grid's edges that a sweep could read.
/// @param periodic  of the grid.
std::vector<std::optional<StageGroup>> lifetimes_of(const Step& step, const std::array<bool, 3>& periodic);

/// The memory of temporaries between their last use and their first: it stays, or it is returned to the system, and
/// the temporaries start as zeros.
enum class Temporaries : std::uint8_t { kept, freed };
HALOSCOPE_WORDS(Temporaries, "handling of temporaries", "kept", "freed");

/// Returns true if a stage writes double-buffered quantities.
bool flips(const Step& step, int stage);

/// Returns the step with Access::reach and Stage::awaited filled in.
/// @throws UsageError for a step that cannot run: a name used twice, a quantity that does not exist, a stage
///         without sweeps, a sweep that writes nothing or reads neighbours of points that it overwrites (unless in
///         place), double-buffered quantities written by several stages or twice in one, a reduction of a sweep that
///         does not exist, in a way that its mode, its type or a sweep in place does not allow, or until a stage that
///         does not follow in the same loop.
Step resolved(Step step, int dims, const std::string& app);

/// Returns a step of one double-buffered quantity and one sweep.
Step stencil_step(int dims, int radius, bool box_stencil, double flops_per_point = 0);

/// Returns the centrings of the points that a sweep visits: of each quantity that it writes, or cells where it only
/// gathers.
std::vector<Centring> swept_centrings(const SweepSpec& sweep, const std::vector<Quantity>& quantities);

/// Returns true if a sweep writes a quantity.
bool writes(const SweepSpec& sweep, int q);

/// Returns the points of a quantity that a sweep writes for a box of cells. A point that two cells share belongs to
/// the higher one.
/// @param whole  the region of the whole sweep, of which `box` may be a part: its upper end has one plane more.
Box points_of(const Box& box, const Box& whole, Centring centring, int dims);

/// Returns the layers of cells beyond the rank's own points that each sweep of a stage must cover, so that later
/// sweeps find the values that they read: by step of a program of `steps` steps, then by sweep. Applies only to sides
/// with a neighbour.
std::vector<std::vector<Widths>> growths(const Stage& stage, int steps);

/// Returns the layers that an exchange must fill, by quantity of the step, for `steps` steps of a stage; 0: not
/// exchanged.
std::vector<Widths> halos_of(const Step& step, const Stage& stage, int steps);

/// Returns the layers around the own points that fields must have room for: layers that are exchanged and layers that
/// sweeps read or write, including quantities that they compute beyond the own points for later sweeps.
std::vector<Widths> room_of(const Step& step, const Stage& stage, int steps);
/// The same for all stages: the maximum by quantity.
std::vector<Widths> room_of(const Step& step, int steps);

}  // namespace haloscope
