// What a calibration measures in files of their own: see CalibrateRequest. Points of one record each, collective.
#pragma once

#include <nlohmann/json.hpp>

#include "haloscope/rank/calibrate.hpp"
#include "haloscope/rank/sampler.hpp"

namespace haloscope {

/// @param right  becomes false when bytes do not arrive as they were sent.
nlohmann::json pack_points(const CalibrateRequest& request, Sampler& sample, bool& right);
nlohmann::json device_kernel_points(Session& session, const CalibrateRequest& request, Sampler& sample);
nlohmann::json device_copy_points(Session& session, const CalibrateRequest& request, Sampler& sample, bool& right);

}  // namespace haloscope
