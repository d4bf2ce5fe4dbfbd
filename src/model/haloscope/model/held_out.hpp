// Errors of predictions on measurements that no fit has used, and the intervals that follow.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>

namespace haloscope::model {

/// Ends of log(measured / predicted), which hold 90 % of cases like the measured ones: split-conformal.
struct Residuals {
  int count = 0;
  double low = 0, high = 0;
};

/// By regime of the prediction; "all" has every case.
using HeldOut = std::map<std::string, Residuals>;

/// The 90 % interval of a time, and the regime that it comes from.
struct HeldOutInterval {
  std::array<double, 2> ends{};
  std::string regime;
};

/// The interval by the residuals of a regime, by the residuals of "all" where it has none; none without any.
std::optional<HeldOutInterval> held_out_interval(const HeldOut& residuals, const std::string& regime, double time_s);

}  // namespace haloscope::model
