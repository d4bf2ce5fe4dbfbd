// The time-step control of hydro3d: its scalars, from the numbers that the sweeps have gathered.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "davis2017/app/hydro3d/fields.hpp"
#include "haloscope/extend/app.hpp"

namespace haloscope::hydro {

/// Stages of a step.
enum StageNumber : int {
  stage_limits,
  stage_predict,
  stage_accelerate,
  stage_predict_again,  ///< with the next, once per further sub-cycle
  stage_accelerate_again,
  stage_cells,  ///< of the first dimension; nodes follow, then both of the other dimensions
  stage_nodes,
  stage_last = stage_cells + 5,
  stage_count
};

/// Returns true if a step ends with the summary that the studied code prints, in place of the totals.
bool summarises(const Problem& problem);

/// The positions of the numbers of a step's reductions, in order: rates, totals, faults, last totals or summary.
struct Numbers {
  explicit Numbers(const Problem& problem);
  int rates = 0, totals = rate_count;
  int faults;  ///< of the stages from stage_predict to stage_accelerate_again
  int last_totals, summary;
};

constexpr int most_cycles = 16;

enum Scalar : int {
  time_now,
  time_step,
  time_of_cycle,
  cycles,
  cycle,
  first_totals,
  histogram = first_totals + total_count,  ///< steps by their number of sub-cycles
  scalar_count = histogram + most_cycles
};

std::vector<std::string> scalar_names();

/// @throws Error for a cell without a physical state and for a time step that collapses, naming cell, step and time
///         step.
void update_clock(const Problem& problem, const StageStart& at, std::span<double> scalars);

bool has_enough(const Problem& problem, int stage, std::span<const double> scalars);
/// Returns true if a time or a replay ends the run.
bool ends_by_itself(const Problem& problem);

}  // namespace haloscope::hydro
