// Exchanges across seams of panels by every strategy: the values of a run in one process. Tests of the core compare its
// plans with walks from cell to cell.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cmath>

#include "compared_fields.hpp"
#include "haloscope/haloscope.hpp"
#include "texts.hpp"

namespace haloscope {
namespace {

using namespace test;

/// A panel of 5 x 5 cells a rank, in a ring in which each meets the next one's low edges, turned and not.
Grid<2> ring_of_panels() {
  const int size = world_size();
  Panels panels;
  for (int n = 0; n < size; ++n) {
    panels.boxes.push_back({{5 * n, 0, 0}, {5 * n + 5, 5, 1}});
    panels.seams.push_back({{n, 0, 1}, {(n + 1) % size, 1, 0}, true});
    panels.seams.push_back({{n, 1, 1}, {(n + 1) % size, 0, 0}, false});
  }
  const Box own = panels.boxes[static_cast<std::size_t>(world_rank())];
  return Grid<2>::of_boxes(MPI_COMM_WORLD, {5 * size, 5}, {}, own).joined(panels);
}

/// A field at centres of cells and one at nodes; velocities on faces, and at centres.
std::vector<Quantity> winds() {
  std::vector<Quantity> fields{{"T"}, {"F"}, {"U"}, {"V"}, {"u"}, {"v"}};
  fields[1].centring = Centring::node;
  fields[2].centring = Centring::face_x;
  fields[3].centring = Centring::face_y;
  for (std::size_t q = 2; q < 6; ++q) {
    fields[q].vector = q < 4 ? 1 : 2;
    fields[q].along = static_cast<int>(q % 2);
  }
  return fields;
}

TEST(PanelGrid, HasTheSameHalosByEveryStrategy) {
  std::mt19937 random(59);
  compare_strategies(random, winds(), [](std::size_t) { return ring_of_panels(); });
}

/// Deals the faces of a cubed sphere, cut in two, to the ranks.
Grid<2> sphere(std::int64_t edge) {
  std::vector<Box> own;
  for (int half = world_rank(); half < 12; half += world_size())
    own.push_back({{half * edge / 2, 0, 0}, {(half + 1) * edge / 2, edge, 1}});
  return Grid<2>::of_blocks(MPI_COMM_WORLD, {6 * edge, edge}, {}, own).joined(cubed_sphere(edge));
}

/// A place on a sphere, at the centre of a cell of a cube around it.
std::array<double, 3> place_on_cube(const Index& cell, std::int64_t edge) {
  // Faces 0 to 2 have a corner in common, and face n + 3 is opposite of face n.
  const double a = (2.0 * double(cell[0] % edge) + 1) / double(edge) - 1,
               b = (2.0 * double(cell[1]) + 1) / double(edge) - 1;
  switch (cell[0] / edge) {
    case 0:
      return {1, a, b};
    case 1:
      return {-a, 1, b};
    case 2:
      return {-a, -b, 1};
    case 3:
      return {-1, -b, -a};
    case 4:
      return {b, -1, -a};
    default:
      return {b, a, -1};
  }
}

TEST(PanelGrid, OfACubedSphereHasTheNextCellsOfTheCubeBeyondItsEdges) {
  constexpr std::int64_t edge = 6;
  const auto grid = sphere(edge);
  std::vector<Field<std::array<double, 3>, 2>> fields;
  for (int block = 0; block < grid.blocks(); ++block) {
    auto& field = fields.emplace_back(grid, FieldOptions{.halo = 1, .name = "place", .block = block});
    for_points({{-1, -1, 0}, {grid.cells(block)[0] + 1, grid.cells(block)[1] + 1, 1}}, [&](auto i, auto j) {
      const bool own = i >= 0 && j >= 0 && i < grid.cells(block)[0] && j < grid.cells(block)[1];
      if (own) field[0](i, j) = place_on_cube({grid.owned(block).lo[0] + i, grid.owned(block).lo[1] + j, 0}, edge);
    });
  }
  make_exchange(grid, {fields.begin(), fields.end()}, "auto", {.corners = false}).exchange();
  int compared = 0;
  for (int block = 0; block < grid.blocks(); ++block) {
    const Index cells = grid.cells(block);
    const auto& field = fields[static_cast<std::size_t>(block)];
    for_points({{0, 0, 0}, {cells[0], cells[1], 1}}, [&](auto i, auto j) {
      for (const auto& [x, y] : {std::pair{i + 1, j}, {i - 1, j}, {i, j + 1}, {i, j - 1}}) {
        double square = 0;
        for (std::size_t d = 0; d < 3; ++d) square += std::pow(field[0](i, j)[d] - field[0](x, y)[d], 2);
        const double step = 2.0 / edge;  // on a face; around an edge of the cube half of it in two directions
        EXPECT_TRUE(std::abs(square - step * step) < 1e-12 || std::abs(square - step * step / 2) < 1e-12)
            << block << ": " << i << ", " << j << " to " << x << ", " << y;
        ++compared;
      }
    });
  }
  EXPECT_EQ(compared > 0, grid.blocks() > 0);
}

TEST(PanelGrid, TurnsAVelocityAcrossASeam) {
  const auto grid = sphere(4);
  std::vector<Field<double, 2>> fields;
  std::vector<FieldRef> refs;
  for (int block = 0; block < grid.blocks(); ++block)
    for (const int along : {0, 1}) {
      auto& field = fields.emplace_back(grid, FieldOptions{.halo = 1, .name = along == 0 ? "u" : "v", .block = block});
      for_points({{0, 0, 0}, {grid.cells(block)[0], grid.cells(block)[1], 1}},
                 [&](auto i, auto j) { field[0](i, j) = 10.0 * double(grid.owned(block).lo[0] / 4 + 1) + along; });
      refs.emplace_back(field);
      refs.back().quantity.vector = 1;
      refs.back().quantity.along = along;
    }
  make_exchange(grid, refs).exchange();
  for (int block = 0; block < grid.blocks(); ++block) {
    const Box own = grid.owned(block);
    const std::int64_t face = own.lo[0] / 4, next = (face + 1) % 6, turned = (face + 2) % 6;
    const auto u = fields[static_cast<std::size_t>(2 * block)][0],
               v = fields[static_cast<std::size_t>(2 * block + 1)][0];
    if (face % 2 == 0) {  // its high edge of y meets a low edge of x, reversed
      EXPECT_EQ(u(0, 4), -(10.0 * double(turned + 1) + 1));
      EXPECT_EQ(v(0, 4), 10.0 * double(turned + 1));
    } else {
      EXPECT_EQ(u(0, 4), 10.0 * double(next + 1));
      EXPECT_EQ(v(0, 4), 10.0 * double(next + 1) + 1);
    }
  }
}

TEST(PanelGrid, RefusesRequestsThatDoNotCrossSeams) {
  const auto grid = ring_of_panels();
  ComparedFields fields(grid, winds(), MemoryKind::own);
  auto halo = make_exchange(grid, fields.refs());
  EXPECT_PART(error_of([&] { halo.accumulate(); }), "the grid has seams, and accumulations do not move points");
  EXPECT_PART(error_of([&] { halo.share(); }), "the grid has seams, and shares do not move points");
  Field<double, 2> twice(grid, {.slots = 2});
  const SweepSpec nothing{.run = [](const SweepArgs&) {}};
  EXPECT_PART(error_of([&] { Stepper(grid, {twice}, Choice{}, nothing); }), "a grid without a fold or seams");
  EXPECT_PART(error_of([&] { best(grid, fields.refs()[0], "vienna", {}); }), "only grids without a fold or seams");
  const Grid<2> plain(MPI_COMM_WORLD, {.cells = {5 * world_size(), 5}});
  Field<double, 2> node(plain, {.halo = 0, .centring = Centring::node});
  if (world_size() == 1) return;  // one panel touches no other
  Field<double, 2> nodes(grid, {.halo = 0, .name = "F", .centring = Centring::node});
  EXPECT_PART(error_of([&] { redistribute(grid, plain, {nodes}, {node}); }), "panels 0 and 1 touch");
}

TEST(PanelGrid, MovesToAGridWithoutPanels) {
  const auto grid = ring_of_panels();
  const Grid<2> plain(MPI_COMM_WORLD, {.cells = {5 * world_size(), 5}});
  Field<double, 2> from(grid, {.halo = 1}), to(plain, {.halo = 1});
  for_points({{0, 0, 0}, {5, 5, 1}}, [&](auto i, auto j) { from[0](i, j) = double(grid.owned().lo[0] + i + 100 * j); });
  redistribute(grid, plain, {from}, {to});
  for_points({{0, 0, 0}, {plain.cells()[0], plain.cells()[1], 1}}, [&](auto i, auto j) {
    EXPECT_EQ(to[0](i, j), double(plain.owned().lo[0] + i + 100 * (plain.owned().lo[1] + j)));
  });
}

TEST(PanelGrid, IsGuarded) { expect_guard_beyond(ring_of_panels()); }

}  // namespace
}  // namespace haloscope
