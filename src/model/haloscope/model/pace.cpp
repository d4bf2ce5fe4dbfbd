#include "haloscope/model/pace.hpp"

#include <cmath>
#include <ranges>

#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"
#include "haloscope/model/profile.hpp"

namespace haloscope::model {

namespace {

double ratio_of(const PaceTime& then, const PaceTime& now) {
  const double ratio = now.seconds / then.seconds, away = std::log(ratio);
  const double error = std::hypot(then.error, now.error);
  return away == 0 ? 1.0 : std::pow(ratio, std::max(0.0, 1 - error * error / (away * away)));
}

/// Scales the costs of a profile to another pace.
class Scaling {
 public:
  /// @param has_near  the pace has messages inside a node.
  Scaling(Profile& profile, bool has_near) : p_(profile), has_near_(has_near) {}

  void scale() {
    scale_network();
    scale_copying();
    if (p_.memory) times(p_.memory->bytes_per_s, 1 / of(PaceKind::memory));
    if (p_.kernels) scale_kernels();
    for (auto& [name, levels] : p_.fused)
      for (auto& [count, table] : levels) scale_sweeps(table, table);
    for (auto& [name, cost] : p_.transports) scale_surcharge(cost);
    if (p_.reductions)
      for (auto& [name, rows] : *p_.reductions)
        for (CollectiveTime& row : rows) times(row.time_s, messages(PaceKind::latency));
    times(p_.overlap.call_s, messages(PaceKind::latency));
    scale_steps();
  }

 private:
  double of(PaceKind kind) const { return p_.pace_ratios[static_cast<std::size_t>(kind)]; }
  /// The ratio for costs that messages have wherever they go: the one of neighbours on the node; of a cluster with one
  /// rank a node the one between nodes.
  double messages(PaceKind kind) const {
    if (has_near_) return of(kind);
    return of(kind == PaceKind::latency ? PaceKind::far_latency : PaceKind::far_bandwidth);
  }
  static void times(Cost& cost, double ratio) {
    cost.value *= ratio;
    if (cost.width > 0) cost.width *= ratio;
  }

  void scale_network() {
    if (!p_.network) return;
    for (int near = 0; near < nearnesses; ++near) {
      const bool far = static_cast<Locality>(near) == Locality::network;
      auto& cost = p_.network->by_locality[static_cast<std::size_t>(near)];
      if (!cost) continue;
      const double latency = of(far ? PaceKind::far_latency : PaceKind::latency);
      for (Segment& segment : cost->segments) {
        times(segment.fixed, latency);
        times(segment.slope, of(far ? PaceKind::far_bandwidth : PaceKind::bandwidth));
      }
      if (cost->gap_s) times(*cost->gap_s, latency);
    }
    p_.network->injection_bytes_per_s /= of(PaceKind::far_bandwidth);
  }

  void scale_copying() {
    const auto scale = [](Copying& tables, double ratio) {
      for (Table& table : tables)
        for (auto& [threads, segments] : table)
          for (Segment& segment : segments)
            for (Cost* one : {&segment.fixed, &segment.slope, &segment.per_row}) times(*one, ratio);
    };
    if (p_.pack) scale(*p_.pack, of(PaceKind::compute));
    scale(p_.copy, of(PaceKind::compute));
    scale(p_.far_pack, of(PaceKind::memory));
    scale(p_.far_copy, of(PaceKind::memory));
  }

  void scale_kernels() {
    for (auto& [name, table] : p_.streaming)
      if (const auto known = p_.kernels->find(name); known != p_.kernels->end()) scale_sweeps(table, known->second);
    for (auto& [name, table] : *p_.kernels) scale_sweeps(table, table);
  }

  /// Sweeps of the smallest blocks are arithmetic in the cache. The additional time of larger ones is memory's.
  /// @param of_all  has the cost of the smallest blocks; may be the table itself
  void scale_sweeps(Table& table, const Table& of_all) {
    const double compute = of(PaceKind::compute), memory = of(PaceKind::memory);
    for (auto& [cores, segments] : table) {
      const Segment first = nearest(of_all, cores).front();
      const auto scale = [&](Cost& cost, const Cost& least) {
        const double before = cost.value;
        cost.value = compute * least + memory * (before - least);
        if (cost.width > 0 && before != 0) cost.width *= std::abs(cost.value / before);
      };
      for (Segment& segment : segments) {
        const bool dearer = segment.slope > first.slope;
        scale(segment.fixed, dearer ? first.fixed : segment.fixed);
        scale(segment.slope, dearer ? first.slope : segment.slope);
      }
    }
  }

  void scale_surcharge(TransportCost& cost) {
    for (Cost* one : {&cost.per_message_s, &cost.per_round_s, &cost.per_exchange_s})
      times(*one, messages(PaceKind::latency));
    for (Cost* one : {&cost.per_byte_s, &cost.per_gapped_byte_s, &cost.per_clean_byte_s, &cost.per_row_s,
                      &cost.per_touched_byte_s, &cost.per_touched_row_s})
      times(*one, messages(PaceKind::bandwidth));
    for (Cost* one : {&cost.interrupt_per_message_s, &cost.interrupt_per_byte_s}) times(*one, of(PaceKind::compute));
  }

  void scale_steps() {
    StepCost& s = p_.steps;
    for (Cost* one : {&s.per_program_s, &s.per_operation_s, &s.per_piece_s, &s.per_piece_cell_s, &s.per_piece_row_s})
      times(*one, of(PaceKind::compute));
    times(s.per_far_piece_row_s, of(PaceKind::memory));
  }

  Profile& p_;
  bool has_near_;
};

}  // namespace

const char* to_string(PaceKind kind) {
  static constexpr const char* words[]{"compute", "memory", "latency", "bandwidth", "far_latency", "far_bandwidth"};
  return words[static_cast<std::size_t>(kind)];
}

PaceRatios pace_ratios(const Pace& then, const Pace& now) {
  PaceRatios ratios;
  for (std::size_t kind = 0; kind < ratios.size(); ++kind)
    ratios[kind] = then.times[kind] && now.times[kind] ? ratio_of(*then.times[kind], *now.times[kind]) : 1.0;
  return ratios;
}

namespace {

/// The distance of two paces: the sum of the logarithms of their ratios.
double distance(const Pace& a, const Pace& b) {
  double sum = 0;
  for (std::size_t kind = 0; kind < a.times.size(); ++kind)
    if (a.times[kind] && b.times[kind]) sum += std::abs(std::log(a.times[kind]->seconds / b.times[kind]->seconds));
  return sum;
}

/// The profile, or one of its states, that was calibrated at the closest pace.
const Profile& nearest_state(const Profile& profile, const Pace& now) {
  const Profile* nearest = &profile;
  for (const Profile& state : profile.states)
    if (const auto pace = state.paces.find(now.ranks);
        pace != state.paces.end() && distance(pace->second, now) < distance(nearest->paces.at(now.ranks), now))
      nearest = &state;
  return *nearest;
}

}  // namespace

Profile at_pace(const Profile& profile, const Pace& now) {
  if (!profile.paces.contains(now.ranks)) {
    const std::string known = join_numbers(std::views::keys(profile.paces), ", ");
    throw UnavailableError("profile '" + profile.name + "' has no pace of " + std::to_string(now.ranks) +
                           " ranks (it has " + (known.empty() ? "none" : "paces of " + known) +
                           "); calibrate the machine again");
  }
  Profile scaled = nearest_state(profile, now);
  const Pace& before = scaled.paces.at(now.ranks);
  scaled.pace_ratios = pace_ratios(before, now);
  constexpr auto near = static_cast<std::size_t>(PaceKind::latency);
  Scaling(scaled, before.times[near] && now.times[near]).scale();
  return scaled;
}

}  // namespace haloscope::model
