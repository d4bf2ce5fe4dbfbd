// How far a time moves when the parameters of a profile move within their intervals.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <vector>

#include "haloscope/model/profile.hpp"

namespace haloscope::model {

/// Draws of a profile's uncertain parameters: independent normal numbers; parameters that are >= 0 stay so.
class ParameterSamples {
 public:
  ParameterSamples(const Profile& profile, int samples);
  ParameterSamples(const ParameterSamples&) = delete;
  /// Whether there are samples, and parameters with an interval.
  bool any() const { return !costs_.empty() && samples_ > 0; }
  /// Calls `visit` with the profile of each draw, the same ones each time. A profile lives until the call returns.
  void each(const std::function<void(const Profile& drawn)>& visit);

 private:
  struct Uncertain {
    Cost* cost;
    double value, deviation;
  };
  Profile drawn_;
  int samples_;
  std::vector<Uncertain> costs_;
};

/// Ends of the 90 % interval of a time over its value, such as {0.95, 1.08}. @param times  of the draws.
std::array<double, 2> spread_of(const std::vector<double>& times, double usual);

/// The 95 % quantile of the normal distribution: deviations that the ends of such an interval are apart from its
/// middle.
double tail_deviations();

}  // namespace haloscope::model
