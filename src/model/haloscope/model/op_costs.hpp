// Costs of the operations of one rank's program, in seconds.
#pragma once

#include <span>
#include <vector>

#include "haloscope/model/timeline.hpp"
#include "haloscope/model/unit_costs.hpp"

namespace haloscope::model {

/// The location of a class's rank, for the messages of one stage's plan.
struct RankLocation {
  int ranks_on_socket = 1;
  double ranks_on_device = 1;
  std::span<const char> far;        ///< it goes to another node
  std::span<const double> flights;  ///< seconds it travels
  std::vector<double> held;         ///< receiver-side part of the flight, spent in calls, 0 to 1
};

/// A rank's program of one stage, with everything that its costs depend on.
struct StageProgram {
  const Program* program = nullptr;
  const Plan* plan = nullptr;
  std::span<const Traffic> traffic;              ///< of the plan's messages
  std::span<const std::vector<Traffic>> copies;  ///< of the program's copy sets
  int first_message = 0;                         ///< of the stage, among the messages of all stages
};

/// Appends a program's operations with their costs to `actions`, in the program's order; messages have their numbers
/// among the messages of all stages.
void price_program(const StageProgram& of, const StageUnitCosts& prices, const RankLocation& where,
                   std::vector<TimedOp>& actions);

/// The flight of each outgoing message of a plan, by message; messages of `eager` bytes or more advance only inside
/// calls.
std::vector<Flight> price_flights(const Plan& plan, std::span<const Traffic> traffic, const StageUnitCosts& prices,
                                  const RankLocation& where, double eager);

}  // namespace haloscope::model
