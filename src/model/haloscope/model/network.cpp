#include "haloscope/model/network.hpp"

#include <cmath>

#include "haloscope/error.hpp"

namespace haloscope::model {

namespace {

/// Returns the measured calls of one kind; null without measurements.
const std::vector<CollectiveTime>* measured(const Profile& profile, const std::string& kind) {
  if (!profile.reductions) return nullptr;
  const auto found = profile.reductions->find(kind);
  return found == profile.reductions->end() ? nullptr : &found->second;
}

double between_counts(const std::vector<CollectiveTime>& rows, int ranks) {
  if (ranks == 1) return 0;
  const double at = std::log2(ranks);
  if (at <= std::log2(rows.front().ranks)) return rows.front().time_s;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const double low = std::log2(rows[i - 1].ranks), high = std::log2(rows[i].ranks);
    if (at < high) return (rows[i].time_s - rows[i - 1].time_s) / (high - low) * (at - low) + rows[i - 1].time_s;
  }
  return rows.back().time_s;
}

double allgather_time(const Profile& profile, double bytes, int ranks) {
  const int steps = static_cast<int>(std::ceil(std::log2(ranks)));
  const int inside = std::min(steps, static_cast<int>(std::ceil(std::log2(profile.cores_per_node()))));
  double seconds = 0;
  for (int i = 0; i < steps; ++i)
    seconds += message_time(profile, i < inside ? Locality::node : Locality::network, std::ldexp(bytes, i));
  return seconds;
}

constexpr double real_bytes = 8;

double bytes_of(NumberType type) {
  return type == NumberType::real ? real_bytes : type == NumberType::integer ? 4.0 : 1.0;
}

double gather_time(const Profile& profile, double bytes, int ranks) {
  const double whole = allgather_time(profile, bytes, ranks);
  const auto* rows = measured(profile, "allgather");
  if (!rows) return whole;
  return between_counts(*rows, ranks) + std::max(0.0, whole - allgather_time(profile, real_bytes, ranks));
}

}  // namespace

double message_time(const Profile& profile, Locality near, double bytes) {
  return evaluate(profile.messages(near).segments, bytes);
}

Contention contention(const Profile& profile, Locality near) {
  const MessageCost& cost = profile.messages(near);
  const double usual = near == Locality::network ? 1.0 : 2.0;
  return {cost.shared ? cost.shared->value : 1.0, cost.duplex ? cost.duplex->value : usual,
          cost.gap_s ? message_time(profile, near, 0) - *cost.gap_s : 0.0};
}

double allreduce_time(const Profile& profile, int ranks) {
  if (!profile.reductions)
    throw UnavailableError("profile '" + profile.name +
                           "' has no section 'reductions', which this needs; calibrate the machine, or choose another "
                           "profile with --profile");
  const auto* rows = measured(profile, "allreduce");
  if (!rows)
    throw UnavailableError("profile '" + profile.name +
                           "' has no reductions/allreduce, which this needs; calibrate the machine");
  return between_counts(*rows, ranks);
}

double reduction_time(const Profile& profile, const Reduction& reduction, int ranks) {
  if (ranks == 1) return 0;
  if (reduction.by == ReduceBy::reduce) return reduction.collectives * allreduce_time(profile, ranks);
  const double numbers = bytes_of(reduction.type) * (reduction.numbers / reduction.collectives);
  double seconds = 0;
  for (int i = 0; i < reduction.collectives; ++i) {
    if (reduction.by == ReduceBy::lists) seconds += gather_time(profile, bytes_of(NumberType::integer), ranks);
    seconds += gather_time(profile, numbers, ranks);
  }
  return seconds;
}

}  // namespace haloscope::model
