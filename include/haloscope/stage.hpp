// What a time step is made of: stages, each an exchange, the sweeps that need it, and perhaps reductions.
#pragma once

#include "haloscope/cxx20.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "haloscope/plan.hpp"
#include "haloscope/words.hpp"

namespace haloscope {

struct SweepArgs;

/// A sweep reads a quantity at the points that touch a written one, and in `layers` >= 0 further layers around them.
/// For two quantities with the same centring the touching point is the point itself; a cell touches two faces in a
/// dimension, and a face two cells.
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
  std::vector<int> writes = {};  ///< quantities; one with two slots is read in one and written in the other. Empty only
                                 ///< for a sweep that a reduction gathers numbers of
  bool box_stencil = false;      ///< reads edges and corners of its neighbourhood, else a star
  bool in_place = false;         ///< line by line, x rising, new values used as soon as they exist (Gauss-Seidel)
  double flops_per_point = 0;    ///< for rates in records
  /// Computes part of the sweep on one thread; empty where App::open provides the kernels.
  std::function<void(const SweepArgs&)> run = {};
  /// The same for fields in the memory of a device: gives SweepArgs::device_stream the kernel that computes `region`,
  /// whose arguments are addresses there, and returns at once. The device is current. Where SweepArgs::numbers are
  /// wanted, it writes those of every cell. For a Stepper; apps of this library launch by their sweeper.
  std::function<void(const SweepArgs&)> launch = {};
  /// What a trace adds to its name in a time step, as the dimension that it goes along; empty: nothing.
  std::function<std::string(std::int64_t step)> in_step = {};
};

enum class ReduceOp : std::uint8_t { sum, max, min };
HALOSCOPE_WORDS(ReduceOp, "operation of a reduction", "sum", "max", "min");

/// When ranks wait for the result: at once; at the end of the stage's program or that of a later stage of the step,
/// sweeps and exchanges running meanwhile; or at the end of the next execution of the stage.
enum class ReduceMode : std::uint8_t { blocking, nonblocking, deferred };
HALOSCOPE_WORDS(ReduceMode, "mode of a reduction", "blocking", "nonblocking", "deferred");

/// How the numbers of ranks become one result: the MPI library reduces them; or every rank gathers those of all ranks
/// and combines them in the order of ranks, so that sums do not depend on the library; or it does so with lists, whose
/// lengths it gathers before.
enum class ReduceBy : std::uint8_t { reduce, gather, lists };
HALOSCOPE_WORDS(ReduceBy, "way of a reduction", "reduce", "gather", "lists");

/// What gathered numbers travel as: doubles, integers of 4 bytes, characters of 1 byte (0 to 255). Other numbers lose
/// their fraction and stay within that range.
enum class NumberType : std::uint8_t { real, integer, character };
HALOSCOPE_WORDS(NumberType, "type of a reduction's numbers", "real", "integer", "character");

/// k numbers that a stage's sweeps gather over all points of all ranks.
struct Reduction {
  std::string name;
  ReduceOp op = ReduceOp::sum;  ///< a NaN of any sweep or rank makes the result one, but for integers and characters
  int numbers = 1;              ///< k >= 1
  ReduceMode mode = ReduceMode::blocking;
  int sweep = -1;       ///< the sweep of the stage that gathers them, perhaps for several reductions; -1: its last
  int collectives = 1;  ///< calls that the numbers are divided among evenly, as in codes that reduce them one by one
  ReduceBy by = ReduceBy::reduce;
  NumberType type = NumberType::real;  ///< what `gather` and `lists` send
  std::string until = {};              ///< nonblocking: the later stage at whose end it is awaited; "": its own
  bool last_only = false;              ///< only in the last step of a run, where nothing else depends on it
  std::string scheme = {};  ///< of pipelines: how numbers get to the last rank, see reduction_schemes(); "": the first

  /// Calls of the MPI library that combine its numbers once.
  int calls() const { return by == ReduceBy::lists ? 2 * collectives : collectives; }
};

/// How the ranks of a pipeline, which are in different steps at any one time, combine a reduction's numbers.
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
  /// Reductions of earlier stages that end with this one, counted from this stage's first and so negative; resolved()
  /// fills it in.
  std::vector<int> awaited = {};
  /// The quantities exchanged first, and how wide. Empty optional: everything that the sweeps read beyond the rank's
  /// own points, as wide as they need it.
  std::optional<std::vector<Access>> exchange = {};
  /// Stages that are carried out again and again, this one and those after it, until App::finished says so, `least` to
  /// `most` times a step; 0: it opens no such loop.
  int repeats = 0;
  std::int64_t least = 1, most = 1000000;
};

/// All quantities of an app and the stages of one time step.
struct Step {
  std::vector<Quantity> quantities;
  std::vector<Stage> stages;

  /// Slots of a double-buffered app, else 1: the stage that writes double-buffered quantities changes their slots.
  int slots() const;
};
/// The stages that are carried out together, once a step or, in a loop, several times: [first, end), in order.
struct StageGroup {
  int first = 0, end = 1;
};
std::vector<StageGroup> groups_of(const Step& step);
/// Whether some of a step's stages are carried out several times.
bool has_loops(const Step& step);
/// Whether a step is one sweep over one quantity: what a plain stencil code is.
bool is_one_sweep(const Step& step);
/// Where in a step each quantity holds something: the stages from its first use to its last, loops as a whole. Empty
/// for one whose values outlive the step. A *temporary* is one that each step writes before it reads it, that has one
/// slot and no fixed values beyond the grid's edges that a sweep could read.
/// @param periodic  of the grid.
std::vector<std::optional<StageGroup>> lifetimes_of(const Step& step, const std::array<bool, 3>& periodic);

/// What becomes of temporaries between their last use and their first: they stay, or their memory goes back to the
/// system, and they begin as zeros.
enum class Temporaries : std::uint8_t { kept, freed };
HALOSCOPE_WORDS(Temporaries, "handling of temporaries", "kept", "freed");

/// Whether a stage writes double-buffered quantities.
bool flips(const Step& step, int stage);

/// A step whose accesses know their reach.
/// @throws UsageError for a step that cannot run: two things of one name, a quantity that does not exist, a stage
///         without sweeps, a sweep that writes nothing or reads neighbours of what it overwrites (unless in place),
///         double-buffered quantities written by several stages or twice in one, a reduction of a sweep that does not
///         exist, in a way that its mode, its type or a sweep in place does not allow, or until a stage that does not
///         follow in the same loop.
Step resolved(Step step, int dims, const std::string& app);

/// A step of one double-buffered quantity and one sweep.
Step stencil_step(int dims, int radius, bool box_stencil, double flops_per_point = 0);

/// Centrings of the points that a sweep goes over: of each quantity that it writes, or cells where it only gathers.
std::vector<Centring> swept_centrings(const SweepSpec& sweep, const std::vector<Quantity>& quantities);

/// Whether a sweep writes a quantity.
bool writes(const SweepSpec& sweep, int q);

/// Points of a quantity that a sweep writes for a box of cells. A point that two cells share belongs to the higher one.
/// @param whole  the region of the whole sweep, of which `box` may be a part: its upper end has one plane more.
Box points_of(const Box& box, const Box& whole, Centring centring, int dims);

/// How many cells beyond the rank's own points each sweep of a stage must cover, so that later sweeps find what they
/// read: by step of a program of `steps` steps, then by sweep. Applies only to sides with a neighbour.
std::vector<std::vector<Widths>> growths(const Stage& stage, int steps);

/// Layers that an exchange must fill, by quantity of the step, for `steps` steps of a stage; 0: not exchanged.
std::vector<Widths> halos_of(const Step& step, const Stage& stage, int steps);

/// Layers around the own points that fields must have room for: those exchanged and those that sweeps read or write,
/// including quantities that they compute beyond the own points for later sweeps.
std::vector<Widths> room_of(const Step& step, const Stage& stage, int steps);
/// The same for all stages: the widest by quantity.
std::vector<Widths> room_of(const Step& step, int steps);

}  // namespace haloscope
