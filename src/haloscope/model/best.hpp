// The fastest exchange for a grid by a machine profile, and how sure that is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "haloscope/model/advise.hpp"

namespace haloscope::model {

/// What is asked for.
struct BestQuestion {
  Choice choice = {};  ///< app, grid, ranks, threads and so on; strategy, schedule, depth and substeps are to be found
  bool assumed_app = false;      ///< the app only stands for a program that has named none
  std::vector<int> depths = {};  ///< time steps per exchange to choose from, each >= 1; empty: usual_depths()
  std::optional<double> seconds_per_cell = {};  ///< of the program's own sweep; replaces what the profile says
  bool fused = false;            ///< the program can apply all sub-steps of a deep halo tile by tile in the cache
  std::optional<int> halo = {};  ///< ghost layers that the fields have room for; none: any
  bool shared_memory = true;     ///< fields may lie in memory that the ranks of a node share
  int samples = usual_samples;
  std::string cpu = {}, mpi_library = {};         ///< of the program that asks; "": not compared with the profile's
  std::optional<std::vector<Choice>> among = {};  ///< candidates to look at; none: all
};

/// The app that stands for a program that names none, by dimensions.
/// @throws UsageError for dimensions that no app stands for.
std::string standard_app(int dims);

/// Ghost layers that the stencils of a choice need for its depth, the widest of them.
int layers_of(const Choice& choice);

struct BestAnswer {
  Prediction prediction;           ///< of the choice that is predicted fastest, with interval
  std::vector<Choice> equals;      ///< that this profile cannot tell from it, fastest first
  std::vector<std::string> notes;  ///< assumptions, costs out of range
};

/// @throws UsageError for a question that cannot be right, UnavailableError when the profile lacks what all choices
///         need.
/// Cost: a prediction of every legal choice, of which there are thousands: a fraction of a second, seconds for
/// thousands of ranks.
BestAnswer find_best(const BestQuestion& question, const Profile& profile);

}  // namespace haloscope::model
