#include "haloscope/model/refetch.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "haloscope/core/plan_rounds.hpp"

namespace haloscope::model {

namespace {

constexpr double steepness = 4;  // of the transition from a cache that holds everything; see design/0025

/// The coordinates at which any of some boxes begins or ends, in order.
std::vector<std::int64_t> cuts(const std::vector<Box>& boxes, int dimension) {
  std::set<std::int64_t> found;
  for (const Box& box : boxes) found.insert({box.lo[dimension], box.hi[dimension]});
  return {found.begin(), found.end()};
}

/// Points of a row that some boxes cover, and the contiguous runs that they form together with its neighbours.
std::pair<std::int64_t, int> cover_row(std::vector<std::pair<std::int64_t, std::int64_t>> parts, const Box& row) {
  std::sort(parts.begin(), parts.end());
  std::int64_t points = 0, end = row.lo[0] - 1;
  int stretches = 0;
  for (const auto& [from, to] : parts) {
    stretches += from > end;
    points += std::max<std::int64_t>(0, to - std::max(from, end));
    end = std::max(end, to);
  }
  const bool joined = stretches > 0 && parts.front().first <= row.lo[0] && end >= row.hi[0];
  return {points, stretches - joined};
}

/// Bytes of the lines that some boxes of a field access.
double bytes_of_lines(const std::vector<Box>& boxes, const Box& field, double element, double line) {
  const auto ys = cuts(boxes, 1), zs = cuts(boxes, 2);
  const double whole = static_cast<double>(field.extent(0)) * element;
  double bytes = 0;
  for (std::size_t z = 1; z < zs.size(); ++z)
    for (std::size_t y = 1; y < ys.size(); ++y) {
      std::vector<std::pair<std::int64_t, std::int64_t>> parts;
      for (const Box& box : boxes)
        if (box.lo[1] <= ys[y - 1] && box.hi[1] >= ys[y] && box.lo[2] <= zs[z - 1] && box.hi[2] >= zs[z])
          parts.emplace_back(box.lo[0], box.hi[0]);
      const auto [points, stretches] = cover_row(std::move(parts), field);
      const auto rows = static_cast<double>((ys[y] - ys[y - 1]) * (zs[z] - zs[z - 1]));
      bytes += rows * std::min(whole, static_cast<double>(points) * element + stretches * (line - element));
    }
  return bytes;
}

/// A group of fields that travel together: one field where fields are apart, otherwise all.
struct Group {
  double touched = 0;   ///< bytes of lines fetched, and of lines written back
  double kept = 0;      ///< bytes that its fields take up in the cache
  double buffers = 0;   ///< ... and its messages
  double messages = 0;  ///< bytes that travel
};

class Footprint {
 public:
  Footprint(const Plan& plan, std::span<const Traffic> traffic, const StageUnitCosts& prices, const RankLocation& where)
      : plan_(plan), prices_(prices), where_(where), memory_(*prices.common.profile.memory) {
    groups_.resize(apart(plan.spec.merge) ? plan.spec.quantities.size() : 1);
    add_fields();
    for (std::size_t m = 0; m < plan.messages.size(); ++m) {
      Group& group = groups_[group_of(m)];
      const auto bytes = static_cast<double>(traffic[m].bytes);
      group.messages += bytes;
      if (has_buffer(m, traffic[m])) group.buffers += bytes;
    }
    double buffers = 0;
    for (const Group& group : groups_) {
      all_ += group.kept;
      buffers = turns() ? std::max(buffers, group.buffers) : buffers + group.buffers;
    }
    all_ += buffers;
  }

  bool has_buffer(std::size_t m, const Traffic& traffic) const {
    return (!traffic.in_place || cost(m).packs_all) && !cost(m).from_fields;
  }
  const TransportCost& cost(std::size_t m) const { return *prices_.surcharges[where_.far[m] != 0]; }
  double fields_s(std::size_t m, double bytes) const {
    const Group& group = groups_[group_of(m)];
    const double share = group.messages > 0 ? bytes / group.messages : 0.0;
    return (gone(all_) + cost(m).field_returns * gone(of(group))) * group.touched * share * second_per_byte();
  }
  double buffers_s(std::size_t m, double bytes) const {
    const double visits = cost(m).buffer_visits;
    return visits * gone(turns() ? of(groups_[group_of(m)]) : all_) * bytes * second_per_byte();
  }

 private:
  void add_fields() {
    for (std::size_t q = 0; q < plan_.spec.quantities.size(); ++q) {
      const auto& quantity = plan_.spec.quantities[q];
      const Box box = plan_.allocated(static_cast<int>(q));
      const Touched lines = touched_lines(plan_, static_cast<int>(q), memory_.line_bytes);
      const bool scattered = static_cast<double>(box.volume() * quantity.element_bytes) < memory_.large_page_bytes;
      Group& group = groups_[groups_.size() > 1 ? q : 0];
      group.touched += lines.lines + lines.dirty;
      group.kept += lines.lines * (scattered ? memory_.scatter.value : 1.0);
    }
  }
  std::size_t group_of(std::size_t m) const {
    const int field = place_of(plan_, plan_.messages[m].round).field;
    return groups_.size() > 1 ? static_cast<std::size_t>(std::max(0, field)) : 0;
  }
  /// True if fields, which are apart, use the same buffers in turn.
  bool turns() const { return prices_.surcharges[1]->one_buffer; }
  static double of(const Group& group) { return group.kept + group.buffers; }
  /// The share of lines that has left the cache after accesses to this number of other bytes by each rank.
  double gone(double bytes) const {
    const double socket = bytes * where_.ranks_on_socket;
    return socket > memory_.cache_bytes ? 1 - std::pow(memory_.cache_bytes / socket, steepness) : 0.0;
  }
  double second_per_byte() const { return where_.ranks_on_socket / memory_.bytes_per_s; }

  const Plan& plan_;
  const StageUnitCosts& prices_;
  const RankLocation& where_;
  const MemoryCost& memory_;
  std::vector<Group> groups_;
  double all_ = 0;
};

}  // namespace

Touched touched_lines(const Plan& plan, int quantity, double line_bytes) {
  std::vector<Box> all, written;
  for (const Message& message : plan.messages)
    for (const Region& region : message.regions) {
      if (region.quantity != quantity || region.box.empty()) continue;
      all.push_back(region.box);
      if (!message.out) written.push_back(region.box);
    }
  const double element = plan.spec.quantities[static_cast<std::size_t>(quantity)].element_bytes;
  const Box field = plan.allocated(quantity);
  return {bytes_of_lines(all, field, element, line_bytes), bytes_of_lines(written, field, element, line_bytes)};
}

Refetch refetch_of(const Plan& plan, std::span<const Traffic> traffic, const StageUnitCosts& prices,
                   const RankLocation& where) {
  Refetch found;
  if (!prices.common.profile.memory) return found;
  found.fields_.resize(traffic.size());
  found.buffers_.resize(traffic.size());
  const Footprint footprint(plan, traffic, prices, where);
  for (std::size_t m = 0; m < traffic.size(); ++m) {
    const auto bytes = static_cast<double>(traffic[m].bytes);
    found.fields_[m] = footprint.fields_s(m, bytes);
    if (where.far[m] == 0 && footprint.has_buffer(m, traffic[m])) found.buffers_[m] = footprint.buffers_s(m, bytes);
  }
  return found;
}

}  // namespace haloscope::model
