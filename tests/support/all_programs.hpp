// The plans and programs of all ranks of a layout for one stage.
#pragma once

#include <string>
#include <vector>

#include "haloscope/core/check.hpp"
#include "haloscope/extend/candidate.hpp"
#include "haloscope/extend/schedule.hpp"

namespace haloscope::test {

struct AllPrograms {
  Layout layout;
  Step step;
  std::vector<Plan> plans = {};
  std::vector<Program> programs = {};

  AllPrograms(const Layout& of_layout, const Step& of_step, const ExchangeSpec& spec, const std::string& schedule,
              const ScheduleOptions& options)
      : layout(of_layout), step(of_step) {
    for (int rank = 0; rank < layout.size(); ++rank) {
      plans.push_back(make_plan(layout, rank, spec));
      programs.push_back(find_schedule(schedule).make(step.stages[0], plans.back(), options));
    }
  }
  std::string finding() const { return check_programs(layout, step, plans, programs); }
};

/// The operations of a kind.
inline std::vector<int> ops_of(const Program& program, OpKind kind) {
  std::vector<int> found;
  for (int i = 0; i < static_cast<int>(program.ops.size()); ++i)
    if (program.ops[i].kind == kind) found.push_back(i);
  return found;
}

/// A five-point sweep in place.
inline Step in_place_step(const std::vector<Reduction>& reductions = {}) {
  Step step = stencil_step(2, 1, false);
  step.quantities[0].slots = 1;
  step.stages[0].sweeps[0].in_place = true;
  step.stages[0].reductions = reductions;
  return resolved(step, 2, "in-place");
}

}  // namespace haloscope::test
