// Shared memory: every form, alone and joined with a transport between nodes, on one to three emulated nodes.
#include <cstdlib>

#include "haloscope/comm/shared_memory.hpp"
#include "haloscope/error.hpp"
#include "haloscope/haloscope.hpp"
#include "haloscope/rank/measure/run.hpp"
#include "random_case.hpp"

namespace haloscope::test {
namespace {

/// Numbers of nodes that these ranks can be split into, 0 for no emulation.
std::vector<int> node_counts() { return world_size() > 1 ? std::vector<int>{0, 2} : std::vector<int>{0}; }

/// Every form of shared memory; between nodes, where there are several, `between`.
std::vector<Case> forms(int nodes, Placement placement = Placement::block, const std::string& between = "p2p",
                        const std::vector<std::string>& between_options = {}) {
  std::vector<Case> list;
  for (const char* mode : {"push", "pull", "packed", "fence"}) {
    Case c{.transport = "shared", .options = {mode}, .shared_fields = std::string(mode) != "packed"};
    if (nodes > 0) c.nodes = emulated_nodes(world_size(), nodes, placement);
    if (nodes > 1) {
      c.between = between;
      c.between_options = between_options;
    }
    list.push_back(c);
  }
  return list;
}

/// True if test() can succeed before wait() has been called.
bool polls(const Case& c) { return c.options[0] != "fence"; }

/// The traffic that leaves the node: messages and bytes of one exchange.
Sent across_nodes(const Rig& rig, const Case& c) {
  Sent far;
  for (const Message& m : rig.plan.messages)
    if (m.out && !c.nodes.empty() && c.nodes[m.peer] != c.nodes[world_rank()]) {
      far.messages += 1;
      far.bytes += m.bytes;
    }
  return far;
}

/// Runs several exchanges; MPI moves only messages that cross the border of a node.
void check(const Case& c) {
  if (!c.between.empty() && c.between != "p2p" && c.between != "persistent") return expect_right_halos(c);
  expect_right_halos(c, [&](const Rig& rig) { return across_nodes(rig, c); });
}

TEST(Shared, SE1_EveryGhostPointHoldsTheIdOfThePointItMirrors) {
  std::mt19937 random(60 + world_size());
  const int rounds = world_size() <= 2 ? 30 : world_size() <= 4 ? 8 : 3;
  for (int i = 0; i < rounds && !HasFailure(); ++i)
    for (const Case& form : forms(0)) {
      Case c = random_case(random, form);
      c.poll = c.poll && polls(c);
      c.threads = i % 3 == 2 ? 2 : 1;
      check(c);
    }
}

TEST(Shared, SE2_EmulatedNodesSendOnlyAcrossTheirBorders) {
  std::mt19937 random(70 + world_size());
  const int rounds = world_size() <= 2 ? 8 : world_size() <= 4 ? 3 : 1;
  for (int nodes = 1; nodes <= std::min(3, world_size()); ++nodes)
    for (Placement placement : {Placement::block, Placement::round_robin})
      for (int i = 0; i < rounds && !HasFailure(); ++i)
        for (const Case& form : forms(nodes, placement)) {
          Case c = random_case(random, form);
          c.poll = c.poll && polls(c);
          check(c);
        }
}

TEST(Shared, SE3_AnyTransportOfTheBuildWorksBetweenNodes) {
  std::mt19937 random(80 + world_size());
  for (const TransportTraits* transport : transport_traits()) {
    if (transport->device || transport->name == "reference") continue;  // for other memory, for all halos together
    if (transport->name == "shared" || HasFailure()) continue;
    for (const Case& form : forms(std::min(2, world_size()), Placement::block, transport->name)) {
      Case c = random_case(random, form);
      c.between = transport->name;  // a rank alone has the link too
      c.poll = false;
      EXPECT_NE(error_of<UnavailableError>([&] { check(c); }), "");
    }
  }
}

TEST(Shared, SE1_DelaysOfAnyRankAnywhereDoNotChangeTheHalos) {
  std::mt19937 random(90 + world_size());
  for (int nodes : node_counts())
    for (int i = 0; i < (world_size() <= 4 ? 6 : 2); ++i)
      for (const Case& form : forms(nodes)) {
        Case c = random_case(random, form);
        c.poll = false;
        c.delay_us = 400;
        check(c);
      }
}

TEST(Shared, SE4_SharedBytesAreTheFieldsOrTwoBuffersPerMessage) {
  for (Case c : forms(0)) {
    c = periodic_cube(2, c);
    const std::int64_t before = shared_bytes();
    Rig rig(c);
    std::int64_t fields = 0, buffers = 0, flags = 0;
    std::int64_t peers = 0;
    std::vector<bool> seen(world_size());
    for (int slot = 0; slot < c.slots; ++slot) fields += static_cast<std::int64_t>(rig.fields.bytes(0, slot).size());
    for (const Message& m : rig.plan.messages) {
      if (!m.out) buffers += 2 * c.slots * ((m.bytes + 63) / 64 * 64);
      flags += c.slots * 8;
      peers += !seen[m.peer];
      seen[m.peer] = true;
    }
    const std::int64_t held = shared_bytes() - before;
    if (c.options[0] == "packed") {
      EXPECT_GE(held, buffers + flags);
      EXPECT_LE(held, buffers + flags + 128 * peers + 4096);  // whole pages
    } else {
      // Fields start at different places of a page; layers that no other rank reaches may be private.
      const std::int64_t placing = (c.slots + 1) * 4096 + 1024 + 4096;
      const bool only_slowest = rig.layout.ranks()[0] == 1 && rig.layout.ranks()[1] == 1;
      EXPECT_GE(held, (only_slowest ? c.slots * rig.plan.bytes_out() : fields) + flags);
      EXPECT_LE(held, fields + flags + 128 * peers + placing);
    }
  }
}

TEST(Shared, SteadyStateAllocatesNothing) {
  for (int nodes : node_counts())
    for (const Case& form : forms(nodes)) expect_no_allocations(periodic_cube(2, form));
}

TEST(Shared, BothSlotsCanBeInFlightAtOnce) {
  for (int nodes : node_counts())
    for (const Case& form : forms(nodes)) expect_right_in_flight(periodic_cube(0, form), {0, 1});
}

TEST(Shared, LinkDestroyedInFlightCompletesItsMessages) {
  for (int nodes : node_counts())
    for (const Case& form : forms(nodes)) {
      Case c = periodic_cube(0, form);
      c.spec.pattern = Pattern::direct;
      end_in_flight(c);
      check(c);
    }
}

/// A started push whose neighbour is not ready is neither waited for nor lost.
TEST(Shared, SendDoesNotWaitForANeighbourThatIsLate) {
  if (world_size() < 2) GTEST_SKIP() << "needs a neighbour";
  Case c = periodic_cube(0, forms(0)[0]);
  c.spec.pattern = Pattern::direct;
  c.yield = true;
  Rig rig(c);
  rig.fill(0, 1);
  make_copies(rig.fields.views(), 0, rig.plan.copies).run();
  if (world_rank() == 0) {
    rig.start(0, 0);
    EXPECT_FALSE(rig.link->test(rig.in(0), 0));
    EXPECT_FALSE(rig.link->test_complete(rig.out(0), 0));
    EXPECT_NE(rig.link->waiting_for(rig.in(0), 0), -1);
    EXPECT_NE(rig.link->waiting_for(rig.out(0), 0), -1);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank() != 0) rig.start(0, 0);
  rig.finish(0, 0);
  EXPECT_EQ(rig.wrong_points(0, 1), 0);
}

TEST(Shared, FieldsOutsideSharedMemoryAreRefusedWithTheRemedy) {
  for (Case c : forms(0)) {
    if (c.options[0] == "packed") continue;
    c = periodic_cube(0, c);
    c.shared_fields = false;
    EXPECT_PART(error_of<UsageError>([&] { Rig rig(c); }), "MemoryKind::shared");
  }
}

TEST(Shared, NeighboursOnOtherNodesAreRefusedWithTheRemedy) {
  if (world_size() < 2) GTEST_SKIP() << "needs 2 nodes";
  Case c = periodic_cube(0, forms(2)[2]);
  c.between.clear();
  EXPECT_PART(error_of<UnavailableError>([&] { Rig rig(c); }), "shared+p2p");
  Choice choice{
      .grid = {3, {32, 32, 32}, {true, true, true}}, .ranks = world_size(), .strategy = "ordered/shared", .nodes = 2};
  EXPECT_PART(illegal(choice), "shared+p2p");
  choice.strategy = "ordered/shared+p2p";
  EXPECT_EQ(illegal(choice), "");
  choice.nodes = world_size() + 1;
  EXPECT_PART(illegal(choice), "cannot be split");
}

/// Limits the shared memory that is granted to a number of bytes as long as it lives.
struct Cap {
  explicit Cap(std::int64_t bytes) { cap_shared_memory(bytes); }
  ~Cap() { cap_shared_memory(std::int64_t{1} << 62); }
};

TEST(Shared, SE6_TooLittleSharedMemoryIsAClearErrorBeforeTheRun) {
  if (world_size() < 2) GTEST_SKIP() << "a lone rank shares nothing";
  Choice choice{.grid = {3, {64, 64, 64}, {true, true, true}}, .ranks = world_size()};
  choice.process_grid = std::to_string(world_size()) + "x1x1";  // every page has cells that a neighbour reaches
  choice.strategy = "ordered/shared";
  const Cap cap(3000000);
  std::string text;
  try {
    haloscope::Run run(MPI_COMM_WORLD, choice);
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), Exit::failed);
    text = error.what();
  }
  EXPECT_PART(text, "only 3000000 are left");
  EXPECT_EQ(shared_bytes(), 0);
  choice.strategy = "ordered/shared:packed";  // needs far less
  haloscope::Run(MPI_COMM_WORLD, choice).initialise();
}

TEST(Shared, SE6_MoreThanTheFileSystemHasIsRefusedToo) {
  if (world_size() < 2) GTEST_SKIP() << "a lone rank shares nothing";
  const Node node(MPI_COMM_WORLD);
  try {
    allocate_shared(node, std::size_t{1} << 50);
    ADD_FAILURE() << "a pebibyte was granted";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), Exit::failed);
    EXPECT_PART(error.what(), "/dev/shm");
  }
}

TEST(SharedMemory, EveryRankFindsThePlacesThatOthersName) {
  const Node node(MPI_COMM_WORLD);
  const Memory mine = allocate_shared(node, 10000 + 5000 * world_rank());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(mine.data()) % 4096, 0u);
  EXPECT_TRUE(std::all_of(mine.data(), mine.data() + mine.size(), [](std::byte b) { return b == std::byte{0}; }));
  SharedPlace place = shared_place(mine.data() + 777);
  EXPECT_EQ(place.offset, 777);
  EXPECT_EQ(shared_place(&place).window, -1);
  MPI_Barrier(MPI_COMM_WORLD);
  mine.data()[777] = static_cast<std::byte>(world_rank() + 1);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int r = 0; r < world_size(); ++r)
    EXPECT_EQ(*shared_address(MPI_COMM_WORLD, r, place), static_cast<std::byte>(r + 1));
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(SharedMemory, OnlyLayersNextToOtherRanksAreShared) {
  const int n = world_size();
  const Node node(MPI_COMM_WORLD);
  for (int split : {0, 1, 2}) {
    std::array<int, 3> ranks{1, 1, 1};
    ranks[split] = n;
    const Layout layout({3, {32 * ranks[0], 32 * ranks[1], 32 * ranks[2]}, {true, true, true}}, ranks);
    const Plan plan = make_plan(layout, world_rank(), {});
    const Storage fields(plan, 2, {}, shared_by(node));
    const auto plane = fields.views()[0][0].stride[2];
    const auto whole = static_cast<std::int64_t>(fields.bytes(0, 0).size());
    if (n == 1) {
      EXPECT_LE(shared_bytes(), 0);  // no neighbour reaches it
    } else if (split == 2) {
      EXPECT_GE(shared_bytes(), 2 * 4 * plane);  // both ends of both slots: a halo and the layer it mirrors
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
      EXPECT_GE(shared_bytes(), 2 * whole);  // its windows do not begin on a page, so all of a field is in them
#else
      EXPECT_LE(shared_bytes(), 2 * 6 * plane + 8 * 4096);  // pages are shared whole
#endif
    } else {
      EXPECT_GE(shared_bytes(), 2 * whole);
    }
    // Both sides of the border between private and shared pages are one field.
    for (std::byte& b : fields.bytes(0, 1)) b = std::byte{7};
    EXPECT_TRUE(std::all_of(fields.bytes(0, 1).begin(), fields.bytes(0, 1).end(),
                            [](std::byte b) { return b == std::byte{7}; }));
    if (n == 1) continue;
    // A neighbour sees the last layer's halo.
    MPI_Barrier(MPI_COMM_WORLD);
    Index corner{0, 0, 0};
    corner[split] = 32;
    *fields.views()[0][0].at(corner) = static_cast<std::byte>(world_rank() + 1);
    const SharedPlace place = shared_place(fields.views()[0][0].at(corner));
    MPI_Barrier(MPI_COMM_WORLD);
    for (int r = 0; r < n; ++r) {
      SharedPlace theirs = place;  // ranks that have made different numbers of fields begin them at different offsets
      MPI_Bcast(&theirs, sizeof theirs, MPI_BYTE, r, MPI_COMM_WORLD);
      EXPECT_EQ(*shared_address(MPI_COMM_WORLD, r, theirs), static_cast<std::byte>(r + 1));
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST(SharedMemory, FieldsOfTheUserClassesExchangeThroughIt) {
  struct Nodes {
    int count;
    Placement placement;
  };
  for (const auto& [nodes, placement] :
       {Nodes{1, Placement::block}, Nodes{2, Placement::block}, Nodes{2, Placement::round_robin}}) {
    if (world_size() < nodes) continue;
    const Grid<3> grid(MPI_COMM_WORLD, {.cells = {12, 13, 16},
                                        .periodic = {true, true, true},
                                        .nodes = emulated_nodes(world_size(), nodes, placement)});
    Field<double, 3> u(grid, {.halo = 2, .name = "u", .memory = MemoryKind::shared});
    Field<float, 3> v(grid, {.halo = 2, .name = "v", .memory = MemoryKind::shared});  // in a separate window
    for (const char* strategy : {"ordered/shared+p2p", "direct:merged/shared:pull+persistent:testany",
                                 "ordered:merged/shared:fence+p2p", "ordered/shared:packed+p2p"}) {
      Exchange exchange = make_exchange(grid, {u, v}, strategy);
      const Index first = grid.owned().lo, all = grid.layout().grid().cells;
      const Box own{{0, 0, 0}, grid.cells()}, around = grown(own, {2, 2, 2}, {2, 2, 2});
      const auto value = [&](const Index& p) {
        const auto wrapped = [&](int d) { return (p[d] + first[d] + all[d]) % all[d]; };
        return static_cast<double>(wrapped(0) + 100 * wrapped(1) + 10000 * wrapped(2));
      };
      each_point(around, [&](const Index& p) {
        const double start = own.contains(p) ? value(p) : -1;
        u[0](p[0], p[1], p[2]) = start;
        v[0](p[0], p[1], p[2]) = static_cast<float>(start);
      });
      exchange.exchange();
      std::int64_t wrong = 0;
      each_point(around, [&](const Index& p) {
        wrong += u[0](p[0], p[1], p[2]) != value(p) || v[0](p[0], p[1], p[2]) != static_cast<float>(value(p));
      });
      EXPECT_EQ(wrong, 0) << strategy << " on " << nodes << " node(s), " << to_word(placement);
    }
  }
}

TEST(Nodes, PlacementsSplitTheRanksAsEvenlyAsPossible) {
  EXPECT_EQ(emulated_nodes(6, 2, Placement::block), (std::vector<int>{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(emulated_nodes(5, 2, Placement::round_robin), (std::vector<int>{0, 1, 0, 1, 0}));
  EXPECT_EQ(emulated_nodes(5, 2, Placement::block), (std::vector<int>{0, 0, 0, 1, 1}));
  EXPECT_TRUE(emulated_nodes(5, 0, Placement::block).empty());
  EXPECT_THROW(emulated_nodes(2, 3, Placement::block), UsageError);
  EXPECT_THROW(from_word<Placement>("blok"), UsageError);
}

}  // namespace
}  // namespace haloscope::test
