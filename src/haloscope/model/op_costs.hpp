// Programs priced: the operations of one rank's program with the seconds that each takes.
#pragma once

#include <span>
#include <vector>

#include "haloscope/model/timeline.hpp"
#include "haloscope/model/unit_costs.hpp"

namespace haloscope::model {

/// Where the rank of a class is, for the messages of one stage's plan.
struct RankLocation {
  int ranks_on_socket = 1;
  double ranks_on_device = 1;
  std::span<const char> far;        ///< it goes to another node
  std::span<const double> flights;  ///< seconds it travels
  std::vector<double> held;         ///< the part of that its receiver must spend in calls, 0 to 1
};

/// A rank's program of one stage, and what its prices depend on.
struct StageProgram {
  const Program* program = nullptr;
  const Plan* plan = nullptr;
  std::span<const Traffic> traffic;              ///< of the plan's messages
  std::span<const std::vector<Traffic>> copies;  ///< of the program's copy sets
  int first_message = 0;                         ///< of the stage, among those of all stages
};

/// Appends a program's operations with their prices to `actions`, in the program's order; messages have their numbers
/// among those of all stages.
void price_program(const StageProgram& of, const StageUnitCosts& prices, const RankLocation& where,
                   std::vector<TimedOp>& actions);

/// How long each outgoing message of a plan travels, by message; those of `eager` bytes or more advance only inside
/// calls.
std::vector<Flight> price_flights(const Plan& plan, std::span<const Traffic> traffic, const StageUnitCosts& prices,
                                  const RankLocation& where, double eager);

}  // namespace haloscope::model
