// One-sided transports: every option list fills every halo under random delays, single messages move in any order, and
// the calls are those that each form of synchronisation is known by.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <random>

#include "allocation_counter.hpp"
#include "haloscope/core/choice.hpp"
#include "haloscope/core/error.hpp"
#include "haloscope/runner/exchange.hpp"
#include "link_rig.hpp"
#include "pmpi_counter.hpp"

namespace haloscope::test {
namespace {

using Words = std::vector<std::string>;

/// All ways to take one word of each list; "" is no word.
std::vector<Words> product(const std::vector<Words>& lists) {
  std::vector<Words> all{{}};
  for (const Words& list : lists) {
    std::vector<Words> longer;
    for (const Words& begin : all)
      for (const std::string& word : list) {
        longer.push_back(begin);
        if (!word.empty()) longer.back().push_back(word);
      }
    all = longer;
  }
  return all;
}

/// Every legal option list of a transport.
std::vector<Words> option_lists(const std::string& transport) {
  if (transport == "rma-fence") return product({{"put", "get"}, {"single", "per-message", "split"}, {"", "plain"}});
  if (transport == "rma-pscw") return product({{"put", "get"}, {"single", "per-message"}, {"", "plain"}});
  const Words ways = transport == "rma-lock" ? Words{"put", "get"} : Words{"put", "get", "rget"};
  auto lists = product({ways, {"single", "per-message"}, {"message", "flag"}, {"", "separate"}});
  for (const Words& words : product({ways, {"message", "flag"}, {"plain"}})) lists.push_back(words);
  return lists;
}

/// One list in `stride`, others at each rank count: ranks that share cores are slow. All in the long tests.
std::vector<Words> sampled_lists(const std::string& transport) {
  const int stride = world_size() <= 2 || std::getenv("HALOSCOPE_LONG") ? 1 : world_size() <= 4 ? 3 : 7;
  std::vector<Words> some;
  int number = world_size();
  for (const Words& options : option_lists(transport))
    if (number++ % stride == 0) some.push_back(options);
  return some;
}

Case rma_case(const std::string& transport, const Words& options) {
  Case c;
  c.transport = transport;
  c.options = options;
  c.yield = true;  // whatever else the machine does, no rank keeps another from its core
  return c;
}

/// Ranks in two dimensions, as near to a square as they go.
ProcessGrid square() {
  int height = 1;
  for (int h = 1; h * h <= world_size(); ++h)
    if (world_size() % h == 0) height = h;
  return {world_size() / height, height, 1};
}

/// Sizes that do not divide, halos wider on one side, one periodic dimension of three, two fields.
Case uneven(Case c) {
  c.ranks = square();
  c.grid.cells = {3 * c.ranks[0] + 1, 2 * c.ranks[1] + 1, 5};
  c.grid.periodic = {false, true, false};
  c.spec.low = {2, 1, 1};
  c.spec.high = {1, 2, 0};
  c.spec.quantities = {{"u", 8, ScalarType::real, Centring::cell}, {"v", 4, ScalarType::real, Centring::node}};
  return c;
}

/// Ranks in a row, split along y, so that halos in y are contiguous.
Case row(Case c, bool periodic) {
  c.grid.dims = 2;
  c.ranks = {1, world_size(), 1};
  c.grid.cells = {6, 2 * world_size() + 1, 1};
  c.grid.periodic = {false, periodic, false};
  c.spec.low = c.spec.high = {0, 1, 0};
  return c;
}

/// Sleeps at random, each rank for itself; seldom long enough for its neighbours to be a whole exchange ahead.
class Delays {
 public:
  explicit Delays(unsigned seed) : random_(seed * 64 + static_cast<unsigned>(world_rank())) {}
  void maybe() {
    const unsigned drawn = static_cast<unsigned>(random_() % 64);
    if (drawn < 2)
      usleep(2000);
    else if (drawn < 16)
      usleep(10 * drawn);
  }

 private:
  std::mt19937 random_;
};

void exchange_with_delays(Rig& rig, int slot, Delays& delays) {
  for (int r = 0; r < rig.plan.rounds; ++r) {
    std::vector<Copy> copies;
    for (const Copy& copy : rig.plan.copies)
      if (copy.round == r) copies.push_back(copy);
    make_copies(rig.fields.views(), slot, copies).run();
    const std::function<void()> calls[] = {
        [&] { rig.link->post(rig.in(r), slot); },      [&] { rig.link->pack(rig.out(r), slot, {}); },
        [&] { rig.link->send(rig.out(r), slot); },     [&] { rig.link->test(rig.in(r), slot); },
        [&] { rig.link->wait(rig.in(r), slot); },      [&] { rig.link->unpack(rig.in(r), slot, {}); },
        [&] { rig.link->complete(rig.out(r), slot); },
    };
    for (const auto& call : calls) {
      delays.maybe();
      call();
    }
  }
}

std::vector<Case> patterns(const Case& c) {
  std::vector<Case> all(3, c);
  all[0].spec.pattern = Pattern::ordered;
  all[1].spec.pattern = all[2].spec.pattern = Pattern::direct;
  all[2].spec.merge_peers = true;
  return all;
}

/// Every option list and pattern: each ghost point holds the id of the point it mirrors, exchange after exchange.
void check_every_variant(const std::string& transport) {
  Delays delays(17);
  for (const Words& options : sampled_lists(transport))
    for (const Case& c : patterns(uneven(rma_case(transport, options)))) {
      SCOPED_TRACE(describe(c));
      Rig rig(c);
      for (int epoch = 0; epoch < 4 && !testing::Test::HasFailure(); ++epoch) {
        rig.fill(epoch % 2, epoch);
        exchange_with_delays(rig, epoch % 2, delays);
        EXPECT_EQ(rig.wrong_points(epoch % 2, epoch), 0) << "exchange " << epoch;
        EXPECT_TRUE(rig.fields.canaries_alive());
        for (int r = 0; r < rig.plan.rounds; ++r) EXPECT_EQ(rig.link->waiting_for(rig.in(r), epoch % 2), -1);
      }
    }
}

TEST(RmaFence, SC1_SC2_SD4_SD5_SF1_EveryVariantFillsEveryHalo) { check_every_variant("rma-fence"); }
TEST(RmaPscw, SC3_SF1_EveryVariantFillsEveryHalo) { check_every_variant("rma-pscw"); }
TEST(RmaLock, SC4_SF1_SF2_EveryVariantFillsEveryHalo) { check_every_variant("rma-lock"); }
TEST(RmaLockAll, SC8_SC9_SF1_SF2_EveryVariantFillsEveryHalo) { check_every_variant("rma-lockall"); }

// ---- single messages ------------------------------------------------------------------------------------------------

/// One one-way message of a row of ranks, and the row of cells it carries or fills.
struct Line {
  int id = -1;
  std::int64_t y = 0;
  bool exists() const { return id >= 0; }
};

/// The pipelined Gauss-Seidel method's traffic: in iteration k a rank needs its predecessor's last line of iteration k and
/// its successor's first line of iteration k - 1. Lines carry the number of their iteration.
class Pipeline {
 public:
  explicit Pipeline(const Case& c) : rig_(c), delays_(5) {
    const std::int64_t n = rig_.plan.cells[1];
    for (int id = 0; id < static_cast<int>(rig_.plan.messages.size()); ++id) {
      const Message& m = rig_.plan.messages[static_cast<std::size_t>(id)];
      const bool before = m.peer < rig_.plan.rank;
      Line& line = m.out ? (before ? out_before_ : out_after_) : (before ? in_before_ : in_after_);
      line = {id, m.out ? (before ? 0 : n - 1) : (before ? -1 : n)};
    }
  }

  void run(int iterations) {
    if (in_before_.exists()) post(in_before_);
    if (in_after_.exists()) post(in_after_);
    for (int k = 1; k <= iterations; ++k) {
      receive(in_before_, k, k < iterations);
      send(out_before_, k);
      if (k > 1) receive(in_after_, k - 1, true);
      send(out_after_, k);
    }
    receive(in_after_, iterations, false);
    for (const Line& line : {out_before_, out_after_})
      if (line.exists()) rig_.link->complete({&line.id, 1}, 0);
  }

 private:
  double* cells(const Line& line) const {
    return reinterpret_cast<double*>(rig_.fields.views()[0][0].at({0, line.y, 0}));
  }
  void post(const Line& line) { rig_.link->post({&line.id, 1}, 0); }
  void send(const Line& line, int k) {
    if (!line.exists()) return;
    delays_.maybe();
    if (k > 1) rig_.link->complete({&line.id, 1}, 0);
    std::fill_n(cells(line), rig_.plan.cells[0], static_cast<double>(k));
    rig_.link->pack({&line.id, 1}, 0, {});
    rig_.link->send({&line.id, 1}, 0);
  }
  void receive(const Line& line, int k, bool more) {
    if (!line.exists()) return;
    delays_.maybe();
    rig_.link->wait({&line.id, 1}, 0);
    delays_.maybe();
    rig_.link->unpack({&line.id, 1}, 0, {});
    for (std::int64_t x = 0; x < rig_.plan.cells[0]; ++x) EXPECT_EQ(cells(line)[x], k);
    if (more) post(line);
  }

  Rig rig_;
  Delays delays_;
  Line in_before_, in_after_, out_before_, out_after_;
};

TEST(RmaPipeline, SC4_SC8_SC9_SingleMessagesCarryTheLineOfTheirIteration) {
  bool contiguous = false;
  for (const char* transport : {"rma-pscw", "rma-lock", "rma-lockall"})
    for (const Words& options : sampled_lists(transport)) {
      Strategy strategy;
      strategy.transport = transport;
      strategy.transport_options = options;
      if (!refused_single_messages(strategy).empty()) continue;
      Case c = row(rma_case(transport, options), false);
      contiguous = !contiguous;
      if (!contiguous) c.spec.quantities.push_back({"v", 4, ScalarType::real, Centring::cell});  // packed
      SCOPED_TRACE(describe(c));
      Pipeline(c).run(8);
    }
}

TEST(RmaPipeline, TransportsThatCannotMoveSingleMessagesSayWhatCan) {
  const auto refusal = [](const char* strategy) { return refused_single_messages(parse_strategy(strategy)); };
  EXPECT_NE(refusal("ordered/rma-fence").find("rma-pscw:per-message"), std::string::npos);
  EXPECT_NE(refusal("ordered/rma-pscw").find("add option 'per-message'"), std::string::npos);
  for (const char* fine : {"ordered/rma-pscw:per-message", "ordered/rma-lock", "direct/rma-lockall:rget"})
    EXPECT_EQ(refusal(fine), "") << fine;
}

// ---- the calls of each form ------------------------------------------------------------------------------------------

/// What `exchanges` exchanges of an open link call, without opening and closing it.
struct Loop {
  Calls before, after;
  std::int64_t messages = 0, bytes = 0;
  std::int64_t operator()(std::int64_t Calls::*which) const { return after.*which - before.*which; }
};

constexpr int exchanges = 6;

Loop loop_of(Rig& rig) {
  Loop loop;
  const Sent sent_before = sent();
  loop.before = calls();
  for (int i = 0; i < exchanges; ++i) rig.exchange(i % 2);
  loop.after = calls();
  loop.messages = sent().messages - sent_before.messages;
  loop.bytes = sent().bytes - sent_before.bytes;
  return loop;
}

Loop loop_of(const Case& c) {
  Rig rig(c);
  return loop_of(rig);
}

TEST(RmaPscw, SC3_NoCollectiveCallAndNoMessageInTheLoop) {
  for (const Words& options : sampled_lists("rma-pscw"))
    for (const Case& c : patterns(uneven(rma_case("rma-pscw", options)))) {
      const Loop loop = loop_of(c);
      EXPECT_EQ(loop(&Calls::collectives), 0) << describe(c);
      EXPECT_EQ(loop.messages, 0) << describe(c);
      EXPECT_EQ(loop(&Calls::puts) + loop(&Calls::gets) > 0, world_size() > 1) << describe(c);
    }
}

std::int64_t fences(const Words& options) {
  Case c = row(rma_case("rma-fence", options), true);
  c.spec.pattern = Pattern::direct;
  return loop_of(c)(&Calls::fences);
}

TEST(RmaFence, SD4_FenceCountHalvesWithOneWindowForBothLines) {
  for (const char* way : {"put", "get"}) {
    EXPECT_EQ(fences({way, "single"}), 2 * exchanges);
    EXPECT_EQ(fences({way, "per-message"}), world_size() > 1 ? 2 * fences({way, "single"}) : 0);
  }
}

TEST(RmaFence, SD5_FencesOfSplitWindowsJoinARankAndItsPeersOnly) {
  for (const char* way : {"put", "get"}) {
    calls().largest_fence_group = 0;
    Rig rig(row(rma_case("rma-fence", {way, "split"}), false));
    const Loop loop = loop_of(rig);
    EXPECT_LE(calls().largest_fence_group, 3);
    EXPECT_EQ(calls().largest_fence_group, std::min(world_size(), world_size() > 2 && rig.plan.messages_out() > 0 ? 3 : 2));
    EXPECT_EQ(loop(&Calls::fences), 2 * exchanges * (1 + rig.plan.messages_out()) * rig.plan.rounds);
  }
}

TEST(RmaLock, SC4_GetNeedsNoBarrierAndLocksEachAccess) {
  const Loop loop = loop_of(row(rma_case("rma-lock", {"get"}), true));
  const std::int64_t accesses = world_size() > 1 ? 2 * exchanges : 0;
  EXPECT_EQ(loop(&Calls::barriers), 0);
  EXPECT_EQ(loop(&Calls::collectives), 0);
  EXPECT_EQ(loop(&Calls::puts), 0);
  EXPECT_EQ(loop(&Calls::gets), accesses);
  EXPECT_EQ(loop(&Calls::locks), accesses);
  EXPECT_EQ(loop(&Calls::unlocks), accesses);
  EXPECT_EQ(loop.bytes, 0) << "messages that say 'ready' and 'read' are empty";
  EXPECT_EQ(loop.messages, 2 * accesses);
}

TEST(RmaLock, SC4_FlagsReplaceTheEmptyMessages) {
  for (const char* transport : {"rma-lock", "rma-lockall"}) {
    const Loop loop = loop_of(row(rma_case(transport, {"get", "flag"}), true));
    EXPECT_EQ(loop.messages, 0);
    EXPECT_EQ(loop(&Calls::collectives), 0);
    EXPECT_EQ(loop(&Calls::atomics), world_size() > 1 ? 4 * exchanges : 0);
  }
}

TEST(RmaLockAll, SC8_OneLockAllAndOneUnlockAllPerWindow) {
  for (const Words& options : sampled_lists("rma-lockall")) {
    const Calls before = calls();
    {
      Rig rig(row(rma_case("rma-lockall", options), true));
      const Loop loop = loop_of(rig);
      for (auto which : {&Calls::lock_alls, &Calls::unlock_alls, &Calls::locks, &Calls::collectives})
        EXPECT_EQ(loop(which), 0);
    }
    const std::int64_t windows = calls().windows_allocated - before.windows_allocated;
    EXPECT_EQ(calls().lock_alls - before.lock_alls, windows);
    EXPECT_EQ(calls().unlock_alls - before.unlock_alls, windows);
    const bool single = std::find(options.begin(), options.end(), "single") != options.end();
    const bool flag = std::find(options.begin(), options.end(), "flag") != options.end();
    if (single) {
      EXPECT_EQ(windows, flag ? 2 : 1);
    }
  }
}

TEST(RmaLockAll, SC9_RequestBasedGetsRunUnderLockAllAndNeverBetweenFences) {
  const Loop loop = loop_of(row(rma_case("rma-lockall", {"rget"}), true));
  EXPECT_EQ(loop(&Calls::request_gets), world_size() > 1 ? 2 * exchanges : 0);
  EXPECT_EQ(loop(&Calls::gets) + loop(&Calls::puts) + loop(&Calls::fences), 0);
  try {
    parse_strategy("ordered/rma-fence:rget");
    FAIL() << "accepted";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("rma-lockall:rget"), std::string::npos) << error.what();
  }
}

// ---- hints, memory model, memory --------------------------------------------------------------------------------------

TEST(Rma, SF1_PlainGivesNeitherHintsNorAssertions) {
  for (const char* transport : {"rma-fence", "rma-pscw", "rma-lock", "rma-lockall"})
    for (bool plain : {false, true}) {
      const Calls before = calls();
      const Words flags = std::string(transport).starts_with("rma-lock") ? Words{"flag"} : Words{};
      Words options = flags;
      if (plain) options.push_back("plain");
      loop_of(row(rma_case(transport, options), true));
      const std::int64_t made = calls().windows_allocated - before.windows_allocated;
      EXPECT_EQ(calls().hinted_windows - before.hinted_windows, plain ? 0 : made) << transport;
      EXPECT_EQ(calls().asserted - before.asserted > 0, !plain && (world_size() > 1 || calls().fences > before.fences ||
                                                                   calls().lock_alls > before.lock_alls))
          << transport;
    }
}

TEST(Rma, SF2_TheMemoryModelThatMpiNamesIsReported) {
  void* data = nullptr;
  MPI_Win window;
  MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&data), &window);
  int* model = nullptr;
  int known = 0;
  MPI_Win_get_attr(window, MPI_WIN_MODEL, static_cast<void*>(&model), &known);
  ASSERT_TRUE(known);
  const std::string name = *model == MPI_WIN_UNIFIED ? "unified" : "separate";
  MPI_Win_free(&window);
  for (const char* transport : {"rma-fence", "rma-pscw", "rma-lock", "rma-lockall"})
    EXPECT_NE(Rig(row(rma_case(transport, {}), true)).link->report().find("memory model " + name), std::string::npos);
}

TEST(Rma, SF3_AllWindowsHaveMemoryFromMpi) {
  for (const char* transport : {"rma-fence", "rma-pscw", "rma-lock", "rma-lockall"})
    for (const Words& options : sampled_lists(transport)) {
      const Calls before = calls();
      const Case c = row(rma_case(transport, options), true);
      Rig rig(c);
      EXPECT_EQ(calls().windows_created, before.windows_created);
      if (!rig.plan.messages.empty()) {
        EXPECT_GT(calls().windows_allocated, before.windows_allocated);
      }
    }
}

// ---- the rest of the link's contract ------------------------------------------------------------------------------------

std::vector<Case> row_cases(const std::string& transport) {
  std::vector<Case> cases;
  for (const Words& options : sampled_lists(transport)) cases.push_back(row(rma_case(transport, options), true));
  return cases;
}

TEST(Rma, PostAndTestDoNotBlockAndWaitingForNamesAPeer) {
  for (const char* transport : {"rma-fence", "rma-pscw", "rma-lock", "rma-lockall"})
    for (Case c : row_cases(transport)) {
      SCOPED_TRACE(describe(c));
      c.spec.pattern = Pattern::direct;
      Rig rig(c);
      rig.fill(0, 1);
      const bool passive = std::string(transport).starts_with("rma-lock");
      // Rank 0 is far ahead: the others send only when it has looked many times.
      if (world_rank() == 0) {
        rig.link->post(rig.in(0), 0);
        rig.link->pack(rig.out(0), 0, {});
        if (passive) rig.link->send(rig.out(0), 0);
        EXPECT_EQ(rig.link->waiting_for(rig.in(0), 0), world_size() > 1 ? rig.plan.messages.front().peer : -1);
        for (int i = 0; i < 50 && passive && world_size() > 1; ++i) EXPECT_FALSE(rig.link->test(rig.in(0), 0));
        for (int r = 1; r < world_size(); ++r) MPI_Send(nullptr, 0, MPI_BYTE, r, 99, MPI_COMM_WORLD);
        if (!passive) rig.link->send(rig.out(0), 0);
      } else {
        MPI_Recv(nullptr, 0, MPI_BYTE, 0, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        rig.start(0, 0);
      }
      make_copies(rig.fields.views(), 0, rig.plan.copies).run();
      rig.link->wait(rig.in(0), 0);
      rig.link->unpack(rig.in(0), 0, {});
      rig.link->complete(rig.out(0), 0);
      EXPECT_EQ(rig.wrong_points(0, 1), 0);
      EXPECT_EQ(rig.link->waiting_for(rig.in(0), 0), -1);
    }
}

TEST(Rma, TestAloneBringsMessagesInUnlessASynchronisationBlocks) {
  for (const char* transport : {"rma-pscw", "rma-lock", "rma-lockall"})
    for (Case c : row_cases(transport)) {
      const bool pulls = std::find(c.options.begin(), c.options.end(), "get") != c.options.end();
      if (pulls && c.transport == "rma-pscw") continue;  // beginning an access blocks: only wait() does it
      SCOPED_TRACE(describe(c));
      c.poll = true;
      Rig rig(c);
      for (int epoch : {0, 1, 2}) {
        rig.fill(epoch % 2, epoch);
        rig.exchange(epoch % 2);
        EXPECT_EQ(rig.wrong_points(epoch % 2, epoch), 0);
      }
    }
}

TEST(Rma, LinkDestroyedInFlightEnds) {
  for (const char* transport : {"rma-fence", "rma-pscw", "rma-lock", "rma-lockall"})
    for (Case c : row_cases(transport)) {
      SCOPED_TRACE(describe(c));
      c.spec.pattern = Pattern::direct;
      Rig rig(c);
      rig.start(0, 0);
      rig.link.reset();
    }
}

TEST(Rma, SteadyStateAllocatesNothingOutsideMpi) {
  for (const char* transport : {"rma-fence", "rma-pscw", "rma-lock", "rma-lockall"})
    for (const Case& c : row_cases(transport)) {
      Rig rig(c);
      for (int slot : {0, 1}) rig.exchange(slot);
      const std::int64_t before = allocations();
      for (int i = 0; i < 4; ++i) rig.exchange(i % 2);
      EXPECT_EQ(allocations() - before, 0) << describe(c);
    }
}

/// Bytes of all owned and ghost points after one exchange of halos on the low sides only.
std::vector<std::byte> bytes_after(const std::string& strategy) {
  Case c = uneven({});
  c.spec.high = {0, 0, 0};
  const Layout layout(c.grid, c.ranks);
  Rig rig([&] {
    Case plain = c;
    plain.transport = "p2p";
    return plain;
  }());
  rig.fill(0, 2);
  Exchange(MPI_COMM_WORLD, layout, c.spec, strategy, rig.fields.views()).exchange(0);
  std::vector<std::byte> all;
  for (int q : {0, 1}) {
    const auto part = rig.fields.bytes(q, 0);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

TEST(RmaFence, SC1_SC2_RanksThatOnlySendOrOnlyReceiveInARoundTakePart) {
  const auto expected = bytes_after("reference");
  for (const char* pattern : {"ordered", "direct", "direct:merged"})
    for (const Words& options : sampled_lists("rma-fence"))
      EXPECT_EQ(bytes_after(std::string(pattern) + "/rma-fence:" + join(options, ",")), expected)
          << pattern << " " << join(options, ",");
}

std::string refusal(const std::string& strategy) {
  try {
    parse_strategy(strategy);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Rma, ContradictingOptionsAreRefusedWithWhatToDoInstead) {
  for (const char* transport : {"rma-fence", "rma-pscw", "rma-lock", "rma-lockall"}) {
    EXPECT_NE(refusal(std::string("ordered/") + transport + ":get,put").find("drop one"), std::string::npos);
    EXPECT_NE(refusal(std::string("ordered/") + transport + ":single,per-message").find("one"), std::string::npos);
    for (const Words& options : option_lists(transport))
      EXPECT_EQ(refusal(std::string("direct/") + transport + ":" + join(options, ",")), "accepted");
  }
  EXPECT_NE(refusal("direct/rma-fence:split,per-message").find("exclude each other"), std::string::npos);
  EXPECT_NE(refusal("direct/rma-lock:flag,message").find("drop one"), std::string::npos);
  EXPECT_NE(refusal("direct/rma-lockall:rget,put").find("receiver"), std::string::npos);
  EXPECT_NE(refusal("direct/rma-pscw:rget").find("rma-lockall:rget"), std::string::npos);
  EXPECT_NE(refusal("direct/rma-pscw:flag").find("unknown option"), std::string::npos);
  EXPECT_THROW(Rig(row(rma_case("rma-lock", {"get", "put"}), true)), UsageError);
  EXPECT_THROW(Rig(row(rma_case("rma-lock", {"split"}), true)), UsageError);
}

}  // namespace
}  // namespace haloscope::test
