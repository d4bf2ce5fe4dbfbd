// The library call as a user sees it: fields, third-party arrays, several exchanges in flight, misuse.
#include <gtest/gtest.h>
#include <mpi.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <functional>
#include <optional>
#include <thread>

#include "haloscope/field/memory.hpp"
#include "haloscope/haloscope.hpp"
#include "haloscope/stepper.hpp"
#include "tori.hpp"
#include "world.hpp"

namespace haloscope {
namespace {

using namespace test;

double number(const Grid<2>& grid, std::int64_t i, std::int64_t j, double tag) {
  const Box owned = grid.owned();
  const auto& cells = grid.layout().grid().cells;
  const std::int64_t x = (owned.lo[0] + i + cells[0]) % cells[0], y = (owned.lo[1] + j + cells[1]) % cells[1];
  return tag + static_cast<double>(x + cells[0] * y);
}

/// Owned cells hold their global number, everything else -1.
template <class View>
void number_cells(const Grid<2>& grid, View u, int halo, double tag) {
  each_cell(grid, halo, [&](auto i, auto j) { u(i, j) = is_own(grid, i, j) ? number(grid, i, j, tag) : -1; });
}

template <class View>
void expect_numbered(const Grid<2>& grid, View u, int halo, double tag) {
  const Index n = grid.cells();
  for (std::int64_t j = -halo; j < n[1] + halo; ++j)
    for (std::int64_t i = -halo; i < n[0] + halo; ++i)
      ASSERT_EQ(static_cast<double>(u(i, j)), number(grid, i, j, tag)) << "cell " << i << "," << j;
}

class UserExchange : public testing::Test {
 protected:
  const Grid<2> grid = torus();
};

TEST_F(UserExchange, FillsEverySlotOfALibraryField) {
  Field<double, 2> u{grid, {.halo = 2, .slots = 3}};
  auto halo = make_exchange(grid, {u}, "ordered/persistent");
  for (int slot : {0, 1, 2}) {
    number_cells(grid, u[slot], 2, 1000.0 * slot);
    halo.exchange(slot);
    expect_numbered(grid, u[slot], 2, 1000.0 * slot);
  }
}

TEST_F(UserExchange, WorksOnTheUsersOwnArrays) {
  const Index n = grid.cells();
  const std::int64_t row = n[0] + 2 + 5;  // a pitch that the user chose
  std::vector<float> memory(static_cast<std::size_t>(row * (n[1] + 2)));
  const FieldView<float, 2> u{memory.data() + row + 1, row, 0};
  auto halo = make_exchange(grid, {view<float, 2>(grid, {u.origin}, row, 0, 1)}, "direct:merged/p2p");
  number_cells(grid, u, 1, 0);
  halo.exchange();
  expect_numbered(grid, u, 1, 0);
}

TEST_F(UserExchange, WorksOnAMemberOfStructsWhoseSecondAxisIsContiguous) {
  struct Cell {
    char material;
    double density, energy;
  };
  const auto grid = torus();
  const Index n = grid.cells();
  std::vector<Cell> cells(static_cast<std::size_t>((n[0] + 2) * (n[1] + 3)));
  const std::int64_t row = n[1] + 3;
  const auto at = [&](std::int64_t i, std::int64_t j) -> Cell& { return cells[(i + 1) * row + j + 1]; };
  constexpr std::int64_t size = sizeof(Cell);
  auto halo = make_exchange(
      grid,
      {view<double, 2>(grid, {&at(0, 0).density}, {.stride = {row * size, size}, .low = {1, 1}, .high = {1, 2}}),
       view<char, 2>(grid, {&at(0, 0).material}, {.stride = {row * size, size}, .high = {1, 1}})},
      "ordered/p2p");
  for (Cell& cell : cells) cell = {'?', -1, 7};
  for (std::int64_t i = 0; i < n[0]; ++i)
    for (std::int64_t j = 0; j < n[1]; ++j) at(i, j).density = number(grid, i, j, 0), at(i, j).material = 'a';
  halo.exchange();
  for (std::int64_t i = -1; i <= n[0]; ++i)
    for (std::int64_t j = -1; j < n[1] + 2; ++j) {
      ASSERT_EQ(at(i, j).density, number(grid, i, j, 0)) << i << "," << j;
      ASSERT_EQ(at(i, j).material, i >= 0 && j >= 0 && j <= n[1] ? 'a' : '?') << i << "," << j;
      ASSERT_EQ(at(i, j).energy, 7);
    }
}

/// Strategies for fields in private memory, of which this MPI may lack some.
std::vector<Strategy> own_memory_strategies() {
  std::vector<Strategy> found;
  for (const std::string& name : strategy_names())
    if (const Strategy strategy(name); !needs_shared_fields(strategy)) found.push_back(strategy);
  return sampled(found);
}

TEST_F(UserExchange, OpeningTakesNoMemoryForTheGapsOfASparseArray) {
  constexpr std::int64_t row = 1 << 20;
  const Grid<2> grid(MPI_COMM_WORLD, {.cells = {8, 8 * world_size()}, .process_grid = "slabs"});
  const std::int64_t rows = grid.cells()[1] + 2;
  const auto bytes = static_cast<std::size_t>(rows * row);
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* const first = reinterpret_cast<double*>(static_cast<std::byte*>(memory) + row + 8);
  for (std::int64_t y = 0; y < grid.cells()[1]; ++y) first[y * row / 8] = 1;
  {
    auto halo = make_exchange(grid, {view<double, 2>(grid, {first}, row / 8, 0, 1)}, "ordered/p2p");
    halo.exchange();
    EXPECT_LT(resident_bytes({static_cast<const std::byte*>(memory), bytes}), rows * 16 * 1024);
  }
  munmap(memory, bytes);
}

TEST_F(UserExchange, ArraysMayBeSwappedForOthersAtAnyTimeUnderEveryStrategy) {
  const auto grid = torus(12 * world_size());
  const Index n = grid.cells();
  const std::int64_t row = n[0] + 2;
  const auto make = [&] { return std::vector<double>(static_cast<std::size_t>(row * (n[1] + 2))); };
  std::vector<std::vector<double>> arrays(6);
  for (auto& array : arrays) array = make();
  const auto first = [&](std::size_t a) { return arrays[a].data() + row + 1; };
  const auto fields = [&](std::size_t u, std::size_t v) {
    return std::vector<FieldRef>{view<double, 2>(grid, {first(u), first(v)}, row, 0, 1),
                                 view<double, 2>(grid, {first(v), first(u)}, row, 0, 1)};
  };
  for (const Strategy& strategy : own_memory_strategies()) {
    SCOPED_TRACE(to_string(strategy));
    std::optional<Exchange> halo;
    if (!run_if_available([&] { halo.emplace(make_exchange(grid, fields(0, 1), strategy)); })) continue;
    for (std::size_t turn = 0; turn < 6; ++turn) {
      const std::size_t u = turn, v = (turn + 3) % 6;
      const int slot = static_cast<int>(turn % 2);
      halo->rebind(std::vector<void*>{first(u), first(v)}, slot);
      EXPECT_EQ(halo->first_points(slot), (std::vector<void*>{first(u), first(v)}));
      const FieldView<double, 2> one{first(u), row, 0}, two{first(v), row, 0};
      number_cells(grid, one, 1, 1000.0 * static_cast<double>(turn));
      number_cells(grid, two, 1, -1000.0 * static_cast<double>(turn) - 1);
      halo->exchange(slot);
      expect_numbered(grid, one, 1, 1000.0 * static_cast<double>(turn));
      expect_numbered(grid, two, 1, -1000.0 * static_cast<double>(turn) - 1);
    }
    EXPECT_PART(error_of([&] { halo->rebind(std::vector<void*>{first(0)}); }), "2 fields");
    EXPECT_PART(error_of([&] { halo->rebind(std::vector<void*>{first(0), first(1)}, 2); }), "slot 2");
    EXPECT_PART(error_of([&] { halo->first_points(2); }), "slot 2");
  }
}

/// In each call the array of another rank moves, or of all, or of none.
TEST_F(UserExchange, ArraysPassedToACallMayMoveOnAnyRankUnderEveryStrategy) {
  const auto grid = torus(12 * world_size());
  const std::int64_t row = grid.cells()[0] + 2;
  std::array<std::vector<double>, 2> arrays;
  for (auto& array : arrays) array.resize(static_cast<std::size_t>(row * (grid.cells()[1] + 2)));
  const auto first = [&](int a) { return arrays[static_cast<std::size_t>(a)].data() + row + 1; };
  for (const Strategy& strategy : own_memory_strategies()) {
    SCOPED_TRACE(to_string(strategy));
    std::optional<Exchange> halo;
    const auto field = view<double, 2>(grid, {first(0)}, row, 0, 1);
    if (!run_if_available([&] { halo.emplace(make_exchange(grid, {field}, strategy)); })) continue;
    int at = 0;
    for (int turn = 0; turn < world_size() + 3; ++turn) {
      if (turn == grid.rank() || turn == world_size()) at = 1 - at;
      const FieldView<double, 2> u{first(at), row, 0};
      number_cells(grid, u, 1, 1000.0 * turn);
      halo->exchange_at(std::vector<void*>{first(at)});
      expect_numbered(grid, u, 1, 1000.0 * turn);
    }
    EXPECT_PART(error_of([&] { halo->exchange_at(std::vector<void*>{}); }), "1 fields");
    EXPECT_PART(error_of([&] { halo->exchange_at(std::vector<void*>{first(0)}, 1); }), "slot 1");
    halo->start();
    EXPECT_PART(error_of([&] { halo->exchange_at(std::vector<void*>{first(0)}); }), "in flight");
    halo->finish();
  }
}

TEST_F(UserExchange, WhatOneRankDoesWrongFailsOnAll) {
  Field<double, 2> u{grid, {.halo = 2}}, thin{grid, {.halo = grid.rank() == 0 ? 1 : 2}};
  const std::string error = error_of([&] { make_exchange(grid, {u, thin}, "ordered/p2p", {.width = 2}); });
  EXPECT_PART(error, "room for 1");
  EXPECT_EQ(error.rfind("rank 0: ", 0) == 0, grid.rank() != 0) << error;
}

TEST_F(UserExchange, RanksThatAskForDifferentThingsAllFail) {
  if (world_size() == 1) return;
  const bool first = grid.rank() == 0;
  Field<double, 2> u{grid, {.halo = 2}};
  Field<float, 2> v{grid, {.halo = 2}};
  const auto refused = [&](const std::vector<FieldRef>& fields, const Strategy& strategy,
                           const ExchangeOptions& options) {
    EXPECT_PART(error_of([&] { make_exchange(grid, fields, strategy, options); }), "different exchanges");
  };
  refused({first ? FieldRef(u) : FieldRef(v)}, "ordered/p2p", {});
  refused({u}, first ? "ordered/p2p" : "direct/p2p", {});
  refused({u}, "ordered/p2p", {.width = first ? 1 : 2});
  refused({u}, "ordered/p2p", {.corners = first});
}

TEST_F(UserExchange, SeveralExchangesMayBeInFlight) {
  Field<double, 2> u{grid, {.halo = 1}}, v{grid, {.halo = 1}};
  Field<std::int64_t, 2> w{grid, {.halo = 1}};
  auto first = make_exchange(grid, {u}, "ordered/p2p");
  auto second = make_exchange(grid, {v, w}, "direct/persistent");
  number_cells(grid, u[0], 1, 100);
  number_cells(grid, v[0], 1, 200);
  number_cells(grid, w[0], 1, 300);
  first.start();
  second.start();
  while (!second.progress()) first.progress();
  second.finish();
  first.finish();
  expect_numbered(grid, u[0], 1, 100);
  expect_numbered(grid, v[0], 1, 200);
  expect_numbered(grid, w[0], 1, 300);
}

/// Also by strategies that complete only in a call of MPI that waits.
TEST_F(UserExchange, ALoopOverProgressEndsByEveryStrategy) {
  if (world_size() > 4) GTEST_SKIP();  // more share cores, and take long
  Field<double, 2> u{grid, {.halo = 1, .memory = MemoryKind::shared}};
  for (const bool guard : {false, true})
    for (const std::string& strategy : sampled(strategy_names())) {
      SCOPED_TRACE(strategy);
      run_if_available([&] {
        auto halo = make_exchange(grid, {u}, strategy, {.guard = guard});
        for (const double tag : {100.0, 200.0}) {
          number_cells(grid, u[0], 1, tag);
          if (guard) halo.changed();
          halo.start();
          while (!halo.progress()) std::this_thread::yield();
          expect_numbered(grid, u[0], 1, tag);
          if (HasFatalFailure()) return;
        }
        halo.start_accumulate();
        while (!halo.progress()) std::this_thread::yield();
      });
      if (HasFatalFailure()) return;
    }
}

TEST_F(UserExchange, AnUnfinishedHandleWaitsWhenItIsDestroyed) {
  Field<double, 2> u{grid, {.halo = 1}};
  number_cells(grid, u[0], 1, 0);
  {
    auto halo = make_exchange(grid, {u}, "ordered/p2p:testany");
    halo.start();
  }
  expect_numbered(grid, u[0], 1, 0);
}

TEST_F(UserExchange, AsymmetricWidthsFillOnlyTheirSide) {
  Field<double, 2> u{grid, {.halo = 3}};
  number_cells(grid, u[0], 3, 0);
  auto halo = make_exchange(grid, {u}, "ordered/p2p", {.low = {2, 0, 0}, .high = {0, 1, 0}});
  halo.exchange();
  const Index n = grid.cells();
  EXPECT_EQ(u[0](-2, 0), number(grid, -2, 0, 0));
  EXPECT_EQ(u[0](-3, 0), -1);
  EXPECT_EQ(u[0](n[0], 0), -1);
  EXPECT_EQ(u[0](0, n[1]), number(grid, 0, n[1], 0));
  EXPECT_EQ(u[0](-2, n[1]), number(grid, -2, n[1], 0));
  EXPECT_EQ(u[0](0, -1), -1);
}

TEST_F(UserExchange, MisuseIsExplained) {
  Field<double, 2> u{grid, {.halo = 1}}, two{grid, {.halo = 1, .slots = 2}};
  EXPECT_PART(error_of([&] { make_exchange(grid, {}, "ordered/p2p"); }), "at least one field");
  EXPECT_PART(error_of([&] { make_exchange(grid, {u}, "ordered/p2q"); }), "p2p");
  EXPECT_PART(error_of([&] { make_exchange(grid, {u, two}, "ordered/p2p"); }), "same number of slots");
  EXPECT_PART(error_of([&] { make_exchange(grid, {u}, "ordered/p2p", {.width = 2}); }), "wider halo");
  EXPECT_PART(error_of([&] { Field<double, 2>{grid, {.halo = -1}}; }), "0 or more");
  auto halo = make_exchange(grid, {u}, "ordered/p2p");
  EXPECT_PART(error_of([&] { halo.start(1); }), "slot 1");
}

/// Points of two numbers, and a row more than the fields of a test need.
struct Pairs {
  explicit Pairs(const Grid<2>& grid)
      : row(grid.cells()[0] + 2), numbers(static_cast<std::size_t>(2 * row * (grid.cells()[1] + 3))) {}
  double* first(std::int64_t number) { return numbers.data() + 2 * (row + 1) + number; }
  static FieldRef field(const Grid<2>& grid, const std::vector<double*>& first, std::int64_t row, const char* name) {
    return view<double, 2>(grid, first, {.stride = {16, 16 * row}, .low = {1, 1}, .high = {1, 1}, .name = name});
  }
  std::int64_t row;
  std::vector<double> numbers;
};

TEST_F(UserExchange, FieldsWithoutMemoryOrOfAnotherGridAreRefused) {
  const int ranks = ranks_in(grid.comm());
  const Grid<2> coarse{grid.comm(), {.cells = {6 * ranks, 6 * ranks}, .periodic = {true, true}}};
  ASSERT_NE(grid.cells(), coarse.cells());
  Field<double, 2> u{grid, {.halo = 1, .slots = 2}}, of_coarse{coarse, {.halo = 1, .slots = 2}};
  const auto expect_refusals = [&](const FieldRef& field, const std::string& reason) {
    EXPECT_PART(error_of([&] { make_exchange(grid, {field}, "direct/p2p"); }), reason);
    const std::string by_stepper =
        error_of([&] { Stepper(grid, {field}, {}, SweepSpec{.run = [](const SweepArgs&) {}}); });
    EXPECT_PART(by_stepper, reason);
  };
  expect_refusals(of_coarse, "was made for a grid of which this rank owns");
  const bool last = grid.rank() + 1 == ranks;
  const std::int64_t row = grid.cells()[0] + 2;
  std::vector<double> memory(static_cast<std::size_t>(2 * row * (grid.cells()[1] + 2)));
  double* const first = memory.data() + 2 * row + 1;
  expect_refusals(view<double, 2>(grid, {first, last ? nullptr : first + row}, 2 * row, 0, 1), "has a null pointer");
  const Field<double, 2> moved = std::move(u);
  EXPECT_PART(error_of([&] { static_cast<void>(static_cast<FieldRef>(u)); }), "moved to another one");
}

TEST_F(UserExchange, FieldsThatShareMemoryAreRefusedOnAllRanksAndMembersOfStructsAreNot) {
  Pairs pairs(grid), others(grid);
  const std::int64_t row = pairs.row;
  const auto error = [&](const std::vector<double*>& u, const std::vector<double*>& v) {
    return error_of([&] {
      make_exchange(grid, {Pairs::field(grid, u, row, "u"), Pairs::field(grid, v, row, "v")}, "ordered/p2p");
    });
  };
  EXPECT_EQ(error({pairs.first(0)}, {pairs.first(1)}), "no error");
  EXPECT_EQ(error({pairs.first(0)}, {others.first(0)}), "no error");
  EXPECT_EQ(error({pairs.first(0), others.first(0)}, {others.first(0), pairs.first(0)}), "no error");  // in turn
  EXPECT_EQ(error({pairs.first(0), pairs.first(0)}, {others.first(0), others.first(1)}), "no error");
  EXPECT_PART(error({pairs.first(0)}, {pairs.first(0)}), "'u' (number 1) and 'v' (number 2) share memory");
  EXPECT_PART(error({pairs.first(0)}, {pairs.first(2 * row)}), "share memory");
  EXPECT_PART(error({pairs.first(0)}, {pairs.first(2)}), "share memory");
  EXPECT_PART(error({pairs.first(0), pairs.first(2)}, {others.first(0), others.first(1)}),
              "'u' in slot 0 (number 1) and 'u' in slot 1");
  const std::string one = error({pairs.first(0)}, {grid.rank() == 0 ? pairs.first(0) : pairs.first(1)});
  EXPECT_EQ(one.rfind("rank 0: ", 0) == 0, grid.rank() != 0) << one;
}

TEST_F(UserExchange, FieldsMaySwapMemoryOneByOneButNotShareItWhenAnExchangeStarts) {
  Pairs pairs(grid);
  double *const a = pairs.first(0), *const b = pairs.first(1);
  auto halo = make_exchange(grid, {Pairs::field(grid, {a}, pairs.row, "u"), Pairs::field(grid, {b}, pairs.row, "v")},
                            "ordered/p2p");
  halo.rebind(std::vector<void*>{b, b});
  EXPECT_PART(error_of([&] { halo.start(); }), "share memory");
  EXPECT_PART(error_of([&] { halo.start(); }), "share memory");
  halo.rebind(std::vector<void*>{b, a});
  halo.exchange();
}

TEST_F(UserExchange, AnExchangeThatWasMovedAwayIsNamed) {
  Field<double, 2> u{grid, {.halo = 1}};
  auto halo = make_exchange(grid, {u}, "ordered/p2p");
  Exchange other = std::move(halo);
  for (const std::string& error :
       {error_of([&] { halo.exchange(); }), error_of([&] { halo.finish(); }), error_of([&] { halo.progress(); }),
        error_of([&] { halo.accumulate(); }), error_of([&] { halo.rebind({}); }), error_of([&] { halo.changed(); }),
        error_of([&] { halo.require_fresh(1); }), error_of([&] { halo.check_clean(); }),
        error_of([&] { halo.report(); }), error_of([&] { halo.plan(); }), error_of([&] { halo.first_points(); })})
    EXPECT_PART(error, "moved to another");
  halo = std::move(other);
  halo.exchange();
}

TEST_F(UserExchange, HalvesOfTheRanksExchangeAtTheSameTimeOrAreRefused) {
  MPI_Comm half;
  const int colour = torus().rank() % 2;
  MPI_Comm_split(MPI_COMM_WORLD, colour, 0, &half);
  const Grid<2> grid{half, {.cells = {24, 27}, .periodic = {true, true}}};
  Field<double, 2> u{grid, {.halo = 2, .memory = MemoryKind::shared}};
  for (const std::string& strategy : strategy_names())
    for (int round = 0; round < 4 && strategy.starts_with("direct/"); ++round) {
      MPI_Barrier(MPI_COMM_WORLD);  // MPI may confuse the windows of both
      run_if_available([&] {
        auto halo = make_exchange(grid, {u}, strategy);
        number_cells(grid, u[0], 2, 1000.0 * colour);
        halo.exchange();
        expect_numbered(grid, u[0], 2, 1000.0 * colour);
      });
      ASSERT_FALSE(HasFailure()) << strategy;
    }
  MPI_Comm_free(&half);
}

/// With several threads in MPI, see main.cpp.
class ExchangeByThreads : public testing::Test {
 protected:
  void SetUp() override {
    int level = 0;
    MPI_Query_thread(&level);
    if (level < MPI_THREAD_MULTIPLE) GTEST_SKIP() << "run this suite alone: --gtest_filter=ExchangeByThreads.*";
  }
};

TEST_F(ExchangeByThreads, AThreadIsRefusedWhileAnotherOneIsInACall) {
  const auto grid = torus();
  if (world_size() == 1) return;  // no call waits
  Field<double, 2> u{grid, {.halo = 1}};
  number_cells(grid, u[0], 1, 0);
  auto halo = make_exchange(grid, {u}, "ordered/p2p");
  if (grid.rank() == 0) {  // its neighbours begin when this thread has been refused
    std::atomic<bool> started{false};
    halo.start();
    std::thread waits([&] {
      started = true;
      while (error_of([&] { halo.finish(); }) != "no error") continue;  // while this thread is in a call
    });
    while (!started) continue;
    std::string error = "no error";
    while (error == "no error") error = error_of([&] { halo.progress(); });
    EXPECT_PART(error_of([&] { halo.free(); }), "another thread was in a call");
    EXPECT_PART(error, "another thread was in a call");
    MPI_Barrier(MPI_COMM_WORLD);
    waits.join();
  } else {
    MPI_Barrier(MPI_COMM_WORLD);
    halo.exchange();
  }
  expect_numbered(grid, u[0], 1, 0);
}

TEST_F(ExchangeByThreads, ThreadsOpenAndFreeOnCommunicatorsOfTheirOwn) {
  constexpr int threads = 4, rounds = 10;
  std::array<MPI_Comm, threads> comms;
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  std::array<std::string, threads> found;
  const auto work = [&](int id) {
    const Grid<2> grid{comms[id], {.cells = {12, 15}, .periodic = {true, true}}};
    for (int round = 0; round < rounds; ++round) {
      const Field<double, 2> u{grid, {.halo = 1, .memory = MemoryKind::shared}};
      number_cells(grid, u[0], 1, 1000 * id + round);
      make_exchange(grid, {u}, round % 2 ? "direct/auto" : "direct:merged/shared").exchange();
      each_cell(grid, 1, [&](auto i, auto j) {
        if (u[0](i, j) != number(grid, i, j, 1000 * id + round)) found[id] = "wrong halos";
      });
    }
  };
  std::vector<std::thread> team;
  for (int id = 0; id < threads; ++id)
    team.emplace_back([&, id] {
      if (const std::string error = error_of([&] { work(id); }); error != "no error") found[id] = error;
    });
  for (std::thread& thread : team) thread.join();
  for (const std::string& text : found) EXPECT_EQ(text, "");
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

TEST_F(UserExchange, AfterARefusedRebindNothingMovesUntilTheNextOne) {
  Field<double, 2> u{grid, {.halo = 1, .memory = MemoryKind::shared}}, own{grid, {.halo = 1}};
  auto halo = make_exchange(grid, {u}, "direct/shared");
  EXPECT_NE(error_of([&] { halo.rebind(std::vector<void*>{&own[0](0, 0)}); }), "no error");
  for (const auto& call : std::vector<std::function<void()>>{[&] { halo.exchange(); }, [&] { halo.accumulate(); }})
    EXPECT_PART(error_of(call), "whose last rebind() failed");
  EXPECT_EQ(halo.first_points(), std::vector<void*>{&own[0](0, 0)});
  halo.rebind(std::vector<void*>{&u[0](0, 0)});
  EXPECT_EQ(halo.first_points(), std::vector<void*>{&u[0](0, 0)});
  number_cells(grid, u[0], 1, 5);
  halo.exchange();
  expect_numbered(grid, u[0], 1, 5);
}

TEST_F(UserExchange, FieldsInAnotherOrderOnOneRankAreRefused) {
  if (world_size() == 1) return;
  Field<double, 2> heat{grid, {.name = "heat"}}, salt{grid, {.name = "salt"}},
      mine{grid, {.name = std::to_string(grid.rank())}};
  const std::vector<FieldRef> fields =
      grid.rank() == 0 ? std::vector<FieldRef>{heat, salt} : std::vector<FieldRef>{salt, heat};
  const std::string error = error_of([&] { make_exchange(grid, fields, "ordered/p2p"); });
  EXPECT_PART(error, "order of the fields: heat, salt on rank 0, salt, heat on rank 1");
  EXPECT_EQ(error_of([&] { make_exchange(grid, {heat, mine}, "ordered/p2p"); }), "no error");  // a name per rank
}

TEST_F(UserExchange, AnotherOrderOfRanksOnOneRankIsRefused) {
  const int ranks = world_size();
  if (ranks % 2 != 0 || ranks < 4) return;
  const bool first = torus().rank() == 0;
  const Grid<2> grid{MPI_COMM_WORLD,
                     {.cells = {24, 27},
                      .process_grid = "2x" + std::to_string(ranks / 2),
                      .rank_order = first ? PerDimension<int, 2>{0, 1} : PerDimension<int, 2>{1, 0}}};
  const Field<double, 2> u{grid, {.halo = 1}};
  const std::string error = error_of([&] { make_exchange(grid, {u}, "ordered/p2p"); });
  EXPECT_PART(error, "rank numbers: rank 0 is first, next in x 1, next in y 2 on rank 0");
  EXPECT_PART(error, "next in y 1 on rank 1");
}

TEST_F(UserExchange, OtherBlocksOnOneRankAreRefused) {
  const int ranks = world_size();
  if (ranks == 1) return;
  const GridSpec cells{.dims = 1, .cells = {24, 1, 1}};
  const Layout even(cells, ProcessGrid{ranks, 1, 1});
  std::vector<Box> boxes;
  for (int rank = 0; rank < ranks; ++rank) boxes.push_back(even.owned(rank));
  --boxes[0].hi[0], --boxes[1].lo[0];
  const Layout uneven(cells, boxes);
  const int rank = world_rank();
  const Layout& mine = rank == 0 ? even : uneven;
  std::vector<double> memory(static_cast<std::size_t>(mine.local_cells(rank)[0]) + 2);
  FieldRef field;
  field.quantity = {.name = "u", .element_bytes = 8};
  field.low = field.high = {1, 0, 0};
  field.slots = {{reinterpret_cast<std::byte*>(&memory[1]), {8, 8, 8}, 8}};
  const int end = static_cast<int>(even.owned(0).hi[0]);
  const std::string error = error_of([&] { Exchange(MPI_COMM_WORLD, mine, {field}, Strategy("ordered/p2p")); });
  EXPECT_PART(error, "blocks begin at: 0," + std::to_string(end));
  EXPECT_PART(error, " on rank 0, 0," + std::to_string(end - 1));
}

TEST_F(UserExchange, NodesAndGuardsOfOneRankAreRefused) {
  if (world_size() == 1) return;
  const bool first = torus().rank() == 0;
  const std::vector<int> one_node(static_cast<std::size_t>(world_size()), 0);
  const Grid<2> grid{MPI_COMM_WORLD, {.cells = {24, 27}, .nodes = first ? one_node : std::vector<int>{}}};
  Field<double, 2> u{grid, {.halo = 1}};
  const auto open = [&](const Grid<2>& on, bool guard) { make_exchange(on, {u}, "direct/auto", {.guard = guard}); };
  EXPECT_PART(error_of([&] { open(grid, false); }), "nodes: ");
  EXPECT_PART(error_of([&] { open(torus(), first); }), "guard: on on rank 0");
  EXPECT_PART(error_of([&] { Field<double, 2>(grid, {.memory = MemoryKind::shared}); }), "nodes: ");
}

TEST_F(UserExchange, AThreadThatMayNotCallMpiIsRefused) {
  Field<double, 2> u{grid, {.halo = 1}};
  auto halo = make_exchange(grid, {u}, "ordered/p2p");
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  std::string error;
  std::thread([&] { error = error_of([&] { halo.exchange(); }); }).join();
  EXPECT_EQ(error != "no error", level < MPI_THREAD_SERIALIZED) << error;
  if (level < MPI_THREAD_SERIALIZED) {
    EXPECT_PART(error, "start() came from another thread");
    std::thread([&] { error = error_of([&] { torus(); }); }).join();
    EXPECT_PART(error, "MPI_THREAD_MULTIPLE");
  }
}

TEST_F(UserExchange, WhatOneRankDoesWrongInALaterCollectiveCallFailsOnAll) {
  Field<double, 2> u{grid, {.halo = 1}};
  const bool first = grid.rank() == 0;
  const auto fails = [&](const std::function<void()>& call, const std::string& part) {
    const std::string error = error_of([&] { call(); });
    EXPECT_PART(error, part);
    EXPECT_EQ(error.rfind("rank 0: ", 0) == 0, !first) << error;
  };
  for (const char* strategy : {"direct/neighbor", "direct/partitioned"}) {
    std::optional<Exchange> opened;
    if (!run_if_available([&] { opened.emplace(make_exchange(grid, {u}, strategy, {.guard = true})); })) continue;
    Exchange& halo = *opened;
    fails([&] { halo.accumulate(first ? 7 : 0); }, "slot 7");
    std::vector<void*> where{first ? nullptr : &u[0](0, 0)};
    fails([&] { halo.rebind(where); }, "rebind() got 1 addresses, and number 0 is null");
    fails([&] { halo.check_clean(first ? -1 : 0); }, "slot -1");
    fails([&] { halo.exchange_at(where); }, "exchange_at() got 1 addresses, and number 0 is null");
    for (const auto call : {Exchange::Shared::accumulate, Exchange::Shared::check_clean, Exchange::Shared::share,
                            Exchange::Shared::rebind, Exchange::Shared::run_at})
      fails(
          [&] {
            if (first) halo.refuse(call, Exit::usage, "no such thing");
            if (call == Exchange::Shared::accumulate) halo.accumulate();
            if (call == Exchange::Shared::check_clean) halo.check_clean();
            if (call == Exchange::Shared::share) halo.share();
            where[0] = &u[0](0, 0);
            call == Exchange::Shared::run_at ? halo.exchange_at(where) : halo.rebind(where);
          },
          "no such thing");
    halo.accumulate();
    halo.exchange();
    EXPECT_EQ(error_of([&] { halo.refuse(Exchange::Shared::accumulate, Exit::usage, "local"); }), "local");
  }
}

TEST_F(UserExchange, EachFieldsWholeHaloIsFilledWhereNothingElseIsSaid) {
  Field<double, 2> u{grid, {.halo = 3}};
  Field<float, 2> v{grid, {.halo = 1}};
  auto halo = make_exchange(grid, {u, v}, "direct/p2p");
  number_cells(grid, u[0], 3, 0);
  number_cells(grid, v[0], 1, 5);
  halo.exchange();
  expect_numbered(grid, u[0], 3, 0);
  expect_numbered(grid, v[0], 1, 5);
}

TEST_F(UserExchange, WidthsMayDifferByFieldDimensionAndSide) {
  const Index n = grid.cells();
  Field<double, 2> u{grid, {.halo = 2}}, v{grid, {.halo = 2}};
  auto halo = make_exchange(grid, {u, v}, "ordered/p2p", {.widths = {{{2, 0, 0}, {0, 1, 0}}, {{0, 1, 0}, {1, 2, 0}}}});
  for (auto* field : {&u, &v}) number_cells(grid, (*field)[0], 2, 0);
  halo.exchange();
  EXPECT_EQ(u[0](-2, n[1]), number(grid, -2, n[1], 0));
  EXPECT_EQ(u[0](0, -1), -1);
  EXPECT_EQ(u[0](n[0], 0), -1);
  EXPECT_EQ(v[0](n[0], n[1] + 1), number(grid, n[0], n[1] + 1, 0));
  EXPECT_EQ(v[0](0, -1), number(grid, 0, -1, 0));
  EXPECT_EQ(v[0](-1, 0), -1);
  EXPECT_PART(error_of([&] { make_exchange(grid, {u, v}, "ordered/p2p", {.widths = {{}}}); }), "widths for 1");
  EXPECT_PART(error_of([&] { make_exchange(grid, {u, v}, "ordered/p2p", {.widths = {{}, {}, {}}}); }), "widths for 3");
}

TEST_F(UserExchange, TheEnvironmentOfRankZeroOverridesTheStrategyAndTheReportSaysWhich) {
  Field<double, 2> u{grid, {.halo = 1}};
  const std::string usual = make_exchange(grid, {u}, "ordered/p2p").report();
  EXPECT_EQ(usual.rfind("ordered/p2p: ", 0), 0u) << usual;
  testing::internal::CaptureStderr();
  {
    const Environment only(grid.rank() == 0 ? "HALOSCOPE_STRATEGY" : "HALOSCOPE_OTHER", "direct:merged/persistent");
    for (int i = 0; i < 2; ++i) {
      auto halo = make_exchange(grid, {u}, "ordered/p2p");
      EXPECT_EQ(halo.report().rfind("direct:merged/persistent: ", 0), 0u) << halo.report();
      EXPECT_EQ(halo.plan().spec.pattern, Pattern::direct);
      number_cells(grid, u[0], 1, 0);
      halo.exchange();
      expect_numbered(grid, u[0], 1, 0);
    }
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            grid.rank() == 0 ? "haloscope: HALOSCOPE_STRATEGY=direct:merged/persistent instead of ordered/p2p\n" : "");
  const Environment wrong("HALOSCOPE_STRATEGY", "direct/p2q");
  EXPECT_PART(error_of([&] { make_exchange(grid, {u}, "ordered/p2p"); }), "HALOSCOPE_STRATEGY: ");
}

TEST_F(UserExchange, TheReportOfAutoSaysWhatItHasChosen) {
  Field<double, 2> u{grid, {.halo = 1}};
  EXPECT_PART(make_exchange(grid, {u}, "auto").report(), "; auto: ");
}

TEST_F(UserExchange, CallsBeforeFinishAreRefusedOnAllRanksThoughAllMessagesMayHaveArrived) {
  for (const char* strategy : {"ordered/p2p", "direct/shared:packed", "direct/auto", "reference"})
    for (const bool guard : {false, true}) {
      SCOPED_TRACE(strategy);
      Field<double, 2> u{grid, {.halo = 1}};
      auto halo = make_exchange(grid, {u}, strategy, {.guard = guard});
      for (int step = 0; step < 3; ++step) {
        number_cells(grid, u[0], 1, step);
        halo.changed(0, 0);
        MPI_Barrier(MPI_COMM_WORLD);
        halo.start();
        MPI_Barrier(MPI_COMM_WORLD);
        EXPECT_PART(error_of([&] { halo.start(); }), "call finish() first");
        EXPECT_PART(error_of([&] { halo.start_accumulate(0); }), "call finish() first");
        if (guard) {
          EXPECT_PART(error_of([&] { halo.changed(0, 0); }), "call finish() first");
        }
        halo.finish();
        halo.require_fresh(1);
        expect_numbered(grid, u[0], 1, step);
      }
    }
}

TEST_F(UserExchange, InteriorAndBoundaryTileTheBlock) {
  std::int64_t cells = interior(grid, 2).volume();
  for (const Box& b : boundary(grid, 2)) {
    EXPECT_TRUE(intersect(b, interior(grid, 2)).empty());
    cells += b.volume();
  }
  EXPECT_EQ(cells, grid.cells()[0] * grid.cells()[1]);
}

}  // namespace
}  // namespace haloscope
