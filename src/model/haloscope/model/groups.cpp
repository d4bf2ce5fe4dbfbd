#include "haloscope/model/groups.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "haloscope/model/sampling.hpp"
#include "haloscope/transport_traits.hpp"

namespace haloscope::model {

namespace {

constexpr double clearly = 1 + 1e-9;  // beyond rounding

/// The number of fields and options off default.
std::size_t extras_of(const Choice& c) {
  const Strategy& s = c.strategy;
  std::size_t count = s.transport_options.size() + s.between_options.size();
  for (const bool extra : {s.merged, s.self_first, s.corners, s.fields != Merge::all, c.depth > 1,
                           c.substeps != Substeps::full, c.reorder != Reorder::none, c.schedule->name != "bulk"})
    count += extra;
  return count;
}

std::size_t place_of(const std::string& transport) {
  const auto& all = transport_traits();
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto* t) { return t->name == transport; });
  return static_cast<std::size_t>(found - all.begin());
}

auto rank_of(const Choice& c) {
  const Strategy& s = c.strategy;
  return std::tuple(extras_of(c), !s.between.empty(), place_of(s.transport), s.pattern != Pattern::ordered, c.depth);
}

}  // namespace

bool can_tell(const Prediction& fast, const Prediction& slow, const Profile& profile, double margin) {
  const auto rest = [](const Prediction& p) { return p.time_s - p.term(Term::compute); };
  const double exchange = profile.exchange_discrepancy * std::hypot(rest(fast), rest(slow));
  const double compute = profile.compute_discrepancy * (slow.term(Term::compute) - fast.term(Term::compute));
  return slow.time_s > fast.time_s * (clearly + margin) + tail_deviations() * std::hypot(exchange, compute);
}

std::vector<int> group(const std::vector<const Prediction*>& predictions, const std::vector<char>& alike,
                       const Profile& profile, double margin) {
  constexpr int none = -1;
  std::vector<int> found(predictions.size(), none);
  int number = 0;
  for (std::size_t first = 0; first < predictions.size(); ++first) {
    if (found[first] != none) continue;
    for (std::size_t i = first; i < predictions.size(); ++i)
      if (found[i] == none &&
          ((number == 0 && alike[i]) || !can_tell(*predictions[first], *predictions[i], profile, margin)))
        found[i] = number;
    ++number;
  }
  return found;
}

bool is_simpler(const Choice& a, const Choice& b) { return rank_of(a) < rank_of(b); }

}  // namespace haloscope::model
