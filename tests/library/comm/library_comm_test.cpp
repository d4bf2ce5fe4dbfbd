// The library's communicator: many exchanges share it, its tags and its shared memory.
#include "haloscope/comm/library_comm.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <deque>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "haloscope/comm/handles.hpp"
#include "haloscope/comm/maximum.hpp"
#include "haloscope/haloscope.hpp"
#include "haloscope/transport/link_tags.hpp"
#include "pmpi_counter.hpp"
#include "tori.hpp"
#include "world.hpp"

namespace haloscope {
namespace {

/// Sets own points to `value`, and halos to something else.
void fill(const Grid<2>& grid, const Field<double, 2>& u, double value) {
  test::each_cell(grid, 1, [&](auto i, auto j) { u[0](i, j) = test::is_own(grid, i, j) ? value : -1; });
}

void expect_filled(const Grid<2>& grid, const Field<double, 2>& u, double value) {
  test::each_cell(grid, 1, [&](auto i, auto j) { ASSERT_EQ(u[0](i, j), value) << i << "," << j; });
}

/// Ranks of a grid with borders have different messages; messages of the later slots must find each other all the same.
class Slots : public testing::TestWithParam<const char*> {};

TEST_P(Slots, OfGridsWithBordersGetTheirOwnHalos) {
  if (const std::string reason = test::lacking(GetParam()); !reason.empty()) GTEST_SKIP() << reason;
  const Grid<2> grid(MPI_COMM_WORLD, {.cells = {10, 12}});
  Field<double, 2> u(grid, {.halo = 1, .slots = 3});
  auto halo = make_exchange(grid, {u}, GetParam());
  const Index first = grid.owned().lo;
  const auto value = [](int slot, std::int64_t x, std::int64_t y) {
    const bool inside = x >= 0 && x < 10 && y >= 0 && y < 12;
    return inside ? static_cast<double>(1000 * slot + 12 * x + y) : -1.0;
  };
  for (int slot : {2, 0, 1}) {
    test::each_cell(grid, 1, [&](auto i, auto j) {
      u[slot](i, j) = test::is_own(grid, i, j) ? value(slot, first[0] + i, first[1] + j) : -1;
    });
    halo.exchange(slot);
    test::each_cell(grid, 1, [&](auto i, auto j) {
      ASSERT_EQ(u[slot](i, j), value(slot, first[0] + i, first[1] + j)) << slot << ": " << i << "," << j;
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, Slots,
                         testing::Values("direct/p2p", "direct/persistent", "direct/partitioned", "ordered/p2p",
                                         "direct:merged/p2p", "direct/shared:packed", "auto"));

/// Few on more ranks than cores, where they are slow.
int how_many(int ranks, const std::string& strategy) {
  if (!test::thorough()) return ranks > 2 ? 6 : 40;
  if (ranks > 2) return 40;
  return strategy == "auto" ? 3000 : 5000;
}

class ManyExchanges : public testing::TestWithParam<const char*> {};

TEST_P(ManyExchanges, OpenAtOnceMakeNoFurtherCommunicatorAndMoveTheirOwnBytes) {
  MPI_Comm users;
  MPI_Comm_dup(MPI_COMM_WORLD, &users);
  {
    const auto grid = test::small_torus(users);
    Field<double, 2> u(grid, {.halo = 1});
    std::deque<Exchange> open;
    open.push_back(make_exchange(grid, {u}, GetParam()));
    const auto before = test::calls().communicators;
    const auto windows = test::calls().windows_allocated;
    const int count = how_many(ranks_in(users), GetParam());
    for (int n = 1; n < count; ++n) open.push_back(make_exchange(grid, {u}, GetParam()));
    EXPECT_LE(test::calls().communicators, before + count / 500);  // one window for the buffers of some hundreds
    EXPECT_EQ(test::calls().windows_allocated, windows);
    double value = 0;
    for (int round = 0; round < 3; ++round)
      for (Exchange& halo : open) {
        fill(grid, u, ++value);
        halo.exchange();
        expect_filled(grid, u, value);
      }
  }
  MPI_Comm_free(&users);
}

INSTANTIATE_TEST_SUITE_P(Strategies, ManyExchanges,
                         testing::Values("ordered/p2p", "direct/persistent", "direct/p2p:datatype",
                                         "direct/shared:packed", "auto"));

TEST(ManyExchanges, InFlightTogetherKeepTheirMessagesApart) {
  const auto grid = test::small_torus(MPI_COMM_WORLD);
  std::deque<Field<double, 2>> fields;
  std::deque<Exchange> open;
  for (int n = 0; n < 6; ++n) {
    fields.emplace_back(grid, FieldOptions{.halo = 1});
    fill(grid, fields.back(), n);
    open.push_back(make_exchange(grid, {fields.back()}, n % 2 == 0 ? "direct/p2p" : "ordered/shared:packed"));
  }
  for (Exchange& halo : open) halo.start();
  for (int n = 5; n >= 0; --n) open[n].finish();
  for (int n = 0; n < 6; ++n) expect_filled(grid, fields[n], n);
}

TEST(ManyExchanges, OutliveTheUsersCommunicator) {
  MPI_Comm users;
  MPI_Comm_dup(MPI_COMM_WORLD, &users);
  const auto grid = test::small_torus(users);
  Field<double, 2> u(grid, {.halo = 1});
  auto halo = make_exchange(grid, {u}, "ordered/shared:packed");
  MPI_Comm_free(&users);
  fill(grid, u, 3);
  halo.exchange();
  expect_filled(grid, u, 3);
}

TEST(LibraryComm, IsOneForACommunicatorAndForItself) {
  const auto own = LibraryComm::on(MPI_COMM_WORLD);
  EXPECT_EQ(LibraryComm::on(MPI_COMM_WORLD), own);
  EXPECT_EQ(LibraryComm::on(own->comm()), own);
  EXPECT_NE(LibraryComm::on(MPI_COMM_SELF), own);
}

TEST(LibraryComm, ReservesTagsThatNoRankUses) {
  const auto own = LibraryComm::on(MPI_COMM_WORLD);
  TagRange kept;
  {
    const TagRange other = own->reserve_tags(100);
    kept = own->reserve_tags(rank_in(MPI_COMM_WORLD) == 0 ? 200 : 1);  // the largest counts
    EXPECT_GE(kept.first(), other.first() + 100);
  }
  const TagRange next = own->reserve_tags(64);
  EXPECT_GE(next.first(), kept.first() + 200);
}

TEST(LibraryComm, IsNeverFreedOnceTagsAreRetiredSinceMessagesMayBeUnderWay) {
  const int rank = rank_in(MPI_COMM_WORLD), size = ranks_in(MPI_COMM_WORLD);
  if (size == 1) return;  // MPI completes no message to oneself before it is received
  MPI_Comm users;
  MPI_Comm_dup(MPI_COMM_WORLD, &users);
  {
    const auto own = LibraryComm::on(users);
    TagRange tags = own->reserve_tags(1);
    for (int message = 0; message < 2; ++message)
      MPI_Send(nullptr, 0, MPI_BYTE, (rank + 1) % size, tags.first(), own->comm());
    MPI_Barrier(MPI_COMM_WORLD);
    int there = 0;
    for (int poll = 0; poll < 100; ++poll)  // until both have come
      MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
    tags.retire();
  }
  MPI_Comm_free(&users);  // MPI would refuse to free the library's
}

TEST(Maximum, IsThatOfAllRanksTakingPart) {
  const int rank = rank_in(MPI_COMM_WORLD), size = ranks_in(MPI_COMM_WORLD);
  std::vector<int> ranks;
  for (int r = rank % 2; r < size; r += 2) ranks.push_back(r);
  Maximum most(MPI_COMM_WORLD, ranks, 77, 2);
  for (int turn = 0; turn < 3; ++turn) {
    const double mine[] = {rank + 10.0 * turn, -rank - 1.0};
    most.start(mine);
    while (!most.test()) {
    }
    EXPECT_EQ(most.result()[0], ranks.back() + 10.0 * turn);
    EXPECT_EQ(most.result()[1], -ranks.front() - 1.0);
  }
}

/// Both are polled, on each rank another one first.
TEST(Maximum, OfTwoUnderWayTogetherIsEachItsOwn) {
  const auto own = LibraryComm::on(MPI_COMM_WORLD);
  const int rank = rank_in(own->comm()), size = ranks_in(own->comm());
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  const TagRange tags[] = {own->reserve_tags(1), own->reserve_tags(1)};
  Maximum most[] = {{own->comm(), ranks, tags[0].first(), 1}, {own->comm(), ranks, tags[1].first(), 1}};
  for (int turn = 0; turn < 20; ++turn) {
    for (int one : {0, 1}) most[one].start(std::vector<double>{rank + 100.0 * one + 1000 * turn});
    const int late = (rank + turn) % 2;
    for (bool done[2]{}; !done[0] || !done[1];)
      for (int one : {1 - late, late}) done[one] = done[one] || most[one].test();
    for (int one : {0, 1}) ASSERT_EQ(most[one].result()[0], size - 1 + 100.0 * one + 1000 * turn) << turn;
  }
}

/// Tags of messages of every part and slot, and tags that belong to no message of the plan.
std::vector<int> all_tags(const MessageTags& tags, const Plan& plan, int slots) {
  std::vector<int> all{tags.reduction(), tags.failure(), tags.ending(), tags.group()};
  for (const Message& message : plan.messages)
    if (message.out)
      for (int slot = 0; slot < slots; ++slot)
        for (int part = 0; part < MessageTags::parts; ++part) all.push_back(tags.of(message.tag, part, slot));
  return all;
}

/// Ranks of a grid with borders have different messages, and links are ended between others.
TEST(LinkTags, OfLinksOnOneCommunicatorAreApart) {
  const auto own = LibraryComm::on(MPI_COMM_WORLD);
  const Grid<2> grid = test::small_torus(MPI_COMM_WORLD);
  std::vector<std::pair<std::unique_ptr<LinkTags>, std::vector<int>>> open;
  for (int n = 0; n < 40; ++n) {
    ExchangeSpec spec{.quantities = {Quantity{.name = "u"}},
                      .pattern = n % 2 == 0 ? Pattern::direct : Pattern::ordered};
    const Layout layout({2, {40, 40, 1}, {n % 3 == 0, n % 5 == 0, false}}, grid.layout().ranks());
    const Plan plan = make_plan(layout, grid.rank(), spec);
    auto tags = std::make_unique<LinkTags>(*own, plan, 1 + n % 4);
    std::vector<int> mine = all_tags(tags->tags(), plan, 1 + n % 4);
    std::set<int> others;
    for (const auto& [link, used] : open) others.insert(used.begin(), used.end());
    for (const int tag : mine) ASSERT_TRUE(others.insert(tag).second) << tag << " of link " << n;
    open.emplace_back(std::move(tags), std::move(mine));
    if (n % 4 == 3) open.erase(open.begin() + n / 4);
  }
}

/// The messages have all tags that another link may use, and no rank receives them before the exchanges are open.
TEST(LinkTags, ExchangesAreOpenedBesideMessagesThatAreInFlight) {
  const auto own = LibraryComm::on(MPI_COMM_WORLD);
  const Grid<2> grid = test::small_torus(MPI_COMM_WORLD);
  const Plan plan = make_plan(grid.layout(), grid.rank(), {.quantities = {Quantity{.name = "u"}}});
  const LinkTags link(*own, plan, 1);
  const std::vector<int> tags = all_tags(link.tags(), plan, 1);
  const int size = test::world_size(), rank = test::world_rank();
  const int to = (rank + 1) % size, from = (rank + size - 1) % size;
  for (const std::string& strategy : strategy_names()) {
    SCOPED_TRACE(strategy);
    std::vector<MPI_Request> requests(tags.size());
    for (std::size_t n = 0; n < tags.size(); ++n)
      MPI_Isend(&tags[n], 1, MPI_INT, to, tags[n], own->comm(), &requests[n]);
    Field<double, 2> u(grid, {.halo = 1, .memory = MemoryKind::shared});
    test::run_if_available([&] {
      auto halo = make_exchange(grid, {u}, strategy);
      fill(grid, u, 2);
      halo.exchange();
      expect_filled(grid, u, 2);
    });
    for (const int tag : tags) {
      int received = -1;
      MPI_Recv(&received, 1, MPI_INT, from, tag, own->comm(), MPI_STATUS_IGNORE);
      ASSERT_EQ(received, tag);
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  }
}

MPI_Errhandler handler_of(MPI_Comm comm) {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(comm, &handler);
  return handler;
}

TEST(Duplicates, ReturnErrorsWhereThatOfTheProgramEndsTheJob) {
  ASSERT_EQ(handler_of(MPI_COMM_WORLD), MPI_ERRORS_ARE_FATAL);
  const OwnedComm own = duplicate(MPI_COMM_WORLD);
  EXPECT_EQ(handler_of(own.get()), MPI_ERRORS_RETURN);
}

}  // namespace
}  // namespace haloscope
