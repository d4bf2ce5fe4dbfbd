// Exchanges on folded grids by every strategy: the values of a run in one process. Tests of the core compare its plans
// with the positions of points.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cmath>
#include <optional>

#include "haloscope/haloscope.hpp"
#include "link_rig.hpp"
#include "simulated_plans.hpp"
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
class Ocean {
 public:
  Ocean(const Grid<2>& grid, MemoryKind memory) : grid_(grid) {
    const char* const names[] = {"T", "U", "V", "F"};
    for (int q = 0; q < 4; ++q) {
      fields_.emplace_back(grid, FieldOptions{.halo = 2,
                                              .name = names[q],
                                              .centring = q == 3 ? Centring::node : Centring::cell,
                                              .memory = memory,
                                              .all_shared = memory == MemoryKind::shared});
      FieldRef& ref = refs_.emplace_back(fields_.back());
      if (q == 1 || q == 2) {
        ref.quantity.edges[1].high = Edge::odd;
        ref.quantity.on_high_face[static_cast<std::size_t>(q - 1)] = true;
      }
      spec_.quantities.push_back(ref.quantity);
      spec_.widths.push_back({{2, 2, 0}, {2, 2, 0}});
    }
    spec_.quantities.erase(spec_.quantities.begin());  // the default one
  }
  const std::vector<FieldRef>& refs() const { return refs_; }

  /// Runs an exchange here and in one process, from the same random values, and compares all points. Ranks that hold
  /// the same node have the same value there.
  template <class Run>
  void compare(std::mt19937& random, const Run& run) {
    SimulatedPlans simulated(grid_.layout(), spec_);
    const auto turn = random();
    const auto for_points = [&](const auto& visit) {
      for (int rank = 0; rank < world_size(); ++rank)
        for (int q = 0; q < 4; ++q)
          each_point(simulated.plan(rank).allocated(q), [&](const Index& p) { visit(rank, q, p); });
    };
    for_points([&](int rank, int q, const Index& p) {
      const Index low = grid_.layout().owned(rank).lo;
      const bool own = simulated.plan(rank).owned(q).contains(p);
      const auto x = static_cast<std::uint32_t>((low[0] + p[0]) % 14), y = static_cast<std::uint32_t>(low[1] + p[1]);
      const std::uint_fast32_t number = 1000 * static_cast<std::uint32_t>(q) + 20 * y + x;
      std::mt19937 at_place(own ? turn + number : random());
      const double value = simulated.at(rank, q, p) = std::uniform_real_distribution<double>(-1, 1)(at_place);
      if (rank == grid_.rank()) at(q, p) = value;
    });
    simulated.run();
    MPI_Barrier(MPI_COMM_WORLD);
    run();
    for_points([&](int rank, int q, const Index& p) {
      if (rank == grid_.rank()) {
        ASSERT_EQ(at(q, p), simulated.at(rank, q, p)) << q << " at " << p[0] << ", " << p[1];
      }
    });
    MPI_Barrier(MPI_COMM_WORLD);
  }

 private:
  double& at(int q, const Index& p) { return fields_[static_cast<std::size_t>(q)][0](p[0], p[1]); }

  Grid<2> grid_;
  std::vector<Field<double, 2>> fields_;
  std::vector<FieldRef> refs_;
  ExchangeSpec spec_;
};

TEST(FoldedGrid, HasTheSameHalosByEveryStrategy) {
  std::mt19937 random(53);
  std::size_t tried = 0;
  for (const std::string& name : strategy_names()) {
    SCOPED_TRACE(name);
    const Strategy strategy(name);
    const auto grid = folded_grid(++tried % 2 == 0 ? Fold::node : Fold::cell);
    Ocean ocean(grid, needs_shared_fields(strategy) ? MemoryKind::shared : MemoryKind::own);
    std::optional<Exchange> halo;
    if (!run_if_available([&] { halo.emplace(make_exchange(grid, ocean.refs(), name)); })) continue;
    for (int n = 0; n < (thorough() ? 8 : 3); ++n) ocean.compare(random, [&] { halo->exchange(); });
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(tried, 20u);
}

TEST(FoldedGrid, RefusesRequestsThatDoNotCrossIt) {
  const auto grid = folded_grid(Fold::cell);
  Ocean ocean(grid, MemoryKind::own);
  auto halo = make_exchange(grid, ocean.refs());
  const auto refused = [](const auto& call) {
    try {
      call();
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_PART(refused([&] { halo.accumulate(); }), "accumulations do not move points across a fold");
  EXPECT_PART(refused([&] { halo.share(); }), "shares do not move points across a fold");
  FieldRef open = ocean.refs()[0];
  open.quantity.edges[1].high = Edge::nearest;
  EXPECT_PART(refused([&] { make_exchange(grid, {open}); }), "field 'T' has edge nearest where the grid is folded");
  FieldRef both = ocean.refs()[3];
  both.quantity.on_high_face[0] = true;
  EXPECT_PART(refused([&] { make_exchange(grid, {both}); }), "field 'F' has values on high faces in x");
  Field<double, 2> twice(grid, {.slots = 2});
  const SweepSpec nothing{.run = [](const SweepArgs&) {}};
  EXPECT_PART(refused([&] { Stepper(grid, {twice}, Choice{}, nothing); }), "a grid without a fold");
  EXPECT_PART(refused([&] { best(grid, ocean.refs()[0], "vienna", {}); }), "only grids without a fold");
  const Grid<2> closed(MPI_COMM_WORLD, {.cells = {14, 11}, .periodic = {false, false}});
  EXPECT_PART(refused([&] { closed.folded(Fold::node); }), "make it 2D or 3D, periodic in x and not in y");
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

TEST(FoldedGrid, IsGuarded) {
  const auto grid = folded_grid(Fold::node);
  Field<double, 2> field(grid, {.halo = 1});
  auto halo = make_exchange(grid, {field}, "direct/p2p", {.guard = true});
  halo.exchange();
  halo.require_fresh(1);
  halo.changed();
  EXPECT_THROW(halo.require_fresh(1), UsageError);
  EXPECT_TRUE(std::isnan(field[0](0, grid.cells()[1])));  // poisoned
  halo.exchange();
  EXPECT_EQ(field[0](0, grid.cells()[1]), 0);
}

}  // namespace
}  // namespace haloscope
