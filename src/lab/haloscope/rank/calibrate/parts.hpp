// The parts of a calibration that have their own files: see CalibrateRequest. Points of one record each, collective.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>

#include "haloscope/rank/calibrate/calibrate.hpp"
#include "haloscope/rank/calibrate/sampler.hpp"

namespace haloscope {

/// The initial state of scramble().
inline constexpr std::uint32_t scrambled = 1;
/// Fills some bytes so that they distinguish positions. @param state  continues from call to call.
inline void scramble(std::span<std::byte> bytes, std::uint32_t& state) {
  for (std::byte& b : bytes) b = static_cast<std::byte>((state = state * 1664525u + 1013904223u) >> 24);
}

/// @param right  becomes false when bytes do not arrive as they were sent.
nlohmann::json pack_points(const CalibrateRequest& request, Sampler& sample, bool& right);
nlohmann::json device_kernel_points(Session& session, const CalibrateRequest& request, Sampler& sample);
nlohmann::json device_copy_points(Session& session, const CalibrateRequest& request, Sampler& sample, bool& right);

}  // namespace haloscope
