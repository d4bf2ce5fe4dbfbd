// A small problem of an app on all ranks, as the strategy matrices choose it.
#pragma once

#include "haloscope/extend/candidate.hpp"
#include "world.hpp"

namespace haloscope::test {

struct AppProblem {
  const char *app, *form;
  Real real;
  Index cells;
};

inline Choice choice_for(const AppProblem& p, bool periodic) {
  Choice c;
  c.app = p.app;
  c.form = p.form;
  c.real = p.real;
  c.grid.dims = find_app(p.app).dims;
  c.grid.cells = p.cells;
  for (int d = 0; d < c.grid.dims; ++d) c.grid.periodic[d] = periodic || d == 1;
  c.ranks = world_size();
  return c;
}

}  // namespace haloscope::test
