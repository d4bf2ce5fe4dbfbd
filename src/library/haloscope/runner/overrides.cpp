#include "haloscope/runner/overrides.hpp"

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <set>

#include "haloscope/comm/text.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/agree.hpp"

namespace haloscope {

namespace {

/// Returns a variable of rank 0's environment; "" where it is not set. Collective.
std::string of_environment(MPI_Comm comm, const char* name) {
  const char* const set = std::getenv(name);
  return text_of_rank(comm, 0, set != nullptr ? set : "");
}

/// Reports an override, once for each overridden strategy, on rank 0.
void say_overridden(MPI_Comm comm, const std::string& by, const Strategy& strategy) {
  static std::mutex mutex;
  static std::set<std::string> reported;
  const std::lock_guard lock(mutex);
  if (rank_in(comm) == 0 && reported.insert(to_string(strategy)).second)
    std::cerr << "haloscope: HALOSCOPE_STRATEGY=" << by << " instead of " << to_string(strategy) << std::endl;
}

}  // namespace

Strategy chosen_strategy(MPI_Comm comm, const Strategy& requested) {
  const std::string text = of_environment(comm, "HALOSCOPE_STRATEGY");
  if (text.empty()) return requested;
  try {
    const Strategy strategy(text);
    say_overridden(comm, text, requested);
    return strategy;
  } catch (const UsageError& error) {
    throw UsageError("HALOSCOPE_STRATEGY: " + std::string(error.what()));
  }
}

bool chosen_guard(MPI_Comm comm, bool requested) {
  static std::atomic<bool> reported = false;
  const std::string text = of_environment(comm, "HALOSCOPE_GUARD");
  if (text.empty()) return requested;
  if (text != "0" && text != "1") throw UsageError("HALOSCOPE_GUARD is '" + text + "'; it is 1 (guard halos) or 0");
  if (text == "1" && rank_in(comm) == 0 && !reported.exchange(true))
    std::cerr << "haloscope: HALOSCOPE_GUARD=1: stale halos are poisoned" << std::endl;
  return text == "1";
}

bool may_use_huge_pages() {
  const char* const set = std::getenv("HALOSCOPE_HUGE_PAGES");
  const std::string text = set != nullptr ? set : "";
  if (text != "" && text != "0" && text != "1")
    throw UsageError("HALOSCOPE_HUGE_PAGES is '" + text + "'; it is 1 (move large arrays to huge pages) or 0");
  return text != "0";
}

std::string describe_exchange(const Strategy& strategy, const Plan& plan, const Link& link) {
  const std::string more = link.report();
  const std::int64_t messages = plan.messages_out();
  return to_string(strategy) + ": rank " + std::to_string(plan.rank) + " sends " + std::to_string(messages) +
         (messages == 1 ? " message, " : " messages, ") + std::to_string(plan.bytes_out()) + " bytes, per exchange" +
         (more.empty() ? "" : "; " + more);
}

}  // namespace haloscope
