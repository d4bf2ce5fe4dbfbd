// The fastest exchange for a grid by a machine profile, with an interval and the choices that are equally fast.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "haloscope/model/advise.hpp"

namespace haloscope::model {

/// The arguments of find_best().
struct BestQuestion {
  Choice choice =
      {};  ///< app, grid, ranks, threads and so on; find_best() varies strategy, schedule, depth and substeps
  bool assumed_app = false;      ///< the program has named no app; this one represents it
  std::vector<int> depths = {};  ///< time steps per exchange to choose from, each >= 1; empty: usual_depths()
  std::optional<double> seconds_per_cell = {};  ///< of the program's own sweep; replaces the cost in the profile
  bool fused = false;            ///< the program can apply all sub-steps of a deep halo tile by tile in the cache
  std::optional<int> halo = {};  ///< ghost layers that the fields have room for; none: any
  bool shared_memory = true;     ///< fields may lie in memory that the ranks of a node share
  int samples = usual_samples;
  std::string cpu = {}, mpi_library = {};         ///< of the calling program; "": not compared with the profile's
  std::optional<std::vector<Choice>> among = {};  ///< candidates to compare; none: all
};

/// The app that represents a program that names none, by dimensions.
/// @throws UsageError for dimensions that no app represents.
std::string standard_app(int dims);

/// Ghost layers that the stencils of a choice need for its depth, the widest of them.
int layers_of(const Choice& choice);

struct BestAnswer {
  Prediction prediction;           ///< of the choice that is predicted fastest, with interval
  std::vector<Choice> equals;      ///< choices that this profile cannot distinguish from it, fastest first
  std::vector<std::string> notes;  ///< assumptions, costs out of range
};

/// @throws UsageError for an invalid question, UnavailableError when the profile lacks a cost that all choices need.
/// Cost: a prediction of every legal choice, of which there are thousands: a fraction of a second, seconds for
/// thousands of ranks.
BestAnswer find_best(const BestQuestion& question, const Profile& profile);

}  // namespace haloscope::model
