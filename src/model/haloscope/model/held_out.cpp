#include "haloscope/model/held_out.hpp"

#include <cmath>

namespace haloscope::model {

std::optional<HeldOutInterval> held_out_interval(const HeldOut& residuals, const std::string& regime, double time_s) {
  auto found = residuals.find(regime);
  if (found == residuals.end()) found = residuals.find("all");
  if (found == residuals.end()) return std::nullopt;
  const auto& [name, r] = *found;
  return HeldOutInterval{{time_s * std::exp(r.low), time_s * std::exp(r.high)}, name};
}

}  // namespace haloscope::model
