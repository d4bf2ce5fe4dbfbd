// The border of libhaloscope_bridge.
#pragma once

#include "bindings/c/border.hpp"
#include "haloscope/apps/built_in.hpp"

namespace haloscope::bridge {

/// As c::guarded(), with the apps of this build known to `body`.
template <class Body>
hs_status guarded(const Body& body) noexcept {
  return c::guarded([&] {
    add_built_in_apps();
    body();
  });
}

}  // namespace haloscope::bridge
