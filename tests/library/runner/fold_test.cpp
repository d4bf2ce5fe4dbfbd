// Exchanges on folded grids by every strategy: the values of a run in one process. Tests of the core compare its plans
// with the positions of points.
#include <gtest/gtest.h>
#include <mpi.h>

#include "compared_fields.hpp"
#include "haloscope/haloscope.hpp"
#include "texts.hpp"
#include "world.hpp"

namespace haloscope {
namespace {

using namespace test;

Grid<2> folded_grid(Fold fold) {
  return Grid<2>(MPI_COMM_WORLD, {.cells = {14, 11}, .periodic = {true, false}}).folded(fold);
}

/// The fields of an ocean model: at centres of cells, on their faces, with velocities that change their sign across the
/// fold, in arrays of one shape; and at nodes.
std::vector<Quantity> ocean() {
  std::vector<Quantity> fields{{"T"}, {"U"}, {"V"}, {"F"}};
  for (std::size_t q : {1, 2}) {
    fields[q].edges[1].high = Edge::odd;
    fields[q].on_high_face[q - 1] = true;
  }
  fields[3].centring = Centring::node;
  return fields;
}

TEST(FoldedGrid, HasTheSameHalosByEveryStrategy) {
  std::mt19937 random(53);
  compare_strategies(random, ocean(), [](std::size_t n) { return folded_grid(n % 2 == 0 ? Fold::node : Fold::cell); });
}

TEST(FoldedGrid, RefusesRequestsThatDoNotCrossIt) {
  const auto grid = folded_grid(Fold::cell);
  ComparedFields fields(grid, ocean(), MemoryKind::own);
  auto halo = make_exchange(grid, fields.refs());
  EXPECT_PART(error_of([&] { halo.accumulate(); }), "accumulations do not move points across a fold");
  EXPECT_PART(error_of([&] { halo.share(); }), "shares do not move points across a fold");
  FieldRef open = fields.refs()[0];
  open.quantity.edges[1].high = Edge::nearest;
  EXPECT_PART(error_of([&] { make_exchange(grid, {open}); }), "field 'T' has edge nearest where the grid is folded");
  FieldRef both = fields.refs()[3];
  both.quantity.on_high_face[0] = true;
  EXPECT_PART(error_of([&] { make_exchange(grid, {both}); }), "field 'F' has values on high faces in x");
  Field<double, 2> twice(grid, {.slots = 2});
  const SweepSpec nothing{.run = [](const SweepArgs&) {}};
  EXPECT_PART(error_of([&] { Stepper(grid, {twice}, Choice{}, nothing); }), "a grid without a fold or seams");
  EXPECT_PART(error_of([&] { best(grid, fields.refs()[0], "vienna", {}); }), "only grids without a fold or seams");
  const Grid<2> closed(MPI_COMM_WORLD, {.cells = {14, 11}, .periodic = {false, false}});
  EXPECT_PART(error_of([&] { closed.folded(Fold::node); }), "make it 2D or 3D, periodic in x and not in y");
}

TEST(FoldedGrid, NegatesAVelocityInAnArrayLikeThatOfATracer) {
  const auto comm = MPI_COMM_WORLD;
  const auto globe = Grid<2>(comm, {.cells = {14, 11}, .periodic = {true, false}}).folded(Fold::node);
  Field<double, 2> field(globe, {.halo = 1});
  FieldRef u = field;
  u.quantity.edges[1].high = Edge::odd;
  u.quantity.on_high_face = {true, false};
  const Box own = globe.owned();
  for (std::int64_t i = own.lo[0]; i < own.hi[0]; ++i) field[0](i - own.lo[0], globe.cells()[1] - 1) = double(1 + i);
  make_exchange(globe, {u}).exchange();
  for (std::int64_t i = own.lo[0]; i < own.hi[0] && own.hi[1] == 11; ++i)
    EXPECT_EQ(field[0](i - own.lo[0], globe.cells()[1]), -double(1 + (2 * 14 - 2 - i) % 14));
}

TEST(FoldedGrid, MovesToAGridWithoutAFold) {
  const auto globe = folded_grid(Fold::cell);
  const Grid<2> plain(MPI_COMM_WORLD, {.cells = {14, 11}, .periodic = {true, false}, .process_grid = "slabs"});
  Field<double, 2> from(globe, {.halo = 1}), to(plain, {.halo = 1});
  const auto number = [](const Grid<2>& grid, std::int64_t i, std::int64_t j) {
    return double(grid.owned().lo[0] + i + 100 * (grid.owned().lo[1] + j));
  };
  for (std::int64_t j = 0; j < globe.cells()[1]; ++j)
    for (std::int64_t i = 0; i < globe.cells()[0]; ++i) from[0](i, j) = number(globe, i, j);
  redistribute(globe, plain, {from}, {to});
  for (std::int64_t j = 0; j < plain.cells()[1]; ++j)
    for (std::int64_t i = 0; i < plain.cells()[0]; ++i) EXPECT_EQ(to[0](i, j), number(plain, i, j));
}

TEST(FoldedGrid, IsBorderedByItselfAtTheFold) {
  const auto grid = folded_grid(Fold::node);
  EXPECT_EQ(grid.has_neighbour(1, 1), true);
  EXPECT_EQ(grid.has_neighbour(1, 0), grid.owned().lo[1] > 0);
  EXPECT_EQ(interior(grid, 1).hi[1], grid.cells()[1] - 1);
}

TEST(FoldedGrid, IsGuarded) { expect_guard_beyond(folded_grid(Fold::node)); }

}  // namespace
}  // namespace haloscope
