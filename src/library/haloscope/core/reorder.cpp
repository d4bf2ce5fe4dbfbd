#include "haloscope/extend/reorder.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "haloscope/error.hpp"

namespace haloscope {

namespace {

constexpr std::size_t max_tried = 16;  // cuts, the most promising ones

/// A block by the number of its rank in the original layout, and its neighbours above.
struct Place {
  std::array<int, 3> at{};
  std::array<int, 3> above{};           ///< -1: none
  std::array<std::int64_t, 3> cells{};  ///< on the face to each
};

std::vector<Place> places_of(const Layout& layout) {
  std::vector<Place> places;
  for (int rank = 0; rank < layout.size(); ++rank) {
    Place place;
    place.at = layout.coords(rank);
    const Index cells = layout.local_cells(rank);
    for (int d = 0; d < 3; ++d) {
      std::array<int, 3> offset{};
      offset[d] = 1;
      place.above[d] = layout.neighbour(rank, offset);
      place.cells[d] = cells[(d + 1) % 3] * cells[(d + 2) % 3];
    }
    places.push_back(place);
  }
  return places;
}

/// Returns 0, 1, ..., end - 1.
std::vector<int> counted_to(int end) {
  std::vector<int> numbers(static_cast<std::size_t>(end));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

/// Numbers the keys that ranks share from 0, in the order of their first ranks.
template <class Key>
std::vector<int> numbered(const std::vector<Key>& keys) {
  std::map<Key, int> known;
  std::vector<int> numbers;
  for (const Key& key : keys) numbers.push_back(known.try_emplace(key, static_cast<int>(known.size())).first->second);
  return numbers;
}

/// Node and socket of each rank, numbered from 0, sockets over all nodes.
struct Groups {
  std::vector<int> node, socket;
};

Groups groups_of(const Sites& sites, int ranks) {
  const auto count = static_cast<std::size_t>(ranks);
  const auto checked = [&](const std::vector<int>& numbers, const char* group) {
    if (numbers.empty()) return std::vector<int>(count);
    if (numbers.size() != count)
      throw UsageError(std::to_string(numbers.size()) + " " + group + "s are given for " + std::to_string(ranks) +
                       " ranks; give the " + group + " of each rank");
    return numbers;
  };
  Groups groups{numbered(checked(sites.node, "node")), checked(sites.socket, "socket")};
  std::vector<std::pair<int, int>> both;
  for (std::size_t rank = 0; rank < count; ++rank) both.emplace_back(groups.node[rank], groups.socket[rank]);
  groups.socket = numbered(both);
  return groups;
}

/// Counts crossings. @param rank_at the rank at each place.
Crossings count_crossings(const std::vector<Place>& places, const Groups& groups, const std::vector<int>& rank_at) {
  Crossings sum;
  for (std::size_t p = 0; p < places.size(); ++p)
    for (int d = 0; d < 3; ++d) {
      if (places[p].above[d] < 0) continue;
      const int rank = rank_at[p], other = rank_at[places[p].above[d]];
      if (groups.node[rank] != groups.node[other])
        sum.nodes += places[p].cells[d];
      else if (groups.socket[rank] != groups.socket[other])
        sum.sockets += places[p].cells[d];
    }
  return sum;
}

/// The smallest box around some places.
struct Bounds {
  std::array<int, 3> lo{}, extent{1, 1, 1};
  std::array<bool, 3> wraps{};             ///< its last places are neighbours of its first
  std::array<std::int64_t, 3> sections{};  ///< cells of the places' faces in a dimension, by layers of places
};

/// A box cut into pencils, `pencils` in two dimensions, along the third. The groups fill them sequentially.
struct Cut {
  int along = 0;
  bool turned = false;  ///< the order of the two, for lines in a layer and pencils in a row
  std::array<int, 2> pencils{1, 1};
  double crossings = 0;  ///< if all groups were boxes
  bool even = false;     ///< all groups are boxes
};

std::array<int, 2> across(const Cut& cut) {
  const int a = (cut.along + 1) % 3, b = (cut.along + 2) % 3;
  return cut.turned ? std::array{b, a} : std::array{a, b};
}

/// Assigns places to groups, one kind of groups at a time.
class Arranger {
 public:
  Arranger(const Layout& layout, const std::vector<Place>& places)
      : layout_(layout), places_(places), group_(places.size(), -1) {}

  /// Sorts `part`, some places, so that groups of these sizes, in order, have compact shares.
  void arrange(std::span<int> part, const std::vector<int>& sizes) {
    if (sizes.size() < 2) return;
    const Bounds bounds = bounds_of(part);
    const bool alike = std::all_of(sizes.begin(), sizes.end(), [&](int size) { return size == sizes.front(); });
    std::vector<int> best(part.begin(), part.end()), trial = best;
    std::int64_t least = crossings_in(best, sizes);
    for (const Cut& cut :
         cuts_of(bounds, static_cast<double>(part.size()) / static_cast<double>(sizes.size()), alike)) {
      sort_along(trial, bounds, cut);
      if (const std::int64_t now = crossings_in(trial, sizes); now < least) {
        least = now;
        best = trial;
      }
    }
    std::copy(best.begin(), best.end(), part.begin());
  }

 private:
  Bounds bounds_of(std::span<const int> part) const {
    Bounds bounds;
    std::array<int, 3> hi{};
    bounds.lo = layout_.ranks();
    std::array<std::int64_t, 3> cells{};
    for (int p : part)
      for (int d = 0; d < 3; ++d) {
        bounds.lo[d] = std::min(bounds.lo[d], places_[p].at[d]);
        hi[d] = std::max(hi[d], places_[p].at[d] + 1);
        cells[d] += places_[p].cells[d];
      }
    for (int d = 0; d < 3; ++d) {
      bounds.extent[d] = hi[d] - bounds.lo[d];
      bounds.wraps[d] = layout_.grid().periodic[d] && bounds.extent[d] == layout_.ranks()[d];
      bounds.sections[d] = cells[d] / bounds.extent[d];
    }
    return bounds;
  }

  /// Returns the cuts that promise fewest crossings, best first.
  /// @param size  places of a group, in the mean. @param alike true if all groups have equally many.
  static std::vector<Cut> cuts_of(const Bounds& bounds, double size, bool alike) {
    std::vector<Cut> cuts;
    for (int way = 0; way < 6; ++way) {
      const Cut cut{way / 2, way % 2 != 0};
      const auto [a, b] = across(cut);
      for (int i = 1; i <= bounds.extent[a]; ++i)
        for (int j = 1; j <= bounds.extent[b]; ++j) {
          const double layers = size * i * j / bounds.extent[a] / bounds.extent[b];
          if (layers > bounds.extent[cut.along] * (1 + 1e-9)) break;
          if (layers < 1 - 1e-9) continue;
          const Cut found = judged({cut.along, cut.turned, {i, j}}, bounds, layers, alike);
          if (!found.even || !found.turned) cuts.push_back(found);
        }
    }
    std::stable_sort(cuts.begin(), cuts.end(), [](const Cut& l, const Cut& r) { return l.crossings < r.crossings; });
    // The estimate of an even cut is exact, so only the first one is needed; other cuts may be worse than estimated.
    const auto even = std::find_if(cuts.begin(), cuts.end(), [](const Cut& cut) { return cut.even; });
    if (even != cuts.end() && even - cuts.begin() >= static_cast<std::ptrdiff_t>(max_tried))
      cuts[max_tried - 1] = *even;
    if (cuts.size() > max_tried) cuts.resize(max_tried);
    return cuts;
  }

  static Cut judged(Cut cut, const Bounds& bounds, double layers, bool alike) {
    const auto [a, b] = across(cut);
    const double pieces = bounds.extent[cut.along] / layers;
    const auto planes = [&](int d, double parts) {
      return parts < 1 + 1e-9 ? 0.0 : double(bounds.sections[d]) * (parts - !bounds.wraps[d]);
    };
    cut.crossings = planes(a, cut.pencils[0]) + planes(b, cut.pencils[1]) + planes(cut.along, pieces);
    cut.even = alike && bounds.extent[a] % cut.pencils[0] == 0 && bounds.extent[b] % cut.pencils[1] == 0 &&
               std::abs(layers - std::round(layers)) < 1e-9 && std::abs(pieces - std::round(pieces)) < 1e-9;
    return cut;
  }

  /// Sorts pencil after pencil, each in the opposite direction of the one before, and lines in a layer likewise:
  /// consecutive places are close.
  void sort_along(std::vector<int>& part, const Bounds& bounds, const Cut& cut) const {
    const auto [a, b] = across(cut);
    const std::int64_t extent_a = bounds.extent[a], extent_b = bounds.extent[b], length = bounds.extent[cut.along];
    const auto there_or_back = [](std::int64_t at, std::int64_t extent, bool back) {
      return back ? extent - 1 - at : at;
    };
    std::vector<std::pair<std::int64_t, int>> keyed;
    keyed.reserve(part.size());
    for (int p : part) {
      const auto& at = places_[p].at;
      const std::int64_t in_a = at[a] - bounds.lo[a], in_b = at[b] - bounds.lo[b];
      const std::int64_t row = in_b * cut.pencils[1] / extent_b;
      const std::int64_t column = there_or_back(in_a * cut.pencils[0] / extent_a, cut.pencils[0], row % 2 != 0);
      const std::int64_t pencil = row * cut.pencils[0] + column;
      const std::int64_t layer = there_or_back(at[cut.along] - bounds.lo[cut.along], length, pencil % 2 != 0);
      const std::int64_t line = there_or_back(in_b, extent_b, layer % 2 != 0);
      keyed.emplace_back(
          ((pencil * length + layer) * extent_b + line) * extent_a + there_or_back(in_a, extent_a, line % 2 != 0), p);
    }
    std::sort(keyed.begin(), keyed.end());
    for (std::size_t i = 0; i < part.size(); ++i) part[i] = keyed[i].second;
  }

  /// Returns the cells between places of `part` of different groups.
  std::int64_t crossings_in(const std::vector<int>& part, const std::vector<int>& sizes) {
    auto at = part.begin();
    for (std::size_t g = 0; g < sizes.size(); ++g)
      for (int i = 0; i < sizes[g]; ++i) group_[*at++] = static_cast<int>(g);
    std::int64_t sum = 0;
    for (int p : part)
      for (int d = 0; d < 3; ++d) {
        const int above = places_[p].above[d];
        if (above >= 0 && group_[above] >= 0 && group_[above] != group_[p]) sum += places_[p].cells[d];
      }
    for (int p : part) group_[p] = -1;
    return sum;
  }

  const Layout& layout_;
  const std::vector<Place>& places_;
  std::vector<int> group_;  // of a place, -1: not in the current part
};

/// Returns the numbers of consecutive ranks, sorted by `group`, that are in one group.
std::vector<int> sizes_of(std::span<const int> ranks, const std::vector<int>& group) {
  std::vector<int> sizes;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i == 0 || group[ranks[i]] != group[ranks[i - 1]]) sizes.push_back(0);
    ++sizes.back();
  }
  return sizes;
}

/// Returns the places in the order in which the ranks, sorted by sites, take them: first nodes, then the sockets of
/// each.
std::vector<int> arranged(const Layout& layout, const std::vector<Place>& places, const Groups& groups,
                          const std::vector<int>& ranks) {
  Arranger arranger(layout, places);
  std::vector<int> order = counted_to(layout.size());
  const std::vector<int> nodes = sizes_of(ranks, groups.node);
  arranger.arrange(order, nodes);
  std::size_t first = 0;
  for (int size : nodes) {
    const auto count = static_cast<std::size_t>(size);
    arranger.arrange(std::span(order).subspan(first, count),
                     sizes_of(std::span(ranks).subspan(first, count), groups.socket));
    first += count;
  }
  return order;
}

}  // namespace

Sites first_ranks(Sites sites, int some, int all) {
  static_cast<void>(groups_of(sites, all));  // refuses other numbers
  for (std::vector<int>* numbers : {&sites.node, &sites.socket})
    if (!numbers->empty()) numbers->resize(static_cast<std::size_t>(some));
  return sites;
}

Crossings crossings(const Layout& layout, const Sites& sites) {
  return count_crossings(places_of(layout), groups_of(sites, layout.size()), counted_to(layout.size()));
}

Layout reordered(const Layout& layout, const Sites& sites) {
  const Groups groups = groups_of(sites, layout.size());
  const std::vector<Place> places = places_of(layout);
  const std::vector<int> unchanged = counted_to(layout.size());
  std::vector<int> ranks = unchanged;
  std::stable_sort(ranks.begin(), ranks.end(), [&](int l, int r) {
    return std::pair(groups.node[l], groups.socket[l]) < std::pair(groups.node[r], groups.socket[r]);
  });
  const std::vector<int> order = arranged(layout, places, groups, ranks);
  std::vector<int> rank_at(places.size()), from(places.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    rank_at[order[i]] = ranks[i];
    from[ranks[i]] = order[i];
  }
  if (count_crossings(places, groups, rank_at) >= count_crossings(places, groups, unchanged)) return layout;
  return layout.renumbered(from);
}

}  // namespace haloscope
