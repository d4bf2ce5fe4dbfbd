// Piecewise linear costs: a fixed time plus a time per unit (byte, cell) on each of several ranges; of bytes that lie
// in rows, also a time per row.
#pragma once

#include <cstdlib>
#include <limits>
#include <map>
#include <vector>

namespace haloscope::model {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// A parameter of a profile, and the width of its 95 % interval; below 0: it has none.
struct Cost {
  double value = 0;
  double width = -1;
  operator double() const { return value; }
};

/// `fixed` + `slope` * amount + `per_row` * rows seconds for start <= amount < end.
struct Segment {
  double start = 0, end = infinity;
  Cost fixed, slope, per_row{};
};

/// Rising, without gaps; never empty.
using Segments = std::vector<Segment>;
/// Segments by count: threads, active cores of a socket, ranks of a device.
using Table = std::map<int, Segments>;

/// The segment whose range holds `amount` >= 0; the first one below all ranges, the last one above them.
const Segment& segment_at(const Segments& segments, double amount);
/// Seconds of `amount` units in `rows` rows; the fixed time for none. Source: Davis 2017, sections 5.4 and 6.8 (table
/// 5.9).
double evaluate(const Segments& segments, double amount, double rows = 0);
/// The same for a count: between two listed ones linear, outside them the closest.
double evaluate_at(const Table& table, double count, double amount, double rows = 0);

/// The entry whose key is closest by a distance; of several the first. The map is not empty.
template <class Map, class Distance>
const typename Map::value_type& nearest_by(const Map& map, const Distance& distance) {
  auto found = map.begin();
  for (auto at = map.begin(); at != map.end(); ++at)
    if (distance(at->first) < distance(found->first)) found = at;
  return *found;
}
/// The segments of the closest count.
inline const Segments& nearest(const Table& table, double count) {
  return nearest_by(table, [&](int known) { return std::abs(known - count); }).second;
}

}  // namespace haloscope::model
