#include "haloscope/model/correction.hpp"

#include <algorithm>
#include <cmath>

namespace haloscope::model {

namespace {

constexpr double octave = 0.6931471805599453;  // a factor of 2, as a logarithm
constexpr double run_octaves = 2;              // how far stretches may differ: less depends on them
constexpr double unchanged = 0.3;              // launches that the ratio 1 counts as much as

double squared(double a, double b, double width) {
  const double apart = std::log(a / b) / width;
  return apart * apart;
}

/// 1 where two are the same, and less the farther they are apart.
double nearness(const Likeness& a, const Likeness& b) {
  if (a.in_place != b.in_place) return 0;
  return std::exp(-0.5 *
                  (squared(a.message_bytes, b.message_bytes, octave) + squared(a.block_bytes, b.block_bytes, octave) +
                   squared(a.run_bytes, b.run_bytes, run_octaves * octave) + squared(a.depth, b.depth, octave)));
}

}  // namespace

Likeness likeness_of(const Traffic& message, double block_bytes, int depth) {
  const auto at_least_1 = [](std::int64_t bytes) { return std::max(1.0, static_cast<double>(bytes)); };
  return {at_least_1(message.bytes), at_least_1(message.run_bytes), std::max(1.0, block_bytes),
          static_cast<double>(depth), message.in_place};
}

Ratios correct(std::span<const std::vector<Correction>* const> known, const Likeness& like) {
  double weights = unchanged, exchange = 0, sweeps = 0;
  for (const auto* corrections : known)
    for (const Correction& one : *corrections) {
      const double weight = one.launches * nearness(one.like, like);
      weights += weight;
      exchange += weight * std::log(one.ratios.exchange);
      sweeps += weight * std::log(one.ratios.sweeps);
    }
  return {std::exp(exchange / weights), std::exp(sweeps / weights)};
}

}  // namespace haloscope::model
