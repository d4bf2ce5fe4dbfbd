// The rounds of a pace that a launch has time for.
#pragma once

#include <algorithm>
#include <cmath>

namespace haloscope {

constexpr double pace_share =
    0.018;  // of a launch's time: the last rounds may cost more than expected, and 2 % are promised
constexpr int stop_rounds = 15, few_rounds = 3;                   // most rounds at one stop, and in succession
constexpr double guessed_setup_s = 5e-3, guessed_round_s = 1e-3;  // before they are known

/// The time that a launch has spent on its pace so far.
struct PaceSpent {
  double elapsed_s = 0;  ///< since the program began
  double planned_s = 0;  ///< minimum time of the launch
  double spent_s = 0;    ///< on set-up and rounds
  int rounds = 0;        ///< of the whole launch

  /// Returns the rounds that keep the share, few at a time, since a guess may be wrong.
  int affordable() const {
    const double round_s = rounds > 0 ? spent_s / rounds : guessed_round_s;
    const double setup_s = rounds > 0 ? 0 : guessed_setup_s;
    const double left_s = pace_share * std::max(elapsed_s, planned_s) - spent_s - setup_s;
    return static_cast<int>(std::clamp(std::floor(left_s / round_s), 0.0, static_cast<double>(few_rounds)));
  }
};

}  // namespace haloscope
