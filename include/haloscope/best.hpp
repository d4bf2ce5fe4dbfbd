// The library call: which strategy, schedule, depth and substeps to use for a grid, by a machine profile.
//
// The model is that of `haloscope advise`; every legal choice is priced.
#pragma once

#include "haloscope/cxx20.hpp"

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "haloscope/choice.hpp"
#include "haloscope/field.hpp"
#include "haloscope/which_mpi.hpp"

namespace haloscope {

/// What the grid and the field do not say about a program.
struct BestOptions {
  /// The app whose sweep is like the program's; empty: laplace2d or laplace3d.
  std::string app = {};
  std::string form = {};        ///< kernel form of the app; empty: its first
  double seconds_per_cell = 0;  ///< of the program's own sweep, one cell and step on one thread while all ranks work;
                                ///< > 0 replaces what the profile says of the app's
  bool fused = false;  ///< whether the program can apply all sub-steps of a deep halo tile by tile in the cache
  ///< (substeps blocked), as fast as the app does
  int threads = 1;               ///< per rank, >= 1
  int nodes = 0;                 ///< that the ranks are split over; 0: nodes of the profile, filled one after another
  std::vector<int> depths = {};  ///< time steps per exchange to choose from, each >= 1; empty: 1, 2, 4, 8, 16
};

/// Everything that the choice depends on.
struct BestRequest {
  GridSpec grid = {};
  int ranks = 1;
  std::string profile = {};       ///< path of a machine profile, as `haloscope calibrate -o` writes it
  std::string process_grid = {};  ///< rule or explicit; empty: the app's default rule
  std::string real = "f64";       ///< "f64" or "f32"
  int halo = -1;                  ///< ghost layers that the fields have room for; -1: any, they are made afterwards
  bool shared_memory = true;      ///< whether fields may lie in memory that the ranks of a node share
  BestOptions options = {};
};

/// The request for a grid and the type of a field's points; Grid and Field have shorter forms of best().
/// @throws UsageError for points other than single numbers of 4 or 8 bytes: the model has no costs for them.
BestRequest best_request(const Layout& layout, const Quantity& quantity, const std::string& profile,
                         const BestOptions& options = {});

/// The choice that is predicted fastest, and how sure that is.
struct Best {
  Choice choice;                                  ///< strategy, schedule, depth, substeps and what they were chosen for
  double time_s = 0;                              ///< predicted, per time step
  std::optional<std::array<double, 2>> interval;  ///< 90 % of it; none where the profile gives none
  std::string reason;                             ///< what the time is made of
  std::vector<Choice> equals;                     ///< that this profile cannot tell from it, fastest first
  std::vector<std::string> notes;                 ///< what a reader must know: assumptions, costs out of range
  std::string profile;                            ///< the profile's name
  int halo = 1;                                   ///< ghost layers on every side that a field needs for it
  MemoryKind memory = MemoryKind::own;            ///< that a field needs for it

  /// Whether the profile tells it from the runner-up. If not, measure it and its equals with `haloscope run`.
  bool wins() const { return equals.empty(); }
};

/// Local; legal before MPI_Init and in programs without MPI.
/// @throws UsageError for a request or a profile that cannot be right; UnavailableError when the profile lacks what
///         every choice needs (the app's kernel: name another app, or give seconds_per_cell).
/// Cost: prices every legal choice, thousands of them: a fraction of a second, seconds for thousands of ranks.
Best best(const BestRequest& request);

/// The same for all ranks of a communicator: rank 0 answers its own request, the others wait for the answer.
/// Collective over `comm`; two broadcasts. All ranks get the same answer, or the same error.
Best best(MPI_Comm comm, const BestRequest& request);

}  // namespace haloscope
