#include "haloscope/model/sampling.hpp"

#include <algorithm>
#include <random>

#include "haloscope/core/bounds.hpp"
#include "haloscope/error.hpp"
#include "haloscope/model/normal.hpp"

namespace haloscope::model {

namespace {

constexpr double deviations = 2 * 1.96;  // width of a parameter's 95 % interval
constexpr double low_part = 0.05, high_part = 0.95;

}  // namespace

ParameterSamples::ParameterSamples(const Profile& profile, int samples) : drawn_(profile), samples_(samples) {
  if (samples > bound.draws.most)
    throw UsageError(std::to_string(samples) + " samples are not possible; use at most " +
                     std::to_string(static_cast<int>(bound.draws.most)));
  visit_parameters(drawn_, [&](const char*, const char*, Cost& cost) {
    if (cost.width >= 0) costs_.push_back({&cost, cost.value, cost.width / deviations});
  });
}

void ParameterSamples::each(const std::function<void(const Profile& drawn)>& visit) {
  std::mt19937_64 engine;
  std::normal_distribution<double> normal;
  for (int sample = 0; sample < samples_; ++sample) {
    for (const auto& [cost, value, deviation] : costs_) {
      const double moved = value + normal(engine) * deviation;
      cost->value = value >= 0 ? std::max(0.0, moved) : moved;
    }
    visit(drawn_);
  }
}

std::array<double, 2> spread_of(const std::vector<double>& times, double usual) {
  return {std::min(1.0, quantile(times, low_part) / usual), std::max(1.0, quantile(times, high_part) / usual)};
}

double tail_deviations() {
  static const double found = normal_quantile(high_part);
  return found;
}

}  // namespace haloscope::model
