// Loops over the points of boxes, x fastest.
#pragma once

#include "haloscope/box.hpp"

namespace haloscope::test {

/// Calls visit(point) for the points of a box.
template <class Visit>
void each_point(const Box& box, Visit visit) {
  Index p;
  for (p[2] = box.lo[2]; p[2] < box.hi[2]; ++p[2])
    for (p[1] = box.lo[1]; p[1] < box.hi[1]; ++p[1])
      for (p[0] = box.lo[0]; p[0] < box.hi[0]; ++p[0]) visit(p);
}

/// Calls visit(i, j) for the points of a box of two dimensions.
template <class Visit>
void for_points(const Box& box, Visit visit) {
  for (std::int64_t j = box.lo[1]; j < box.hi[1]; ++j)
    for (std::int64_t i = box.lo[0]; i < box.hi[0]; ++i) visit(i, j);
}

}  // namespace haloscope::test
