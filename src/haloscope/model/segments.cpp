#include "haloscope/model/segments.hpp"

namespace haloscope::model {

const Segment& segment_at(const Segments& segments, double amount) {
  for (auto at = segments.rbegin(); at != segments.rend(); ++at)
    if (at->start <= amount) return *at;
  return segments.front();
}

double evaluate(const Segments& segments, double amount) {
  const Segment& here = segment_at(segments, amount);
  return here.fixed + here.slope * amount;
}

double evaluate_at(const Table& table, double count, double amount) {
  auto high = table.begin();
  while (high != table.end() && high->first < count) ++high;
  if (high == table.end()) return evaluate(table.rbegin()->second, amount);
  const double above = evaluate(high->second, amount);
  if (high == table.begin() || high->first == count) return above;
  const auto low = std::prev(high);
  const double below = evaluate(low->second, amount);
  return below + (above - below) * (count - low->first) / (high->first - low->first);
}

}  // namespace haloscope::model
