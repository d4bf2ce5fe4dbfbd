// Stores of sweeps around the cache.
#pragma once

#include <cstdint>

#include "haloscope/choice.hpp"

namespace haloscope {

/// Minimum bytes of a block that gains from stores around the cache (two fields of a rank no longer fit its share of
/// L2).
inline constexpr std::int64_t stream_from_bytes = 8 << 20;
/// Returns true if sweeps of a field of `bytes` should store around the cache.
inline bool goes_around_cache(Stores stores, std::int64_t bytes) {
  return stores == Stores::automatic ? bytes >= stream_from_bytes : stores == Stores::streaming;
}

}  // namespace haloscope
