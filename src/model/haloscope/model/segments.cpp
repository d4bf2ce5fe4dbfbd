#include "haloscope/model/segments.hpp"

namespace haloscope::model {

const Segment& segment_at(const Segments& segments, double amount) {
  for (auto at = segments.rbegin(); at != segments.rend(); ++at)
    if (at->start <= amount) return *at;
  return segments.front();
}

double evaluate(const Segments& segments, double amount, double rows) {
  const Segment& here = segment_at(segments, amount);
  return here.fixed + here.slope * amount + here.per_row * rows;
}

double evaluate_at(const Table& table, double count, double amount, double rows) {
  auto high = table.begin();
  while (high != table.end() && high->first < count) ++high;
  if (high == table.end()) return evaluate(table.rbegin()->second, amount, rows);
  const double above = evaluate(high->second, amount, rows);
  if (high == table.begin() || high->first == count) return above;
  const auto low = std::prev(high);
  const double below = evaluate(low->second, amount, rows);
  return below + (above - below) * (count - low->first) / (high->first - low->first);
}

}  // namespace haloscope::model
