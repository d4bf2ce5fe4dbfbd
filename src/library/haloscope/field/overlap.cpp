#include "haloscope/field/overlap.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <vector>

namespace haloscope {
namespace {

/// The steps of a dimension in the distance of two points: 0 to `most` times a stride.
struct Steps {
  std::int64_t stride, most;
};

/// All distances between points of two sets: sums of steps, from 0 on.
class Distances {
 public:
  /// Dimensions of equal strides are one: only the sum of their steps counts.
  void add(const PointSet& set) {
    for (int d = 0; d < 3; ++d) {
      const Steps more{std::abs(set.view.stride[d]), set.points.extent(d) - 1};
      if (more.most == 0 || more.stride == 0) continue;
      const auto same = std::find_if(all_.begin(), all_.end(), [&](const Steps& s) { return s.stride == more.stride; });
      same == all_.end() ? all_.push_back(more) : void(same->most += more.most);
    }
  }
  /// Returns true if a distance from `low` to `high` exists.
  bool any_within(std::int64_t low, std::int64_t high) {
    std::sort(all_.begin(), all_.end(), [](const Steps& a, const Steps& b) { return a.stride > b.stride; });
    reach_.assign(all_.size() + 1, 0);
    divisor_.assign(all_.size() + 1, 0);
    for (std::size_t k = all_.size(); k-- > 0;) {
      reach_[k] = reach_[k + 1] + all_[k].stride * all_[k].most;
      divisor_[k] = std::gcd(divisor_[k + 1], all_[k].stride);
    }
    return search(0, low, high);
  }

 private:
  /// The same for the steps from number `k` on, longest first. Skips the search where the ends decide, or where no
  /// multiple of the common divisor of all strides lies between them.
  bool search(std::size_t k, std::int64_t low, std::int64_t high) const {
    if (high < 0 || low > reach_[k]) return false;
    if (low <= 0 || high >= reach_[k]) return true;
    if (high / divisor_[k] * divisor_[k] < low) return false;
    if (k + 1 == all_.size()) return true;
    const auto [stride, most] = all_[k];
    const std::int64_t short_of = std::max<std::int64_t>(0, low - reach_[k + 1]);
    const std::int64_t last = std::min(most, high / stride);
    for (std::int64_t n = (short_of + stride - 1) / stride; n <= last; ++n)
      if (search(k + 1, low - n * stride, high - n * stride)) return true;
    return false;
  }

  std::vector<Steps> all_;
  std::vector<std::int64_t> reach_, divisor_;  // over the steps from a number on
};

}  // namespace

Extent extent_of(const PointSet& set) {
  Index low = set.points.lo, high = set.points.lo;
  for (int d = 0; d < 3; ++d) (set.view.stride[d] < 0 ? low : high)[d] = set.points.hi[d] - 1;
  const auto address = [&](const Index& p) {
    auto at = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(set.view.origin));
    for (int d = 0; d < 3; ++d) at += p[d] * set.view.stride[d];
    return at;
  };
  return {address(low), address(high) + set.view.element_bytes()};
}

bool is_addressable(const PointSet& set) {
  constexpr double most = 0x1p60;
  double reach = static_cast<double>(set.view.element_bytes());
  for (int d = 0; d < 3; ++d) {
    const auto furthest = std::max(std::abs(set.points.lo[d]), std::abs(set.points.hi[d] - 1));
    reach += static_cast<double>(furthest) * std::abs(static_cast<double>(set.view.stride[d]));
  }
  return reach < most;
}

bool share_memory(const PointSet& a, const PointSet& b) {
  const Extent one = extent_of(a), other = extent_of(b);
  if (one.end <= other.begin || other.end <= one.begin) return false;
  const std::int64_t bytes_a = a.view.element_bytes(), bytes_b = b.view.element_bytes();
  // From the last point of b to the first of a; all other distances are larger.
  const std::int64_t least = one.begin - (other.end - bytes_b);
  Distances distances;
  distances.add(a);
  distances.add(b);
  return distances.any_within(1 - bytes_a - least, bytes_b - 1 - least);
}

std::optional<std::pair<FieldPoints, FieldPoints>> find_sharing(
    const std::vector<FieldPoints>& all, const std::function<bool(const FieldPoints&, const FieldPoints&)>& may_share) {
  std::vector<std::pair<Extent, const FieldPoints*>> placed;
  for (const FieldPoints& one : all) placed.emplace_back(extent_of(one.set), &one);
  std::sort(placed.begin(), placed.end(), [](const auto& a, const auto& b) { return a.first.begin < b.first.begin; });
  for (auto a = placed.begin(); a != placed.end(); ++a)
    for (auto b = a + 1; b != placed.end() && b->first.begin < a->first.end; ++b) {
      const FieldPoints &one = *a->second, &other = *b->second;
      if (may_share(one, other) || !share_memory(one.set, other.set)) continue;
      return std::pair{one.field, one.slot} < std::pair{other.field, other.slot} ? std::pair{one, other}
                                                                                 : std::pair{other, one};
    }
  return {};
}

}  // namespace haloscope
