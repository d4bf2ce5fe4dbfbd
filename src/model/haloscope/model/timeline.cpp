#include "haloscope/model/timeline.hpp"

#include <algorithm>

namespace haloscope::model {

const char* to_string(Term term) {
  static constexpr const char* words[]{"compute", "pack",   "d2h",      "message",         "h2d",
                                       "unpack",  "copy",   "refetch",  "synchronisation", "launch",
                                       "wait",    "runner", "reduction"};
  return words[static_cast<std::size_t>(term)];
}

std::vector<std::string> term_names() {
  std::vector<std::string> names;
  for (int term = 0; term < term_count; ++term) names.push_back(to_string(static_cast<Term>(term)));
  return names;
}

simulate::OpSeconds TimedOp::cost() const {
  if (deed == Deed::sweep) return {sweep[0], sweep[1], sweep[2], hand_s};
  const double seconds = parts.seconds();
  return {seconds, seconds, seconds, hand_s};
}

bool Timeline::has_streams() const {
  return std::any_of(body.begin(), body.end(), [](const TimedOp& action) { return action.on_stream(); });
}

double Timeline::busy() const {
  double seconds = 0;
  for (const TimedOp& action : body) seconds += action.sweep[2] + action.parts.seconds();
  return seconds;
}

}  // namespace haloscope::model
