// Parts of an exchange: some fields, fewer layers, some sides, passed to its calls.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstring>
#include <optional>

#include "allocation_counter.hpp"
#include "haloscope/haloscope.hpp"
#include "random_case.hpp"
#include "tori.hpp"

namespace haloscope {
namespace {

using namespace test;

/// Three fields of different centring, type and halo, and their copies.
struct Three {
  explicit Three(const Grid<2>& on, MemoryKind memory = MemoryKind::own)
      : grid(on),
        cells(on, {.halo = 3, .slots = 2, .name = "cells", .memory = memory}),
        faces(on, {.halo = 2, .slots = 2, .name = "faces", .centring = Centring::face_x, .memory = memory}),
        nodes(on, {.halo = 1, .slots = 2, .name = "nodes", .centring = Centring::node, .memory = memory}) {}
  std::vector<FieldRef> refs() const { return {cells, faces, nodes}; }
  /// Owned points get random values, halos values that no owned point has; the same in every object.
  void fill(int slot, int epoch) const {
    for (const FieldRef& field : refs())
      each_point(allocated(field), [&](const Index& p) {
        const bool own = owned(field).contains(p);
        const Index at{grid.owned().lo[0] + p[0], grid.owned().lo[1] + p[1], 0};
        set(field, slot, p, own ? random_value(3, epoch, grid.layout().grid(), at) : -1 - static_cast<double>(p[0]));
      });
  }
  static Box owned(const FieldRef& field) {
    Box points{{0, 0, 0}, field.cells};
    for (int d = 0; d < 3; ++d) points.hi[d] += staggered(field.quantity.centring, d) && d < 2 ? 1 : 0;
    points.hi[2] = 1;
    return points;
  }
  static Box allocated(const FieldRef& field) { return grown(owned(field), field.low, field.high); }
  static void set(const FieldRef& field, int slot, const Index& p, double value) {
    if (field.quantity.element_bytes == 4) {
      const auto less = static_cast<float>(value);
      std::memcpy(field.slots[slot].at(p), &less, sizeof less);
    } else {
      std::memcpy(field.slots[slot].at(p), &value, sizeof value);
    }
  }

  const Grid<2>& grid;
  Field<double, 2> cells;
  Field<float, 2> faces;
  Field<double, 2> nodes;
};

/// Compares all points of the fields of two objects.
void expect_equal(const Three& found, const Three& expected, int slot) {
  const auto one = found.refs(), other = expected.refs();
  for (std::size_t q = 0; q < one.size(); ++q)
    each_point(Three::allocated(one[q]), [&](const Index& p) {
      ASSERT_EQ(std::memcmp(one[q].slots[slot].at(p), other[q].slots[slot].at(p),
                            static_cast<std::size_t>(one[q].quantity.element_bytes)),
                0)
          << one[q].quantity.name << " at " << p[0] << "," << p[1];
    });
}

/// The layers of a part's fields, as an exchange of these fields alone gets them.
std::vector<ExchangeSpec::Sides> widths_of(const ExchangePart& part, const std::vector<FieldRef>& fields) {
  std::vector<ExchangeSpec::Sides> widths;
  for (const int q : part.only) {
    ExchangeSpec::Sides& sides = widths.emplace_back();
    for (int d = 0; d < 2; ++d) {
      const FieldRef& field = fields[static_cast<std::size_t>(q)];
      sides.low[d] = part.low[d] >= 0 ? part.low[d] : part.depth >= 0 ? part.depth : field.low[d];
      sides.high[d] = part.high[d] >= 0 ? part.high[d] : part.depth >= 0 ? part.depth : field.high[d];
      if (!part.ghost_rows || sides.low[d] > 0 || sides.high[d] > 0) continue;
      sides.rows_low[d] = field.low[d];
      sides.rows_high[d] = field.high[d];
    }
  }
  return widths;
}

/// A part that names its fields in ascending order.
ExchangePart random_part(std::mt19937& random) {
  ExchangePart part;
  for (int q = 0; q < 3; ++q)
    if (pick(random, 0, 1)) part.only.push_back(q);
  if (part.only.empty()) part.only = {pick(random, 0, 2)};
  if (pick(random, 0, 1)) part.depth = 1;
  for (int d = 0; d < 2; ++d)
    if (pick(random, 0, 1)) {
      part.low[d] = pick(random, 0, 1);
      part.high[d] = pick(random, 0, 1);
    }
  part.ghost_rows = pick(random, 0, 1) != 0;
  return part;
}

/// Every strategy, in the memory that it needs: an exchange of the same fields and layers alone gives the same halos,
/// forward and in reverse, and no other point changes.
TEST(Part, FillsWhatAnExchangeOfItsFieldsAndLayersAloneFills) {
  const auto grid = torus();
  std::mt19937 random(61);
  for (const std::string& name : sampled(strategy_names())) {
    const Strategy strategy(name);
    SCOPED_TRACE(name);
    const MemoryKind memory = needs_shared_fields(strategy) ? MemoryKind::shared : MemoryKind::own;
    const Three found(grid, memory), expected(grid);
    std::optional<Exchange> halo;
    if (!run_if_available([&] { halo.emplace(make_exchange(grid, found.refs(), strategy)); })) continue;
    for (int turn = 0; turn < (thorough() ? 6 : 1); ++turn) {
      const ExchangePart part = random_part(random);
      const auto fields = expected.refs();
      std::vector<FieldRef> chosen;
      for (const int q : part.only) chosen.push_back(fields[static_cast<std::size_t>(q)]);
      auto alone = make_exchange(grid, chosen, "direct/p2p", {.widths = widths_of(part, fields)});
      const int slot = turn % 2;
      for (const bool reverse : {false, true, false}) {
        found.fill(slot, turn);
        expected.fill(slot, turn);
        reverse ? alone.accumulate(slot) : alone.exchange(slot);
        MPI_Barrier(MPI_COMM_WORLD);  // neighbours may write into shared fields from here on
        reverse ? halo->accumulate(part, slot) : halo->exchange(part, slot);
        expect_equal(found, expected, slot);
        MPI_Barrier(MPI_COMM_WORLD);
        if (HasFatalFailure()) return;
      }
    }
  }
}

/// A point of the plane, the same on all ranks; y does not wrap around beyond an edge.
double number(const Grid<2>& grid, std::int64_t i, std::int64_t j, bool wraps) {
  const auto& cells = grid.layout().grid().cells;
  const std::int64_t x = (grid.owned().lo[0] + i + cells[0]) % cells[0], y = grid.owned().lo[1] + j;
  return static_cast<double>(x + 1000 * (wraps ? (y + cells[1]) % cells[1] : y + 100));
}

TEST(Part, CarriesGhostRowsThatTheCallerHasComputed) {
  for (const bool wraps : {true, false}) {
    const Grid<2> grid(MPI_COMM_WORLD, {.cells = {6 * world_size() + 1, 6 * world_size()}, .periodic = {true, wraps}});
    for (const std::string& name : sampled(strategy_names())) {
      SCOPED_TRACE(name);
      const MemoryKind memory = needs_shared_fields(Strategy(name)) ? MemoryKind::shared : MemoryKind::own;
      const Field<double, 2> u(grid, {.halo = 2, .memory = memory});
      run_if_available([&] {
        auto halo = make_exchange(grid, {u}, name);
        const auto computed = [&](std::int64_t i) { return i >= 0 && i < grid.cells()[0]; };
        each_cell(grid, 2, [&](auto i, auto j) { u[0](i, j) = computed(i) ? number(grid, i, j, wraps) : -1; });
        MPI_Barrier(MPI_COMM_WORLD);  // neighbours may write into shared fields from here on
        halo.exchange({.low = {2, 0, -1}, .high = {1, 0, -1}, .ghost_rows = true});
        const auto filled = [&](std::int64_t i) { return i <= grid.cells()[0]; };
        each_cell(grid, 2, [&](auto i, auto j) {
          ASSERT_EQ(u[0](i, j), filled(i) ? number(grid, i, j, wraps) : -1) << i << "," << j;
        });
        MPI_Barrier(MPI_COMM_WORLD);
      });
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Part, TheWholeExchangeStaysAndPartsFollowOtherArrays) {
  const auto grid = torus();
  const Three first(grid), second(grid), expected(grid);
  for (const char* strategy : {"ordered/p2p", "direct/persistent", "direct/shared:packed", "direct/rma-fence"}) {
    auto halo = make_exchange(grid, first.refs(), strategy),
         alone = make_exchange(grid, expected.refs(), "ordered/p2p");
    const ExchangePart inner{.only = {2, 0}, .depth = 1};
    for (const Three* at : {&first, &second, &first}) {
      std::vector<void*> origins;
      for (const FieldRef& field : at->refs()) origins.push_back(field.slots[0].origin);
      halo.rebind(origins);
      at->fill(0, 1);
      expected.fill(0, 1);
      halo.exchange(inner);
      EXPECT_EQ(halo.plan().spec.quantities.size(), 3u);
      halo.exchange();
      alone.exchange();
      expect_equal(*at, expected, 0);
    }
  }
}

TEST(Part, RepeatedCallsAllocateNothingAndEqualPartsShareOneLink) {
  const auto grid = torus();
  const Three fields(grid);
  auto halo = make_exchange(grid, fields.refs(), "direct/auto:quick");
  const auto links = [&] {
    std::size_t count = 0;
    const std::string text = halo.report();
    for (std::size_t at = 0; (at = text.find("auto: ", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  const ExchangePart one{.only = {0, 2}, .depth = 1}, same{.only = {2, 0}, .low = {1, 1, 0}, .high = {1, 1, 0}};
  EXPECT_EQ(links(), 1u);
  halo.exchange(one);
  EXPECT_EQ(links(), 2u);
  halo.exchange(same);
  halo.exchange({.only = {0, 1, 2}});
  EXPECT_EQ(links(), 2u);
  EXPECT_PART(halo.report(), "exchange of cells, nodes (layers 1x1x0 and 1x1x0, 1x1x0 and 1x1x0): ");
  auto plain = make_exchange(grid, fields.refs(), "ordered/p2p");
  plain.exchange(one);
  plain.accumulate(one);
  const std::int64_t before = allocations();
  for (int i = 0; i < 4; ++i) {
    plain.exchange(one);
    plain.accumulate(one);
  }
  EXPECT_EQ(allocations(), before);
}

TEST(Part, LayersBeyondAPartStayAsFreshAsTheyAre) {
  const auto grid = torus();
  const Three fields(grid);
  auto halo = make_exchange(grid, fields.refs(), "ordered/p2p", {.guard = true});
  halo.exchange();
  halo.exchange({.depth = 1});
  EXPECT_EQ(error_of([&] { halo.require_fresh(1); }), "no error");
  halo.changed();
  halo.exchange({.only = {0}, .depth = 1});
  EXPECT_PART(error_of([&] { halo.require_fresh(1); }), "'faces'");
  halo.exchange({.only = {1, 2}});
  EXPECT_EQ(error_of([&] { halo.require_fresh(1); }), "no error");
  EXPECT_PART(error_of([&] { halo.require_fresh(2); }), "'cells' in slot 0 is stale");
  halo.accumulate({.only = {1}});
  EXPECT_PART(error_of([&] { halo.require_fresh(1); }), "'faces'");
}

TEST(Part, WrongPartsAreRefusedAndTheExchangeGoesOn) {
  const auto grid = torus();
  const Three fields(grid);
  auto halo = make_exchange(grid, fields.refs(), "ordered/p2p");
  EXPECT_PART(error_of([&] { halo.start({.only = {3}}); }), "field 3 of a part does not exist");
  EXPECT_PART(error_of([&] { halo.start({.only = {-1}}); }), "field -1");
  EXPECT_PART(error_of([&] { halo.start({.only = {1, 1}}); }), "twice");
  EXPECT_PART(error_of([&] { halo.start({.depth = 2}); }), "2 layers of field 'nodes' in x");
  EXPECT_PART(error_of([&] { halo.start({.only = {0}, .high = {0, 4, 0}}); }), "4 layers of field 'cells' in y");
  EXPECT_PART(error_of([&] { halo.start({.depth = -2}); }), "-2 layers");
  EXPECT_PART(error_of([&] { halo.start({.depth = 1}, 2); }), "slot 2");
  EXPECT_PART(error_of([&] { halo.start({.depth = 1}, 0, DeviceStream{}); }), "device");
  halo.start({.depth = 1});
  EXPECT_PART(error_of([&] { halo.start({.depth = 1}); }), "still in flight");
  halo.finish();
  halo.exchange();
  if (world_size() == 1) return;
  EXPECT_PART(error_of([&] { halo.start({.only = {grid.rank() == 0 ? 0 : 1}}); }), "different");
  halo.exchange();
}

/// Fields of one kind differ only in their numbers.
TEST(Part, RanksThatNameOtherFieldsOfOneKindInAFirstCallAreRefused) {
  if (world_size() == 1) GTEST_SKIP();
  const auto grid = torus();
  const Field<double, 2> u(grid, {.halo = 1, .name = "u"}), v(grid, {.halo = 1, .name = "v"});
  auto halo = make_exchange(grid, {u, v}, "direct/p2p");
  const ExchangePart mine{.only = {grid.rank() == 0 ? 0 : 1}};
  EXPECT_PART(error_of([&] { halo.exchange(mine); }), "numbers of the fields: 0 on rank 0, 1 on rank 1");
  EXPECT_PART(error_of([&] { halo.accumulate(mine); }), "numbers of the fields");
  EXPECT_PART(error_of([&] { halo.share(mine); }), "numbers of the fields");
  halo.exchange({.only = {1}});
}

TEST(Part, RanksThatMakeAFirstCallOfOtherExchangesAreRefused) {
  if (world_size() == 1) GTEST_SKIP();
  const auto grid = torus();
  const Field<double, 2> u(grid, {.halo = 2, .name = "u"}), v(grid, {.halo = 2, .name = "v"});
  auto one = make_exchange(grid, {u}, "direct/p2p"), other = make_exchange(grid, {v}, "direct/p2p");
  auto& mine = grid.rank() == 0 ? one : other;
  EXPECT_PART(error_of([&] { mine.exchange({.depth = 1}); }), "exchange: of u, message tags from");
  EXPECT_PART(error_of([&] { mine.accumulate(); }), "exchange: of u, message tags from");
  one.exchange({.depth = 1});
  other.exchange({.depth = 1});
}

/// Each rank names the same part in its own way, after a first call in one way.
TEST(Part, AnotherNameOfAPartIsNoFirstCall) {
  const auto grid = torus();
  const Field<double, 2> u(grid, {.halo = 2, .name = "u"}), v(grid, {.halo = 2, .name = "v"});
  auto halo = make_exchange(grid, {u, v}, "ordered/p2p");
  const ExchangePart names[]{{.only = {0, 1}, .depth = 1},
                             {.only = {1, 0}, .low = {1, 1, -1}, .high = {1, 1, -1}},
                             {.depth = 1},
                             {.depth = 2, .low = {1, 1, 1}, .high = {1, 1, 1}}};
  halo.exchange(names[0]);
  halo.accumulate(names[0]);
  for (std::size_t turn = 0; turn < std::size(names); ++turn) {
    const ExchangePart& mine = names[(turn + static_cast<std::size_t>(grid.rank())) % std::size(names)];
    each_cell(grid, 2, [&](auto i, auto j) { u[0](i, j) = is_own(grid, i, j) ? 1 : 0; });
    halo.exchange(mine);
    each_cell(grid, 2, [&](auto i, auto j) {
      const bool near = i >= -1 && j >= -1 && i <= grid.cells()[0] && j <= grid.cells()[1];
      ASSERT_EQ(u[0](i, j), near ? 1 : 0) << i << "," << j;
    });
    halo.accumulate(mine);
  }
  const ExchangePart whole[]{{}, {.only = {1, 0}}, {.depth = 2}, {.low = {2, 2, -1}}};
  for (std::size_t turn = 0; turn < std::size(whole); ++turn)
    halo.exchange(whole[(turn + static_cast<std::size_t>(grid.rank())) % std::size(whole)]);
}

TEST(Part, AnAccumulationMakesAllHalosOfItsFieldsStale) {
  const auto grid = torus();
  const Three fields(grid);
  auto halo = make_exchange(grid, fields.refs(), "ordered/p2p", {.guard = true});
  halo.exchange();
  halo.accumulate({.only = {0}, .depth = 0, .low = {1, -1, -1}});
  halo.exchange({.only = {0}, .depth = 0, .low = {3, -1, -1}, .high = {3, -1, -1}});
  EXPECT_PART(error_of([&] { halo.require_fresh(1); }), "'cells' in slot 0 is stale on the low side in y");
}

/// Ranks that start different parts: found by the guard, and named by fields.
TEST(Part, AGuardNamesThePartsInWhichRanksDiffer) {
  if (world_size() != 2) GTEST_SKIP();
  const auto grid = torus();
  const Three fields(grid);
  auto halo = make_exchange(grid, fields.refs(), "ordered/p2p", {.guard = true});
  const ExchangePart one{.only = {0}}, other{.only = {1}};
  halo.exchange(one);
  halo.exchange(other);
  const std::string error = error_of([&] { halo.exchange(grid.rank() == 0 ? one : other); });
  EXPECT_PART(error, "exchanges cells (layers 3x3x0 and 3x3x0)");
  EXPECT_PART(error, "exchanges faces (layers 2x2x0 and 2x2x0)");
}

TEST(Part, AGuardNamesTheWholeExchangeWhereOneRankMakesAPart) {
  if (world_size() != 2) GTEST_SKIP();
  const auto grid = torus();
  const Three fields(grid);
  auto halo = make_exchange(grid, fields.refs(), "ordered/p2p", {.guard = true});
  const ExchangePart one{.only = {0}};
  halo.exchange(one);
  EXPECT_PART(error_of([&] { grid.rank() == 0 ? halo.exchange(one) : halo.exchange(); }),
              "rank 1 exchanges all fields");
}

}  // namespace
}  // namespace haloscope
