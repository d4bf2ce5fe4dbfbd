// Changes of a time when the parameters of a profile move within their intervals.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <vector>

#include "haloscope/model/profile.hpp"

namespace haloscope::model {

/// Samples of a profile's uncertain parameters: independent normal numbers; parameters that are >= 0 stay so.
class ParameterSamples {
 public:
  ParameterSamples(const Profile& profile, int samples);
  ParameterSamples(const ParameterSamples&) = delete;
  /// True if there are samples, and parameters with an interval.
  bool any() const { return !costs_.empty() && samples_ > 0; }
  /// Calls `visit` with the profile of each sample, the same ones each time. A profile lives until the call returns.
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

/// Ends of the 90 % interval of a time over its value, such as {0.95, 1.08}. @param times  of the samples.
std::array<double, 2> spread_of(const std::vector<double>& times, double usual);

/// The 95 % quantile of the normal distribution: the distance of such an interval's ends from its middle, in
/// deviations.
double tail_deviations();

}  // namespace haloscope::model
