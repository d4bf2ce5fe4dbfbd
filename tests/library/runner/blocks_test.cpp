// Exchanges of fields on several blocks a rank, by every strategy: the values of a run in one process, in which each
// block has a rank of its own.
#include <gtest/gtest.h>
#include <mpi.h>

#include <array>
#include <cmath>
#include <optional>

#include "haloscope/haloscope.hpp"
#include "link_rig.hpp"
#include "random_split.hpp"
#include "simulated_plans.hpp"
#include "texts.hpp"
#include "world.hpp"

namespace haloscope {
namespace {

using namespace test;

/// The fields of this rank's blocks, without gaps, and the exchange that they take part in.
class Tiles {
 public:
  Tiles(const Layout& on, const ExchangeSpec& requested, int slots) : layout(on), spec(requested) {
    const Plan plan = make_plan(layout, world_rank(), spec);
    for (int q = 0; q < fields_in(plan.spec); ++q) {
      const Box box = plan.allocated(q);
      views.emplace_back();
      for (int slot = 0; slot < slots; ++slot) {
        memory.emplace_back(static_cast<std::size_t>(std::max<std::int64_t>(1, box.volume())));
        const std::int64_t row = 8 * box.extent(0), plane = row * box.extent(1);
        auto* const first = reinterpret_cast<std::byte*>(memory.back().data());
        views.back().push_back({first - 8 * box.lo[0] - row * box.lo[1] - plane * box.lo[2], {8, row, plane}, 8});
      }
    }
  }
  double& at(int slot, int q, const Index& p) const {
    return *reinterpret_cast<double*>(views[static_cast<std::size_t>(q)][static_cast<std::size_t>(slot)].at(p));
  }
  /// Runs a movement here and in one process, from the same random values, and compares all points.
  void compare(Exchange& halo, Motion motion, const Strategy& strategy, int slot, std::mt19937& random) const {
    ExchangeSpec alone = spec;
    alone.motion = motion;
    alone.pattern = strategy.pattern;
    alone.beyond = motion == Motion::fill;
    SimulatedPlans apart(layout.by_block(), alone);
    const int fields = static_cast<int>(spec.quantities.size()), first = layout.first_block(world_rank());
    std::uniform_real_distribution<double> any(-1, 1);
    const auto for_points = [&](const auto& visit) {
      for (int block = 0; block < layout.by_block().size(); ++block)
        for (int q = 0; q < fields; ++q)
          each_point(apart.plan(block).allocated(q), [&](const Index& p) { visit(block, q, p); });
    };
    const auto is_own = [&](int block) { return layout.rank_of_block(block) == world_rank(); };
    for_points([&](int block, int q, const Index& p) {
      const double value = apart.at(block, q, p) = any(random);
      if (is_own(block)) at(slot, (block - first) * fields + q, p) = value;
    });
    apart.run();
    MPI_Barrier(MPI_COMM_WORLD);
    motion == Motion::fill ? halo.exchange(slot) : motion == Motion::share ? halo.share(slot) : halo.accumulate(slot);
    for_points([&](int block, int q, const Index& p) {
      if (is_own(block)) {
        ASSERT_EQ(at(slot, (block - first) * fields + q, p), apart.at(block, q, p)) << to_word(motion);
      }
    });
    MPI_Barrier(MPI_COMM_WORLD);
  }

  /// Returns field number f of each block of this rank.
  std::vector<FieldRef> field(int f) const {
    std::vector<FieldRef> fields;
    const std::size_t each = spec.quantities.size(), n = static_cast<std::size_t>(f);
    for (std::size_t q = n; q < views.size(); q += each)
      fields.push_back({spec.quantities[n], spec.widths[n].low, spec.widths[n].high, views[q]});
    return fields;
  }
  /// Sets each point of field number f to a number of its place in the grid and of f, and ghost layers to others.
  void number_points(int f) const {
    const int first = layout.first_block(world_rank()), each = static_cast<int>(spec.quantities.size());
    for (int block = 0; block < layout.blocks_of(world_rank()); ++block) {
      const Plan plan = make_plan(layout.by_block(), first + block, spec);
      each_point(plan.allocated(f), [&](const Index& p) {
        Index place;
        for (int d = 0; d < 3; ++d) {
          const std::int64_t cells = layout.grid().cells[d], at = layout.by_block().owned(first + block).lo[d] + p[d];
          place[d] = layout.grid().periodic[d] ? (at + cells) % cells : at;
        }
        std::mt19937_64 random(static_cast<std::uint64_t>(place[0] + 100 * place[1] + 10000 * place[2] + 1000000 * f));
        const double value = std::uniform_real_distribution<double>(-1, 1)(random);
        const double number = std::ldexp(value, static_cast<int>(random() % 41));
        at(0, block * each + f, p) = plan.owned(f).contains(p) ? number : 1e30;
      });
    }
  }

  const Layout& layout;
  ExchangeSpec spec;
  std::vector<std::vector<double>> memory;
  Views views;
};

/// Returns a grid of 1 to 3 dimensions of `least` to `most` cells, periodic or not.
GridSpec any_grid(std::mt19937& random, int least, int most) {
  GridSpec grid;
  grid.dims = pick(random, 1, 3);
  for (int d = 0; d < grid.dims; ++d) {
    grid.cells[d] = pick(random, least, most);
    grid.periodic[d] = pick(random, 0, 1) != 0;
  }
  return grid;
}

TEST(SeveralBlocks, GetTheValuesOfBlocksThatHaveARankEachByEveryStrategy) {
  std::mt19937 random(45);
  std::size_t tried = 0;
  for (const std::string& name : strategy_names())
    for (int n = 0; n < (thorough() ? 3 : 1); ++n) {
      const GridSpec grid = any_grid(random, 6, 9);
      const Layout layout = random_deal(random, grid, world_size(), 3 * world_size(), false);
      const ExchangeSpec spec = three_fields(random, grid);
      const Strategy strategy(name);
      SCOPED_TRACE(name);
      const Tiles tiles(layout, spec, 2);
      std::optional<Exchange> halo;
      if (needs_shared_fields(strategy)) continue;
      if (!run_if_available([&] { halo.emplace(MPI_COMM_WORLD, layout, spec, strategy, tiles.views); })) continue;
      ++tried;
      for (const Motion motion : {Motion::fill, Motion::accumulate, Motion::share, Motion::fill})
        tiles.compare(*halo, motion, strategy, pick(random, 0, 1), random);
      if (HasFatalFailure()) return;
    }
  EXPECT_GT(tried, 20u);
}

TEST(SeveralBlocks, NextToHolesGetTheSameValuesByTheReference) {
  std::mt19937 random(47);
  int holes = 0;
  for (int n = 0; n < (thorough() ? 300 : 60); ++n) {
    const GridSpec grid = any_grid(random, 3, 8);
    Layout layout = random_deal(random, grid, world_size(), 3 * world_size(), true);
    holes += layout.has_holes();
    const bool folds = grid.dims > 1 && grid.periodic[0] && !grid.periodic[1] && pick(random, 0, 1) != 0;
    if (folds) layout = layout.folded(pick(random, 0, 1) != 0 ? Fold::node : Fold::cell);
    ExchangeSpec spec = three_fields(random, grid);
    spec.corners = pick(random, 0, 1) != 0;
    spec.pattern = Pattern::direct;
    spec.beyond = true;
    for (Quantity& q : spec.quantities) q.edges = {};
    for (ExchangeSpec::Sides& sides : spec.widths)
      for (int d = 0; d < grid.dims; ++d) {
        sides.low[d] = pick(random, 0, 5);
        sides.high[d] = pick(random, 0, folds && d == 1 ? static_cast<int>(grid.cells[1]) - 2 : 5);
      }
    const Tiles tiles(layout, spec, 1);
    for (const char* strategy : {"reference", "direct/p2p"}) {
      SCOPED_TRACE(std::to_string(n) + " " + strategy);
      Exchange halo(MPI_COMM_WORLD, layout, spec, Strategy(strategy), tiles.views);
      tiles.compare(halo, Motion::fill, Strategy(strategy), 0, random);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(holes, 10);
}

TEST(SeveralBlocks, HaveSumsWithTheBitsOfOneBlockARank) {
  std::mt19937 random(46);
  for (int n = 0; n < (thorough() ? 60 : 15); ++n) {
    const GridSpec grid = any_grid(random, 6, 9);
    ExchangeSpec spec = three_fields(random, grid);
    spec.quantities[1].centring = spec.quantities[0].centring;
    for (Quantity& q : spec.quantities) q.edges = {};
    const Layout dealt = random_deal(random, grid, world_size(), 3 * world_size(), false);
    const Layout even(grid, process_grid("prime-factors", world_size(), grid));
    const auto sums = [&](const Layout& layout) {
      const Tiles tiles(layout, spec, 1);
      for (const int f : {0, 1, 2}) tiles.number_points(f);
      return std::array{sum(MPI_COMM_WORLD, layout, tiles.field(2)),
                        dot(MPI_COMM_WORLD, layout, tiles.field(0), tiles.field(1)),
                        norm(MPI_COMM_WORLD, layout, tiles.field(2))};
    };
    EXPECT_EQ(sums(dealt), sums(even)) << n;
  }
}

/// Two tiles a rank in a row, each of 4 x 5 cells.
Grid<2> row_of_tiles() {
  std::vector<Box> own;
  for (const std::int64_t tile : {world_rank(), world_rank() + world_size()})
    own.push_back({{4 * tile, 0, 0}, {4 * tile + 4, 5, 1}});
  return Grid<2>::of_blocks(MPI_COMM_WORLD, {8 * world_size(), 5}, {true, false}, own);
}

TEST(SeveralBlocks, AreFieldsOfAGridWhosePartsMoveAlone) {
  const auto grid = row_of_tiles();
  EXPECT_EQ(grid.blocks(), 2);
  EXPECT_EQ(grid.cells(1), (Index{4, 5, 1}));
  std::vector<Field<double, 2>> fields;
  std::vector<FieldRef> refs;
  for (const int block : {0, 1})
    for (const char* name : {"u", "v"}) fields.emplace_back(grid, FieldOptions{.name = name, .block = block});
  for (const auto& field : fields) refs.push_back(field);
  auto halo = make_exchange(grid, refs, "direct:merged/p2p", {.guard = true});
  const auto set = [&] {
    for (int q = 0; q < 4; ++q)
      for (std::int64_t i = -1; i <= 4; ++i)
        for (std::int64_t j = -1; j <= 5; ++j)
          fields[q][0](i, j) = i < 0 || i > 3 || j < 0 || j > 4 ? -1 : 100 * q + grid.owned(q / 2).lo[0] + i;
  };
  set();
  halo.exchange({.only = {1}});
  for (int q = 0; q < 4; ++q) {
    const int before = (grid.rank() + world_size() - 1) % world_size();
    // The tile before a first tile is the last rank's first one, or, around the grid, the last one's second.
    const std::int64_t end = 8 * world_size(), left = (grid.owned(q / 2).lo[0] - 1 + end) % end;
    const int block_left = q / 2 == 0 && grid.rank() == 0 ? 1 : q / 2 == 1 && grid.rank() == 0 ? 0 : q / 2;
    EXPECT_EQ(fields[q][0](-1, 2), q % 2 == 0 ? -1 : 100 * (2 * block_left + 1) + left) << q << " " << before;
  }
  set();
  halo.exchange();
  halo.require_fresh(1);
  halo.changed();
  EXPECT_THROW(halo.require_fresh(1), UsageError);
  halo.exchange();
  const double last = fields[3][0](4, 0);
  fields[3][0](3, 4) = fields[3][0](4, 0);
  halo.changed();
  fields[3][0](3, 4) = fields[3][0](4, 0);  // reads a stale halo
  EXPECT_FALSE(last == fields[3][0](4, 0));
  try {
    halo.check_clean();
    FAIL() << "poison was not found";
  } catch (const UsageError& error) {
    const Index first = grid.owned(1).lo;
    const std::string point = "(" + std::to_string(first[0] + 3) + ", 4)";
    if (grid.rank() == 0) {
      EXPECT_PART(error.what(), point);
    }
  }
}

TEST(SeveralBlocks, FollowOtherArraysAndAuto) {
  const auto grid = row_of_tiles();
  std::vector<std::vector<double>> arrays(4, std::vector<double>(6 * 7));
  const auto ref = [&](int block, double* first) {
    return view<double, 2>(grid, {first + 7},
                           {.stride = {8, 48}, .low = {1, 1}, .high = {1, 1}, .name = "u", .block = block});
  };
  for (const char* strategy : {"direct/auto:quick", "ordered/rma-fence", "ordered/shared:packed"}) {
    std::optional<Exchange> halo;
    if (!run_if_available([&] {
          halo.emplace(make_exchange(grid, {ref(0, arrays[0].data()), ref(1, arrays[1].data())}, strategy));
        }))
      continue;
    for (int turn = 0; turn < (thorough() ? 300 : 60); ++turn) {
      const std::size_t from = turn % 3 == 0 ? 0 : 2;
      for (std::size_t block = 0; block < 2; ++block)
        for (std::int64_t i = -1; i <= 4; ++i)
          for (std::int64_t j = -1; j <= 5; ++j)
            arrays[from + block][static_cast<std::size_t>(7 + i + 6 * j)] =
                i < 0 || i > 3 ? -1 : static_cast<double>(turn + 10 * (grid.owned(static_cast<int>(block)).lo[0] + i));
      const std::vector<void*> first{&arrays[from][7], &arrays[from + 1][7]};
      halo->exchange_at(first);
      const std::int64_t end = 8 * world_size();
      for (int block = 0; block < 2; ++block) {
        const std::int64_t low = grid.owned(block).lo[0];
        const auto* at = static_cast<const double*>(first[static_cast<std::size_t>(block)]);
        ASSERT_EQ(at[-1], static_cast<double>(turn + 10 * ((low + end - 1) % end))) << strategy << " " << turn;
        ASSERT_EQ(at[4 + 6 * 4], static_cast<double>(turn + 10 * ((low + 4) % end))) << strategy << " " << turn;
      }
      MPI_Barrier(MPI_COMM_WORLD);
    }
  }
}

TEST(SeveralBlocks, RefuseFieldsThatDoNotFitThem) {
  const auto grid = row_of_tiles();
  Field<double, 2> one(grid, {.block = 0}), two(grid, {.block = 1}), wide(grid, {.halo = 2, .block = 1});
  Field<float, 2> other(grid, {.block = 1});
  Field<std::int64_t, 2> whole(grid, {.block = 1});
  Field<double, 2> node(grid, {.centring = Centring::node, .block = 1});
  const auto refused = [&](const std::vector<FieldRef>& fields) {
    try {
      make_exchange(grid, fields);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refused({one, two}), "accepted");
  EXPECT_PART(refused({one, wide}), "has a halo of 2x2x0 and 2x2x0 layers, and that of block 0 1x1x0 and 1x1x0");
  FieldRef same = two;
  same.slots = FieldRef(one).slots;
  EXPECT_PART(refused({one, same}), "(number 1 of block 0) and ");
  EXPECT_PART(refused({one, same}), "(number 1 of block 1) share memory");
  EXPECT_PART(refused({one}), "1 fields for 2 blocks of this rank");
  EXPECT_PART(refused({one, other}), "of block 1) has 4 bytes a cell (real numbers of 4 bytes)");
  EXPECT_PART(refused({one, whole}), "of block 1) has 8 bytes a cell (integer numbers of 8 bytes)");
  EXPECT_PART(refused({one, node}), "of block 1) has 8 bytes a node (real numbers of 8 bytes)");
  FieldRef mirrored = two;
  mirrored.quantity.edges[1] = Edge::even;
  EXPECT_PART(refused({one, mirrored}),
              "of block 1) has 8 bytes a cell (real numbers of 8 bytes), edges fixed and fixed, edges even and even");
  EXPECT_THROW((Field<double, 2>(grid, {.block = 2})), UsageError);
  EXPECT_THROW((Field<double, 2>(grid, {.memory = MemoryKind::shared})), UsageError);
  const auto refused_sum = [&](const auto& call) {
    try {
      call();
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_PART(refused_sum([&] { sum(grid, one); }),
              "takes the field of each block; this rank passed 1 and has 2 blocks");
  EXPECT_PART(refused_sum([&] { dot(grid, {one, two}, {one, two, one}); }), "this rank passed 3 and has 2 blocks");
  EXPECT_PART(refused_sum([&] { sum(grid, {one, other}); }), "of block 1) has 4 bytes a cell");
  EXPECT_EQ(refused_sum([&] { sum(grid, {one, wide}); }), "accepted");  // halos do not count
  EXPECT_THROW(interior(grid, 1), UsageError);
  EXPECT_THROW(best(grid, one, "vienna", {}), UsageError);
  EXPECT_THROW((Stepper(grid, {one}, Choice{}, SweepSpec{})), UsageError);
  EXPECT_EQ(boundary(grid, 1, 1).size(), 2u);
}

}  // namespace
}  // namespace haloscope
