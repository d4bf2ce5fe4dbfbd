// Small problems of apps on all ranks, as the strategy matrices choose them, and the checksums of runs.
#pragma once

#include <gtest/gtest.h>

#include "haloscope/rank/measure/run.hpp"
#include "world.hpp"

namespace haloscope::test {

struct AppProblem {
  const char *app, *form;
  Real real;
  Index cells;
};

inline Choice choice_for(const AppProblem& p, bool periodic) {
  Choice c{.app = p.app, .form = p.form, .real = p.real};
  c.grid.dims = find_app(p.app).dims;
  c.grid.cells = p.cells;
  for (int d = 0; d < c.grid.dims; ++d) c.grid.periodic[d] = periodic || d == 1;
  c.ranks = world_size();
  return c;
}

/// The checksum after some steps of a choice, its halos poisoned before each exchange.
inline std::uint64_t checksum_of(const Choice& choice, int steps = 5) {
  Run run(MPI_COMM_WORLD, choice);
  run.initialise();
  run.advance(steps, true);
  EXPECT_TRUE(run.canaries_alive());
  return run.checksum();
}

}  // namespace haloscope::test
