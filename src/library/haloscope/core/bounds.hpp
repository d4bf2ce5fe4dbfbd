// Ranges of numbers from files, options and programs. See bounds.def.
#pragma once

#include <vector>

namespace haloscope {

struct Bound {
  const char* name;
  double least, most;
};

/// Each bound by its name: bound.depth.most.
inline constexpr struct {
#define BOUND(name, least, most) Bound name{#name, least, most};
#include "haloscope/core/bounds.def"
#undef BOUND
} bound;

const std::vector<Bound>& bounds();

}  // namespace haloscope
