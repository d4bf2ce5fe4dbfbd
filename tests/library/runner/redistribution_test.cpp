// Fields move between two splits of a grid: every point that a rank holds in the second one has its owner's value, by
// every strategy, and no more bytes are sent than ranks lack.
#include <gtest/gtest.h>
#include <mpi.h>

#include <numeric>
#include <optional>
#include <set>

#include "allocation_counter.hpp"
#include "each_point.hpp"
#include "haloscope/haloscope.hpp"
#include "haloscope/imitated.hpp"
#include "opened_case.hpp"
#include "random_split.hpp"
#include "tori.hpp"

namespace haloscope {
namespace {

using namespace test;

/// A split of a grid over all ranks, uneven, in any order of ranks, some of which may own no cells or several blocks.
Layout random_layout(std::mt19937& random, const GridSpec& grid) {
  if (pick(random, 0, 2) == 0) return random_deal(random, grid, world_size(), 3 * world_size(), false);
  const int size = world_size(), active = pick(random, 0, 2) == 0 ? pick(random, 1, size) : size;
  Layout even = Layout(grid, random_grid(random, active, grid.dims)).with_idle_ranks(size);
  std::vector<Box> boxes;
  std::array<std::vector<std::int64_t>, 3> moved;
  for (int d = 0; d < 3; ++d) {
    moved[d] = even.cuts(d);
    for (std::size_t c = 1; c + 1 < moved[d].size(); ++c)
      if (moved[d][c] + 1 < moved[d][c + 1]) moved[d][c] += pick(random, 0, 1);
  }
  for (int rank = 0; rank < size; ++rank) {
    Box& box = boxes.emplace_back();
    if (!even.owns_cells(rank)) continue;
    const auto at = even.coords(rank);
    for (int d = 0; d < 3; ++d) {
      box.lo[d] = moved[d][at[d]];
      box.hi[d] = moved[d][at[d] + 1];
    }
  }
  std::shuffle(boxes.begin(), boxes.end(), random);
  return {grid, boxes};
}

/// Fields of one split, block by block, with ghost layers.
struct SplitFields {
  Layout layout;
  int each;  // of a block
  std::vector<FieldMemory> memory;
  std::vector<FieldRef> fields;

  SplitFields(const Layout& of, const std::vector<Quantity>& quantities, const std::vector<int>& halos, int slots,
              MemoryKind kind)
      : layout(of), each(static_cast<int>(quantities.size())) {
    for (int block = 0; block < std::max(1, layout.blocks_of(world_rank())); ++block)
      for (std::size_t q = 0; q < quantities.size(); ++q) {
        const FieldMemory::Options options{quantities[q], halos[q], slots, kind, true, block};
        memory.emplace_back(MPI_COMM_WORLD, layout, world_rank(), std::vector<int>{}, options);
        const Box own = owned(static_cast<int>(memory.size()) - 1);
        const Index cells{own.extent(0), own.extent(1), own.extent(2)};
        fields.push_back({quantities[q], {}, {}, memory.back().slots(), cells});
      }
  }
  /// Returns the cells of the block of field q, in global coordinates.
  Box owned(int q) const {
    if (layout.blocks_of(world_rank()) == 0) return {};
    return layout.by_block().owned(layout.first_block(world_rank()) + q / each);
  }
  Box held(int q) const {
    const Box own = owned(q);
    Box box{{0, 0, 0}, {own.extent(0), own.extent(1), own.extent(2)}};
    for (int d = 0; d < layout.dims() && !own.empty(); ++d) box.hi[d] += staggered(fields[q].quantity.centring, d);
    return box;
  }
  /// Calls visit(is held, first byte, bytes, number of the point in the grid) for the points of a slot and their halo.
  template <class Visit>
  void visit_points(int slot, const std::vector<int>& halos, Visit visit) const {
    for (int q = 0; q < static_cast<int>(fields.size()); ++q) {
      Widths layers{};
      for (int d = 0; d < layout.dims(); ++d) layers[d] = halos[q % each];
      const Box points = held(q);
      if (points.empty()) continue;
      each_point(grown(points, layers, layers), [&](const Index& p) {
        std::int64_t number = q % each;
        for (int d = 0; d < 3; ++d) {
          std::int64_t at = owned(q).lo[d] + p[d];
          if (layout.grid().periodic[d]) at = (at + layout.grid().cells[d]) % layout.grid().cells[d];
          number = number * 1000 + at;
        }
        visit(points.contains(p), fields[q].slots[slot].at(p), fields[q].quantity.element_bytes, number);
      });
    }
  }
};

std::byte value_of(std::int64_t number, int byte) {
  return static_cast<std::byte>(static_cast<std::uint64_t>(number * 8 + byte) * 0x9E3779B97F4A7C15U >> 56);
}

constexpr std::byte ghost{0xA5}, before{0x5A};

/// Fills held points of a side with the values of the grid's points, or all with `value`, and halos with `ghost`.
void fill(const SplitFields& side, int slot, const std::vector<int>& halos, int turn,
          std::optional<std::byte> value = {}) {
  side.visit_points(slot, halos, [&](bool held, std::byte* at, int bytes, std::int64_t number) {
    for (int b = 0; b < bytes; ++b) at[b] = !held ? ghost : value ? *value : value_of(number + turn, b);
  });
}

std::int64_t wrong_bytes(const SplitFields& side, int slot, const std::vector<int>& halos, int turn) {
  std::int64_t wrong = 0;
  side.visit_points(slot, halos, [&](bool held, const std::byte* at, int bytes, std::int64_t number) {
    for (int b = 0; b < bytes; ++b) wrong += at[b] != (held ? value_of(number + turn, b) : ghost);
  });
  return wrong;
}

GridSpec random_grid_spec(std::mt19937& random) {
  GridSpec grid;
  grid.dims = pick(random, 1, 3);
  for (int d = 0; d < 3; ++d) {
    grid.cells[d] = d < grid.dims ? world_size() + pick(random, 0, 5) : 1;
    grid.periodic[d] = d < grid.dims && pick(random, 0, 1);
  }
  return grid;
}

TEST(Redistribution, GivesEveryHolderTheOwnersValueByEveryStrategy) {
  std::mt19937 random(31);
  int tried = 0;
  for (int n = 0; n < (thorough() ? 12 : 2); ++n) {
    const GridSpec grid = random_grid_spec(random);
    const Layout from = random_layout(random, grid), to = random_layout(random, grid);
    std::vector<Quantity> quantities = random_quantities(random);
    for (Quantity& q : quantities) q.centring = static_cast<Centring>(pick(random, 0, 1 + grid.dims));
    std::vector<int> halos, others;
    for (std::size_t q = 0; q < quantities.size(); ++q) {
      halos.push_back(pick(random, 0, 2));
      others.push_back(pick(random, 0, 2));
    }
    const int slots = pick(random, 1, 2);
    for (const Strategy& strategy : strategies_for({})) {
      SCOPED_TRACE(to_string(strategy) + ", case " + std::to_string(n));
      const MemoryKind kind = needs_shared_fields(strategy) ? MemoryKind::shared : MemoryKind::own;
      if (kind == MemoryKind::shared && (from.has_several_blocks() || to.has_several_blocks())) continue;
      const SplitFields source(from, quantities, halos, slots, kind), target(to, quantities, others, slots, kind);
      std::optional<Redistribution> moves;
      run_if_available([&] { moves.emplace(MPI_COMM_WORLD, from, to, source.fields, target.fields, strategy); });
      if (!moves) continue;
      ++tried;
      for (int turn = 0; turn < 2 * slots; ++turn) {
        const int slot = turn % slots;
        fill(source, slot, halos, turn);
        fill(target, slot, others, turn, before);
        MPI_Barrier(MPI_COMM_WORLD);  // neighbours may write into shared fields from here on
        moves->run(slot);
        ASSERT_EQ(wrong_bytes(target, slot, others, turn), 0);
        ASSERT_EQ(wrong_bytes(source, slot, halos, turn), 0);
        MPI_Barrier(MPI_COMM_WORLD);
      }
    }
  }
  EXPECT_GT(tried, 20);
}

/// Returns the bytes that all ranks send.
std::int64_t sent_by_all(const Redistribution& moves) {
  std::int64_t bytes = moves.plan().bytes_out();
  MPI_Allreduce(MPI_IN_PLACE, &bytes, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  return bytes;
}

TEST(Redistribution, SendsOnlyCellsWhoseOwnerChangesInAMessageToEachNewOwner) {
  std::mt19937 random(32);
  for (int n = 0; n < 10; ++n) {
    const GridSpec grid = random_grid_spec(random);
    const Layout from = random_layout(random, grid), to = random_layout(random, grid);
    const std::vector<Quantity> u{{"u", 8}, {"v", 4}};
    const SplitFields source(from, u, {1, 0}, 1, MemoryKind::own), target(to, u, {0, 2}, 1, MemoryKind::own);
    const Redistribution moves(MPI_COMM_WORLD, from, to, source.fields, target.fields, "direct/p2p");
    std::int64_t changed = 0;
    std::set<int> receivers;
    each_point(Box{{0, 0, 0}, grid.cells}, [&](const Index& cell) {
      const int first = from.owner(cell), second = to.owner(cell);
      changed += first != second;
      if (first == world_rank() && second != first) receivers.insert(second);
    });
    EXPECT_EQ(sent_by_all(moves), 12 * changed);
    EXPECT_EQ(moves.plan().messages_out(), static_cast<int>(receivers.size()));
  }
}

TEST(Redistribution, MovesTilesBetweenRanksInAMessageToEachNewOwner) {
  const int size = world_size(), rank = world_rank();
  const GridSpec grid{1, {4 * size, 1, 1}, {}};  // tiles of two cells; each rank has two, then the next rank
  std::vector<std::vector<Box>> before_move(static_cast<std::size_t>(size)), after(static_cast<std::size_t>(size));
  for (int tile = 0; tile < 2 * size; ++tile) {
    const Box box{{2 * tile, 0, 0}, {2 * tile + 2, 1, 1}};
    before_move[static_cast<std::size_t>(tile % size)].push_back(box);
    after[static_cast<std::size_t>((tile + 1) % size)].push_back(box);
  }
  const Layout from = Layout::of_blocks(grid, before_move), to = Layout::of_blocks(grid, after);
  const std::vector<Quantity> quantities{{"u", 8}, {"v", 4}};
  const SplitFields source(from, quantities, {1, 0}, 1, MemoryKind::own),
      target(to, quantities, {0, 1}, 1, MemoryKind::own);
  Redistribution moves(MPI_COMM_WORLD, from, to, source.fields, target.fields);
  EXPECT_EQ(moves.plan().messages_out(), size > 1 ? 1 : 0);
  EXPECT_EQ(moves.plan().bytes_out(), size > 1 ? 4 * (8 + 4) : 0);
  fill(source, 0, {1, 0}, 0);
  fill(target, 0, {0, 1}, 0, before);
  moves.run();
  EXPECT_EQ(wrong_bytes(target, 0, {0, 1}, 0), 0);
  auto fewer = target.fields;
  if (rank == size - 1) fewer.resize(3);
  EXPECT_PART(error_of([&] { Redistribution(MPI_COMM_WORLD, from, to, source.fields, fewer); }),
              "4 sources and 3 targets for 2 and 2 blocks");
}

TEST(Redistribution, GathersAGridOnOneRankAndSpreadsItAgain) {
  const Grid<2> grid{MPI_COMM_WORLD, {.cells = {12, 3 * world_size()}, .process_grid = "slabs"}};
  const Grid<2> whole{MPI_COMM_WORLD, {.cells = {12, 3 * world_size()}, .active_ranks = 1}};
  Field<double, 2> u{grid, {.halo = 1}}, v{grid, {.halo = 2}};
  std::vector<double> all(whole.rank() == 0 ? static_cast<std::size_t>(36 * world_size()) : 0);
  const FieldRef gathered = view(whole, std::vector<double*>{all.empty() ? nullptr : all.data()}, 12, 0, 0);
  const auto global = [&](std::int64_t x, std::int64_t y) {
    return static_cast<double>(12 * (grid.owned().lo[1] + y) + x);
  };
  for (std::int64_t y = 0; y < 3; ++y)
    for (std::int64_t x = 0; x < 12; ++x) u[0](x, y) = global(x, y);
  redistribute(grid, whole, {u}, {gathered});
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], static_cast<double>(i));
  redistribute(whole, grid, {gathered}, {v});
  for (std::int64_t y = 0; y < 3; ++y)
    for (std::int64_t x = 0; x < 12; ++x) EXPECT_EQ(v[0](x, y), global(x, y));
}

TEST(Redistribution, MayBeStartedAndProgressedAndAllocatesNothingLater) {
  const Grid<2> rows{MPI_COMM_WORLD, {.cells = {8 * world_size(), 8 * world_size()}, .process_grid = "slabs"}};
  const Grid<2> columns{
      MPI_COMM_WORLD,
      {.cells = {8 * world_size(), 8 * world_size()}, .process_grid = std::to_string(world_size()) + "x1"}};
  Field<float, 2> u{rows, {}}, v{columns, {}};
  for (const char* strategy : {"direct/p2p", "direct:merged/persistent", "direct/shared:packed"}) {
    auto moves = make_redistribution(rows, columns, {u}, {v}, strategy);
    moves.run();
    const std::int64_t earlier = allocations();
    for (int turn = 0; turn < 3; ++turn) {
      moves.start();
      while (!moves.progress()) {
      }
    }
    EXPECT_EQ(allocations(), earlier) << strategy;
    EXPECT_PART(moves.report(), std::string(strategy) + ": rank ");
  }
}

TEST(Redistribution, IsRightBeforeAndAfterAutoHasChosen) {
  const GridSpec grid{2, {4 * world_size(), 6, 1}, {true, false, false}};
  const Layout from(grid, {world_size(), 1, 1}), to = from.renumbered([] {
    std::vector<int> back(static_cast<std::size_t>(world_size()));
    std::iota(back.rbegin(), back.rend(), 0);
    return back;
  }());
  const std::vector<Quantity> u{{"u", 8, ScalarType::real, Centring::node}};
  const SplitFields source(from, u, {0}, 1, MemoryKind::own), target(to, u, {0}, 1, MemoryKind::own);
  Redistribution moves(MPI_COMM_WORLD, from, to, source.fields, target.fields, "direct/auto:quick");
  for (int turn = 0; turn < 600; ++turn) {
    fill(source, 0, {0}, turn);
    moves.run();
    ASSERT_EQ(wrong_bytes(target, 0, {0}, turn), 0) << turn;
  }
  if (world_size() % 2 == 0) {
    EXPECT_PART(moves.report(), "chose ");
  }
}

TEST(Redistribution, LeavesPointsThatComeFromAHoleAsTheyAre) {
  if (world_size() < 2) return;
  const GridSpec grid{1, {3 * world_size(), 1, 1}, {}};
  std::vector<Box> boxes;
  for (std::int64_t rank = 0; rank < world_size(); ++rank) boxes.push_back({{3 * rank, 0, 0}, {3 * rank + 3, 1, 1}});
  const Layout whole(grid, boxes);
  boxes.back() = {};
  const Layout holed(grid, boxes, true);
  const SplitFields source(holed, {{"u", 1}}, {0}, 1, MemoryKind::own),
      target(whole, {{"u", 1}}, {0}, 1, MemoryKind::own);
  fill(source, 0, {0}, 0);
  fill(target, 0, {0}, 0, before);
  Redistribution(MPI_COMM_WORLD, holed, whole, source.fields, target.fields).run();
  target.visit_points(0, {0}, [&](bool, const std::byte* at, int, std::int64_t number) {
    EXPECT_EQ(*at, world_rank() == world_size() - 1 ? before : value_of(number, 0));
  });
}

TEST(Redistribution, WrongRequestsAreRefusedOnAllRanks) {
  const Layout from({1, {4 * world_size(), 1, 1}, {}}, {world_size(), 1, 1});
  const Layout other({1, {5 * world_size(), 1, 1}, {}}, {world_size(), 1, 1});
  const SplitFields u(from, {{"u", 8}}, {0}, 1, MemoryKind::own), v(from, {{"v", 4}}, {0}, 1, MemoryKind::own),
      w(other, {{"w", 8}}, {0}, 1, MemoryKind::own), two(from, {{"u", 8}}, {0}, 2, MemoryKind::own),
      node(from, {{"n", 8, ScalarType::real, Centring::node}}, {0}, 1, MemoryKind::own);
  const SplitFields pairs(from, {{"p", 8, ScalarType::real, Centring::cell, 1, {}, 4}}, {0}, 1, MemoryKind::own);
  const auto refusal = [&](const SplitFields& source, const SplitFields& target) {
    return error_of([&] {
      Redistribution(MPI_COMM_WORLD, source.layout, target.layout, source.fields, target.fields, "direct/p2p");
    });
  };
  EXPECT_PART(refusal(u, w), "of different grids");
  EXPECT_PART(refusal(u, v), "differ in the bytes of a point: 8 and 4");
  EXPECT_PART(refusal(u, pairs), "differ in the bytes of a number: 8 and 4");
  EXPECT_PART(refusal(u, node), "differ in centring: cell and node");
  EXPECT_PART(refusal(u, two), "differ in the number of slots: 1 and 2");
  EXPECT_PART(refusal(u, u), "share memory");
  EXPECT_PART(error_of([&] { Redistribution(MPI_COMM_WORLD, from, from, u.fields, {}); }), "1 sources and 0 targets");
  EXPECT_PART(error_of([&] { Redistribution(MPI_COMM_WORLD, from, from, {}, {}); }), "a redistribution of no fields");
  const Layout few({1, {4, 1, 1}, {}}, {1, 1, 1});
  if (world_size() > 1) {
    EXPECT_PART(error_of([&] { Redistribution(MPI_COMM_WORLD, few, few, u.fields, u.fields); }),
                "the layout has 1 ranks");
  }
  if (world_size() > 1 && lacking("direct/p2p").empty()) {
    const SplitFields back(from.renumbered([] {
      std::vector<int> all(static_cast<std::size_t>(world_size()));
      std::iota(all.begin(), all.end(), 0);
      std::swap(all.front(), all.back());
      return all;
    }()),
                           {{"u", 8}}, {0}, 1, MemoryKind::own);
    const SplitFields second(from, {{"u", 8}}, {0}, 1, MemoryKind::own);
    const SplitFields& mine = world_rank() == 0 ? second : back;
    EXPECT_PART(refusal(u, mine), "the ranks request different redistributions");
  }
}

TEST(Redistribution, ByLoadsAndStoresNeedsFieldsThatAreSharedWhole) {
  if (world_size() < 2 || !lacking("direct/shared", MemoryKind::shared).empty()) return;
  const std::int64_t n = 4096 * world_size();
  const Grid<2> rows{MPI_COMM_WORLD, {.cells = {4, n}, .process_grid = "slabs"}};
  const Grid<2> one{MPI_COMM_WORLD, {.cells = {4, n}, .active_ranks = 1}};
  for (const bool whole : {false, true}) {
    Field<double, 2> u{rows, {.memory = MemoryKind::shared, .all_shared = whole}},
        v{one, {.memory = MemoryKind::shared, .all_shared = whole}};
    const auto move = [&] { redistribute(rows, one, {u}, {v}, "direct/shared:pull"); };
    if (whole) {
      move();
    } else {
      EXPECT_PART(error_of(move), "all_shared = true");
    }
  }
}

TEST(Redistribution, OfFieldsOnADeviceNeedsNoStrategyAndTheEnvironmentChoosesNone) {
  const Environment set("HALOSCOPE_STRATEGY", "ordered/shared");
  const Grid<1> grid{MPI_COMM_WORLD, {.cells = {4 * world_size()}}},
      whole{MPI_COMM_WORLD, {.cells = {4 * world_size()}, .active_ranks = 1}};
  const std::int64_t n = 4 * world_size();
  auto* u = static_cast<double*>(imitated::allocate(4 * sizeof(double)));
  auto* v = static_cast<double*>(imitated::allocate(static_cast<std::size_t>(n) * sizeof(double)));
  const std::vector<double> mine(4, 1.0 + grid.rank());
  imitated::copy(u, mine.data(), 4 * sizeof(double));
  redistribute(grid, whole, {view<double, 1>(grid, {u}, 0, 0, 0)}, {view<double, 1>(whole, {v}, 0, 0, 0)});
  std::vector<double> all(static_cast<std::size_t>(n));
  imitated::copy(all.data(), v, static_cast<std::size_t>(n) * sizeof(double));
  for (std::int64_t i = 0; i < n && whole.rank() == 0; ++i) EXPECT_EQ(all[i], 1.0 + static_cast<double>(i / 4));
  MPI_Barrier(MPI_COMM_WORLD);
  imitated::release(u);
  imitated::release(v);
}

/// Returns the cells next to this rank's block in dimension d, which its neighbours own: on the low side, the high one.
std::vector<Box> adjacent_boxes(const Grid<2>& grid, int d, std::int64_t width, std::int64_t cells) {
  std::vector<Box> adjacent;
  for (const int side : {0, 1}) {
    if (!grid.has_neighbour(d, side)) continue;
    Box box = grid.owned();
    const std::int64_t first = side == 0 ? box.lo[d] - width : box.hi[d];
    box.lo[d] = (first + cells) % cells;
    box.hi[d] = box.lo[d] + width;
    adjacent.push_back(box);
  }
  return adjacent;
}

TEST(Redistribution, FillsGhostPointsInArraysOfTheirOwn) {
  const MPI_Comm comm = MPI_COMM_WORLD;
  const std::array<std::int64_t, 2> cells{4 * world_size() + 1, 4 * world_size()};
  const std::array<bool, 2> periodic{world_size() == 1, true};
  const std::int64_t width = 2;
  const Grid<2> grid{comm, {.cells = cells, .periodic = periodic}};
  const auto number = [&](std::int64_t x, std::int64_t y) { return static_cast<double>(y * cells[0] + x); };
  std::vector<double> mine;
  const Box own = grid.owned();
  for (std::int64_t y = own.lo[1]; y < own.hi[1]; ++y)
    for (std::int64_t x = own.lo[0]; x < own.hi[0]; ++x) mine.push_back(number(x, y));
  const FieldRef u = view<double, 2>(grid, {mine.data()}, own.extent(0), 0, 0);
  for (const char* strategy : {"direct/p2p", "direct/persistent", "direct/shared:packed"})
    for (const int d : {0, 1}) {
      if (!periodic[d] && grid.layout().ranks()[d] == 1) continue;
      const auto boxes = adjacent_boxes(grid, d, width, cells[d]);
      const auto adjacent = Grid<2>::of_blocks(comm, cells, periodic, boxes, true);
      std::vector<std::vector<double>> arrays;
      std::vector<FieldRef> ghosts;
      for (const Box& box : boxes) arrays.emplace_back(static_cast<std::size_t>(box.extent(0) * box.extent(1)), -1.0);
      for (std::size_t n = 0; n < boxes.size(); ++n) {
        ViewOptions<2> options{.stride = {8, 8 * boxes[n].extent(0)}, .block = static_cast<int>(n)};
        ghosts.push_back(view<double, 2>(adjacent, {arrays[n].data()}, options));
      }
      make_redistribution(grid, adjacent, {u}, ghosts, strategy).run();
      for (std::size_t n = 0; n < boxes.size(); ++n)
        for (std::size_t i = 0; i < arrays[n].size(); ++i) {
          const auto at = static_cast<std::int64_t>(i), row = boxes[n].extent(0);
          EXPECT_EQ(arrays[n][i], number(boxes[n].lo[0] + at % row, boxes[n].lo[1] + at / row));
        }
    }
}

TEST(Redistribution, InFlightIsNotStartedAgain) {
  const auto grid = torus();
  Field<double, 2> u{grid, {.name = "u"}}, v{grid, {.name = "v"}};
  auto moves = make_redistribution(grid, grid, {u}, {v}, "direct/p2p");
  moves.start();
  EXPECT_PART(error_of([&] { moves.start(); }), "still in flight");
  moves.finish();
  EXPECT_PART(error_of([&] { moves.start(1); }), "slot 1 does not exist");
  EXPECT_PART(error_of([&] { moves.start(0, DeviceStream{}); }), "got a stream");
  moves.free();
  EXPECT_PART(error_of([&] { moves.run(); }), "was freed");
}

TEST(Redistribution, IsBetweenGridsOfOneCommunicator) {
  if (world_size() < 2) return;
  MPI_Comm reversed = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank(), &reversed);
  {
    const Grid<1> grid{MPI_COMM_WORLD, {.cells = {2 * world_size()}}}, other{reversed, {.cells = {2 * world_size()}}};
    Field<double, 1> u{grid, {}}, v{other, {}};
    EXPECT_PART(error_of([&] { redistribute(grid, other, {u}, {v}); }), "communicators of different ranks");
  }
  MPI_Comm_free(&reversed);
}

}  // namespace
}  // namespace haloscope
