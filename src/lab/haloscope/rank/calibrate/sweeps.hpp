// Points of a calibration for each sweep of a step.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "haloscope/rank/measure/run.hpp"
#include "haloscope/stage.hpp"

namespace haloscope {

/// @param swept  cells that a sweep covers in a step. @param samples  seconds of one.
inline nlohmann::json swept_point(const Run& run, std::int64_t swept, const std::vector<double>& samples) {
  return {{"cells", run.plan().own_cells().volume()}, {"swept_cells", swept}, {"sweep_s", samples}};
}

/// Returns true if two sweeps are the same code on the same fields.
inline bool alike(const SweepSpec& a, const SweepSpec& b) {
  const auto same = [](const Access& x, const Access& y) { return x.quantity == y.quantity && x.layers == y.layers; };
  return a.name == b.name && a.writes == b.writes &&
         std::equal(a.reads.begin(), a.reads.end(), b.reads.begin(), b.reads.end(), same);
}

/// Returns points of all sweeps of a step, named by stage and sweep; sweeps of several stages are measured once.
/// @param measure  the point of a sweep, by the numbers of its stage and itself.
template <class Measure>
nlohmann::json points_of_sweeps(const Step& step, Measure measure) {
  nlohmann::json points = nlohmann::json::array();
  std::vector<const SweepSpec*> measured;
  for (int stage = 0; stage < static_cast<int>(step.stages.size()); ++stage) {
    const Stage& spec = step.stages[stage];
    for (int sweep = 0; sweep < static_cast<int>(spec.sweeps.size()); ++sweep) {
      const SweepSpec& one = spec.sweeps[sweep];
      const auto known =
          std::find_if(measured.begin(), measured.end(), [&](const SweepSpec* m) { return alike(*m, one); });
      nlohmann::json point = known != measured.end() ? points[known - measured.begin()] : measure(stage, sweep);
      point["sweep"] = spec.name + "/" + one.name;
      points.push_back(point);
      measured.push_back(&one);
    }
  }
  return points;
}

}  // namespace haloscope
