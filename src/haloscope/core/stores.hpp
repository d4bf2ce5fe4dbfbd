// When sweeps store around the cache.
#pragma once

#include <cstdint>

#include "haloscope/choice.hpp"

namespace haloscope {

/// Blocks larger than this gain from stores that go around the cache (two fields of a rank no longer fit a share of
/// L2).
inline constexpr std::int64_t stream_from_bytes = 8 << 20;
/// Whether sweeps of a field of `bytes` should store around the cache.
inline bool goes_around_cache(Stores stores, std::int64_t bytes) {
  return stores == Stores::automatic ? bytes >= stream_from_bytes : stores == Stores::streaming;
}

}  // namespace haloscope
