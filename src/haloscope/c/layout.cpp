// Layouts of the C interface.
#include <algorithm>
#include <map>

#include "haloscope/c/bridge.hpp"
#include "haloscope/model/ranks.hpp"

namespace haloscope::c {

void check_rank(const Layout& layout, std::int32_t rank) {
  if (rank < 0 || rank >= layout.size())
    throw UsageError("rank " + std::to_string(rank) + " is not one of the " + std::to_string(layout.size()) +
                     " ranks; use 0 to " + std::to_string(layout.size() - 1));
}

hs_box to_c(const Box& box) {
  hs_box result;
  copy3(box.lo, result.lo);
  copy3(box.hi, result.hi);
  return result;
}

Box from_c(const hs_box& box) {
  Box result;
  copy3(box.lo, result.lo);
  copy3(box.hi, result.hi);
  return result;
}

namespace {

GridSpec grid_spec(int32_t dims, const int64_t* cells, const int32_t* periodic) {
  GridSpec grid;
  grid.dims = dims;
  needed(cells, "cells");
  copy3(cells, grid.cells);
  if (periodic) copy3(periodic, grid.periodic);
  return grid;
}

}  // namespace

}  // namespace haloscope::c

using namespace haloscope;
using namespace haloscope::c;

hs_status hs_process_grid(const char* rule, int32_t ranks, int32_t dims, const int64_t cells[3], int32_t grid[3]) {
  return guarded([&] {
    const GridSpec spec = grid_spec(dims, cells, nullptr);
    needed(grid, "grid");
    const ProcessGrid result = process_grid(text(rule), ranks, spec);
    Layout(spec, result);  // more ranks than cells and empty grids are errors here too
    copy3(result, grid);
  });
}

hs_status hs_layout_create(int32_t dims, const int64_t cells[3], const int32_t periodic[3], const int32_t ranks[3],
                           hs_layout** layout) {
  return guarded([&] {
    ProcessGrid grid;
    needed(ranks, "ranks");
    copy3(ranks, grid);
    needed(layout, "layout") = keep(new hs_layout{Layout(grid_spec(dims, cells, periodic), grid)});
  });
}

hs_status hs_layout_create_of(const hs_choice* choice, hs_layout** layout) {
  return guarded([&] { needed(layout, "layout") = keep(new hs_layout{make_layout(needed(choice, "choice").choice)}); });
}

hs_status hs_layout_create_on(const hs_choice* choice, const int32_t* nodes, const int32_t* sockets,
                              hs_layout** layout) {
  return guarded([&] {
    const Choice& c = needed(choice, "choice").choice;
    const int ranks = std::max(0, c.ranks);
    const Sites sites{{&needed(nodes, "nodes"), nodes + ranks}, {&needed(sockets, "sockets"), sockets + ranks}};
    needed(layout, "layout") = keep(new hs_layout{make_layout(c, sites)});
  });
}

hs_status hs_layout_free(hs_layout* layout) { return release(layout, "layout"); }

hs_status hs_layout_get(const hs_layout* layout, hs_layout_data* data) {
  return guarded([&] {
    const Layout& l = needed(layout, "layout").layout;
    hs_layout_data& result = needed(data, "data");
    copy3(l.grid().cells, result.cells);
    copy3(l.grid().periodic, result.periodic);
    copy3(l.ranks(), result.ranks);
    result.dims = l.dims();
    result.size = l.size();
  });
}

hs_status hs_layout_coords(const hs_layout* layout, int32_t rank, int32_t coords[3]) {
  return guarded([&] {
    const Layout& l = needed(layout, "layout").layout;
    check_rank(l, rank);
    needed(coords, "coords");
    copy3(l.coords(rank), coords);
  });
}

hs_status hs_layout_places(const hs_layout* layout, int32_t* places) {
  return guarded([&] {
    const Layout& l = needed(layout, "layout").layout;
    needed(places, "places");
    for (int rank = 0; rank < l.size(); ++rank) {
      const auto at = l.coords(rank);
      places[rank] = at[0] + l.ranks()[0] * (at[1] + l.ranks()[1] * at[2]);
    }
  });
}

hs_status hs_layout_owned(const hs_layout* layout, int32_t rank, hs_box* owned) {
  return guarded([&] {
    const Layout& l = needed(layout, "layout").layout;
    check_rank(l, rank);
    needed(owned, "owned") = to_c(l.owned(rank));
  });
}

hs_status hs_layout_neighbour(const hs_layout* layout, int32_t rank, const int32_t offset[3], int32_t* neighbour) {
  return guarded([&] {
    const Layout& l = needed(layout, "layout").layout;
    check_rank(l, rank);
    needed(offset, "offset");
    for (int d = 0; d < 3; ++d)
      if (offset[d] < -1 || offset[d] > 1) throw UsageError("a neighbour's offset is -1, 0 or 1 in each dimension");
    needed(neighbour, "neighbour") = l.neighbour(rank, {offset[0], offset[1], offset[2]});
  });
}

hs_status hs_layout_owner(const hs_layout* layout, const int64_t cell[3], int32_t* owner) {
  return guarded([&] {
    const Layout& l = needed(layout, "layout").layout;
    needed(cell, "cell");
    const Index at{cell[0], cell[1], cell[2]};
    if (!Box{{0, 0, 0}, l.grid().cells}.contains(at)) throw UsageError("the cell lies outside the grid");
    needed(owner, "owner") = l.owner(at);
  });
}

hs_status hs_layout_classes(const hs_layout* layout, int32_t* classes, int32_t* count) {
  return guarded([&] {
    const Layout& l = needed(layout, "layout").layout;
    needed(classes, "classes");
    const std::vector<int> found = model::plan_classes(l);
    std::copy(found.begin(), found.end(), classes);
    needed(count, "count") = *std::max_element(found.begin(), found.end()) + 1;
  });
}
