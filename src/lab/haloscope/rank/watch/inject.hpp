// Faults put in on purpose: delays, hangs, stops, deaths and errors at a chosen rank and step, for the tests of error
// handling.
#pragma once

#include <optional>
#include <string>

#include "haloscope/extend/words.hpp"
#include "haloscope/runner/runner.hpp"

namespace haloscope {

struct Fault {
  enum Kind { delay, hang, stop, kill, fail } kind = delay;
  int rank = 0;
  std::int64_t step = 0;  ///< the first program that starts at or after this step; -1: every one (delays only)
  double seconds = 0;
  std::optional<OpKind> op;  ///< only before operations of this kind
  bool spent = false;

  /// @param text  "KIND:rank=R,step=S,seconds=X[,op=NAME]" with KIND delay, hang, stop (until SIGCONT), kill or
  ///     fail (an exception).
  /// @throws UsageError.
  static Fault parse(const std::string& text);
  /// The runner's callback; `context` is the Fault.
  static void before(void* context, const Op& op, std::int64_t step);
};

HALOSCOPE_WORDS(Fault::Kind, "injected fault", "delay", "hang", "stop", "kill", "fail");

}  // namespace haloscope
