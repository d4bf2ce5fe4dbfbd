#include "haloscope/model/correction.hpp"

#include <algorithm>
#include <cmath>

namespace haloscope::model {

namespace {

constexpr double run_octaves = 2;  // scale of run lengths, on which less depends
constexpr double unchanged = 0.3;  // weight of the ratio 1, in launches

double squared(double apart) { return apart * apart; }

/// 1 for equal features, less the farther apart they are.
double nearness(const StepFeatures& a, const StepFeatures& b) {
  if (a.in_place != b.in_place) return 0;
  return std::exp(-0.5 * (squared(a.message_bytes - b.message_bytes) + squared(a.block_bytes - b.block_bytes) +
                          squared((a.run_bytes - b.run_bytes) / run_octaves) + squared(a.depth - b.depth)));
}

}  // namespace

StepFeatures likeness_of(const Traffic& message, double block_bytes, int depth) {
  const auto octaves = [](auto size) { return std::log2(std::max(1.0, static_cast<double>(size))); };
  return {octaves(message.bytes), octaves(message.run_bytes), octaves(block_bytes), octaves(depth), message.in_place};
}

Ratios correct(std::span<const std::vector<Correction>* const> known, const StepFeatures& like) {
  double weights = unchanged, exchange = 0, sweeps = 0;
  for (const auto* corrections : known)
    for (const Correction& one : *corrections) {
      const double weight = one.launches * nearness(one.like, like);
      weights += weight;
      exchange += weight * one.exchange;
      sweeps += weight * one.sweeps;
    }
  return {std::exp(exchange / weights), std::exp(sweeps / weights)};
}

}  // namespace haloscope::model
