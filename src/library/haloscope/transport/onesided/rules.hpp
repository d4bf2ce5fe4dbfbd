// Rules of one-sided transports for options that exclude each other.
#pragma once

#include "haloscope/extend/transport_traits.hpp"

namespace haloscope {

inline std::vector<OptionRule> one_window_or_many() {
  return one_of({"single", "per-message"}, "there is one window or one per message; drop one of them");
}

inline std::vector<OptionRule> one_readiness() {
  auto rules = one_of({"message", "flag", "barrier"}, "readiness is announced in one of these ways; drop one of them");
  rules.push_back({{"put", "barrier"}, "after a barrier the receiver fetches; drop one of them"});
  return rules;
}

/// @param requests  true: the transport supports gets with requests.
inline std::vector<OptionRule> one_sided_rules(const std::vector<std::vector<OptionRule>>& own, bool requests = false) {
  std::vector<OptionRule> rules = one_of({"put", "get"}, "the sender puts or the receiver gets; drop one of them");
  for (const auto& more : own) rules.insert(rules.end(), more.begin(), more.end());
  if (requests)
    rules.push_back({{"put", "rget"}, "rget makes the receiver fetch; drop one of them"});
  else
    rules.push_back(
        {{"rget"},
         "MPI allows requests only in passive-target epochs (MPI-3.1, 11.3.5), and waiting for each has a use "
         "only where the epoch lasts; use rma-lockall:rget"});
  return rules;
}

}  // namespace haloscope
