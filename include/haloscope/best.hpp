// The library call that recommends strategy, schedule, depth and substeps for a grid, from a machine profile.
//
// It uses the model of `haloscope advise`, and prices every legal choice.
#pragma once

#include "haloscope/extend/cxx20.hpp"

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "haloscope/choice.hpp"
#include "haloscope/extend/which_mpi.hpp"
#include "haloscope/field.hpp"
#include "haloscope/grid.hpp"

namespace haloscope {

/// Properties of a program that do not follow from its grid and field.
struct BestOptions {
  /// The app whose sweep resembles the program's; empty: laplace2d or laplace3d.
  std::string app = {};
  std::string form = {};        ///< kernel form of the app; empty: its first
  double seconds_per_cell = 0;  ///< of the program's sweep, per cell and step on one thread while all ranks work;
                                ///< above 0 it replaces the profile's cost of the app's sweep
  bool fused = false;           ///< the program can apply all sub-steps of a deep halo tile by tile in the cache
  ///< (substeps blocked), as fast as the app does
  int threads = 1;               ///< per rank, >= 1
  int nodes = 0;                 ///< that the ranks are split over; 0: nodes of the profile, filled sequentially
  std::vector<int> depths = {};  ///< time steps per exchange to choose from, each >= 1; empty: 1, 2, 4, 8, 16
};

/// All inputs of the choice.
struct BestRequest {
  GridSpec grid = {};
  int ranks = 1;
  std::string profile = {};       ///< path of a machine profile, as `haloscope calibrate -o` writes it
  std::string process_grid = {};  ///< rule or explicit; empty: the app's default rule
  std::string real = "f64";       ///< "f64" or "f32"
  int halo = -1;                  ///< ghost layers that the fields have room for; -1: any, allocated later
  bool shared_memory = true;      ///< fields may lie in memory that the ranks of a node share
  BestOptions options = {};
};

/// Returns the request for a grid and the type of a field's points; Grid and Field have shorter forms of best().
/// @throws UsageError for points other than single numbers of 4 or 8 bytes: the model has no costs for them.
BestRequest best_request(const Layout& layout, const Quantity& quantity, const std::string& profile,
                         const BestOptions& options = {});

/// The choice that is predicted fastest, and the certainty of that prediction.
struct Best {
  Choice choice;                                  ///< strategy, schedule, depth, substeps, with their request
  double time_s = 0;                              ///< predicted, per time step
  std::optional<std::array<double, 2>> interval;  ///< 90 % of it; none where the profile has none
  std::string reason;                             ///< the parts of the time
  std::vector<Choice> equals;                     ///< not distinguished from it by this profile, fastest first
  std::vector<std::string> notes;                 ///< assumptions, costs out of range
  std::string profile;                            ///< the profile's name
  int halo = 1;                                   ///< ghost layers on every side that a field needs for it
  MemoryKind memory = MemoryKind::own;            ///< that a field needs for it

  /// Returns true if the profile distinguishes the choice from the runner-up. If not, measure it and its equals
  /// with `haloscope run`.
  bool wins() const { return equals.empty(); }
};

/// Returns the choice predicted fastest for a request. Local; legal before MPI_Init and in programs without MPI.
/// @throws UsageError for an invalid request or profile; UnavailableError when the profile lacks a
///         cost that every choice needs (the app's kernel: name another app, or set seconds_per_cell).
/// Cost: prices every legal choice, thousands of them: a fraction of a second, seconds for thousands of ranks.
Best best(const BestRequest& request);

/// The same for all ranks of a communicator: rank 0 evaluates its request and broadcasts the result.
/// Collective over `comm`; two broadcasts. All ranks get the same result, or the same error.
Best best(MPI_Comm comm, const BestRequest& request);

/// Returns the strategy, schedule, depth and substeps that a machine profile predicts fastest, for a field of points
/// T that is not yet allocated, with the halo and memory that the field then needs. Collective over the grid's
/// communicator.
/// @param profile  path of a machine profile, as `haloscope calibrate` writes it.
/// @throws as best(const BestRequest&), on all ranks; UsageError for points not of 4 or 8 bytes.
/// Cost: rank 0 prices every choice (see best(const BestRequest&)); two broadcasts. Call it once, at start-up.
template <class T, int D>
Best best(const Grid<D>& grid, const std::string& profile, const BestOptions& options = {}) {
  const Quantity quantity{"u", static_cast<int>(sizeof(T))};
  return best(grid.comm(), best_request(grid.layout(), quantity, profile, options));
}

/// The same for an existing field: only depths that its halo has room for, and no strategy that needs shared memory
/// where it has none. With the result, Stepper(grid, {field}, best.choice, sweep) works, and so does
/// make_exchange(grid, {field}, best.choice.strategy, {.width = best.halo}).
/// Only the field's type, halo and memory matter; the sweep is taken from an app (see BestOptions).
template <int D>
Best best(const Grid<D>& grid, const FieldRef& field, const std::string& profile, const BestOptions& options = {}) {
  BestRequest request = best_request(grid.layout(), field.quantity, profile, options);
  request.halo = field.low[0];
  for (std::size_t d = 0; d < D; ++d) request.halo = std::min({request.halo, field.low[d], field.high[d]});
  for (const SlotView& slot : field.slots)
    request.shared_memory = request.shared_memory && in_shared_memory(slot.origin);
  return best(grid.comm(), request);
}

}  // namespace haloscope
