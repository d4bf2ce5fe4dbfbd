// The points of fields that an exchange reads or writes, against the messages and copies of its plan.
#include "haloscope/transport/views.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "simulated_plans.hpp"

namespace haloscope {
namespace {

using namespace test;

/// Returns the smallest box with all points of two boxes.
Box hull(const Box& a, const Box& b) {
  if (a.empty() || b.empty()) return a.empty() ? b : a;
  Box both = a;
  for (int d = 0; d < 3; ++d) {
    both.lo[d] = std::min(a.lo[d], b.lo[d]);
    both.hi[d] = std::max(a.hi[d], b.hi[d]);
  }
  return both;
}

/// Returns the smallest box with the owned points of a field, and all that messages and copies move.
Box found_in_plan(const Plan& plan, int q) {
  Box points = plan.owned(q);
  for (const Message& message : plan.messages)
    for (const Region& region : message.regions)
      if (region.quantity == q) points = hull(points, region.box);
  for (const Copy& copy : plan.copies) {
    if (copy.quantity == q) points = hull(points, copy.to);
    if ((copy.source < 0 ? copy.quantity : copy.source) == q) points = hull(points, copy.from());
  }
  return points;
}

// Arrays need no room beyond edges that stay as they are, and none towards holes, whatever other sides fill.
TEST(PointsMoved, AreThoseOfMessagesAndCopies) {
  std::mt19937 random(47);
  for (int n = 0; n < 300; ++n) {
    GridSpec grid{.dims = pick(random, 1, 3), .cells = {1, 1, 1}, .periodic = {}};
    for (int d = 0; d < grid.dims; ++d) {
      grid.cells[d] = pick(random, 4, 9);
      grid.periodic[d] = pick(random, 0, 1) != 0;
    }
    const bool holes = pick(random, 0, 1) == 0;
    const Layout layout = random_deal(random, grid, pick(random, 1, 6), 20, holes);
    ExchangeSpec spec = three_fields(random, grid);
    spec.corners = !holes && pick(random, 0, 1) != 0;
    spec.pattern = static_cast<Pattern>(pick(random, 0, 1));
    for (int rank = 0; rank < layout.size(); ++rank) {
      const Plan plan = make_plan(layout, rank, spec);
      for (int q = 0; q < static_cast<int>(plan.spec.quantities.size()); ++q)
        ASSERT_EQ(points_moved(plan, q), found_in_plan(plan, q))
            << "case " << n << ", rank " << rank << ", field " << q;
    }
  }
}

}  // namespace
}  // namespace haloscope
