// One-sided transports: every option list fills every halo under random delays, single messages move in any order, and
// the contract of links holds.
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <random>

#include "haloscope/error.hpp"
#include "haloscope/exchange.hpp"
#include "haloscope/extend/candidate.hpp"
#include "rma_cases.hpp"

namespace haloscope::test {
namespace {

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
    rig.copy(r, slot);
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

/// Every option list and pattern: each ghost point holds the id of the point it mirrors, exchange after exchange.
void check_every_variant(const std::string& transport) {
  Delays delays(17);
  for (const WordList& options : sampled_lists(transport))
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

/// The pipelined Gauss-Seidel method's traffic: in iteration k a rank needs its predecessor's last line of iteration k
/// and its successor's first line of iteration k - 1. Lines carry the number of their iteration.
class LinePipeline {
 public:
  explicit LinePipeline(const Case& c) : rig_(c), delays_(5) {
    const std::int64_t n = rig_.plan.cells[1];
    for (int id = 0; id < static_cast<int>(rig_.plan.messages.size()); ++id) {
      const Message& m = rig_.plan.messages[id];
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
    for (const WordList& options : sampled_lists(transport)) {
      Strategy strategy;
      strategy.transport = transport;
      strategy.transport_options = options;
      if (!refused_single_messages(strategy).empty()) continue;
      Case c = row(rma_case(transport, options), false);
      contiguous = !contiguous;
      if (!contiguous) c.spec.quantities.push_back({"v", 4, ScalarType::real, Centring::cell});  // packed
      SCOPED_TRACE(describe(c));
      LinePipeline(c).run(8);
    }
}

TEST(RmaPipeline, TransportsThatCannotMoveSingleMessagesSayWhatCan) {
  const auto refusal = [](const char* strategy) { return refused_single_messages(Strategy(strategy)); };
  EXPECT_PART(refusal("ordered/rma-fence"), "rma-pscw:per-message");
  EXPECT_PART(refusal("ordered/rma-pscw"), "add option 'per-message'");
  for (const char* fine : {"ordered/rma-pscw:per-message", "ordered/rma-lock", "direct/rma-lockall:rget"})
    EXPECT_EQ(refusal(fine), "") << fine;
}

// ---- the rest of the link's contract --------------------------------------------------------------------------------

std::vector<Case> row_cases(const std::string& transport) {
  std::vector<Case> cases;
  for (const WordList& options : sampled_lists(transport)) cases.push_back(row(rma_case(transport, options), true));
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
      // Rank 0 is far ahead: the others send only when it has polled many times.
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
      SCOPED_TRACE(describe(c));
      c.poll = true;
      Rig rig(c);
      if (rig.link->arrives_in_wait()) continue;
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
      c.spec.pattern = Pattern::direct;
      end_in_flight(c);
    }
}

TEST(Rma, SteadyStateAllocatesNothingOutsideMpi) {
  for (const char* transport : {"rma-fence", "rma-pscw", "rma-lock", "rma-lockall"})
    for (const Case& c : row_cases(transport)) expect_no_allocations(c);
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
    for (const WordList& options : sampled_lists("rma-fence"))
      EXPECT_EQ(bytes_after(std::string(pattern) + "/rma-fence:" + join(options, ",")), expected)
          << pattern << " " << join(options, ",");
}

std::string refusal(const std::string& strategy) {
  return error_of([&] { Strategy{strategy}; });
}

TEST(Rma, ContradictingOptionsAreRefusedWithWhatToDoInstead) {
  for (const char* transport : {"rma-fence", "rma-pscw", "rma-lock", "rma-lockall"}) {
    EXPECT_PART(refusal(std::string("ordered/") + transport + ":get,put"), "drop one");
    EXPECT_PART(refusal(std::string("ordered/") + transport + ":single,per-message"), "one");
    for (const WordList& options : option_lists(transport))
      EXPECT_EQ(refusal(std::string("direct/") + transport + ":" + join(options, ",")), "no error");
  }
  EXPECT_PART(refusal("direct/rma-fence:split,per-message"), "exclude each other");
  EXPECT_PART(refusal("direct/rma-lock:flag,message"), "drop one");
  EXPECT_PART(refusal("direct/rma-lockall:rget,put"), "receiver");
  EXPECT_PART(refusal("direct/rma-pscw:rget"), "rma-lockall:rget");
  EXPECT_PART(refusal("direct/rma-pscw:flag"), "unknown option");
  EXPECT_THROW(Rig(row(rma_case("rma-lock", {"get", "put"}), true)), UsageError);
  EXPECT_THROW(Rig(row(rma_case("rma-lock", {"split"}), true)), UsageError);
}

}  // namespace
}  // namespace haloscope::test
