#include "haloscope/runner/library_call.hpp"

#include <cstdlib>
#include <iostream>
#include <set>

#include "haloscope/comm/text.hpp"
#include "haloscope/error.hpp"

namespace haloscope {

namespace {

/// HALOSCOPE_STRATEGY of rank 0; "" where it is not set. Collective.
std::string strategy_of_environment(MPI_Comm comm) {
  const char* const set = std::getenv("HALOSCOPE_STRATEGY");
  return text_of_rank(comm, 0, set != nullptr ? set : "");
}

/// Once for each strategy that is overridden, on rank 0.
void say_overridden(MPI_Comm comm, const std::string& by, const Strategy& strategy) {
  static std::set<std::string> said;
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  if (rank == 0 && said.insert(to_string(strategy)).second)
    std::cerr << "haloscope: HALOSCOPE_STRATEGY=" << by << " instead of " << to_string(strategy) << std::endl;
}

}  // namespace

Strategy chosen_strategy(MPI_Comm comm, const Strategy& given) {
  const std::string text = strategy_of_environment(comm);
  if (text.empty()) return given;
  try {
    const Strategy strategy(text);
    say_overridden(comm, text, given);
    return strategy;
  } catch (const UsageError& error) {
    throw UsageError("HALOSCOPE_STRATEGY: " + std::string(error.what()));
  }
}

std::string describe_exchange(const Strategy& strategy, const Plan& plan, const Link& link) {
  const std::string more = link.report();
  return to_string(strategy) + ": " + std::to_string(plan.messages_out()) + " messages and " +
         std::to_string(plan.bytes_out()) + " bytes out of rank " + std::to_string(plan.rank) + " an exchange" +
         (more.empty() ? "" : "; " + more);
}

}  // namespace haloscope
