// Profiles that the Python package holds by a handle.
#pragma once

#include "bindings/python/bridge.h"
#include "haloscope/model/profile.hpp"

struct hs_profile {
  using Handle = void;
  haloscope::model::Profile profile;
};
