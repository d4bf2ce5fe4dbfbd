// Choosing a transport at run time: right halos before, during and after the decision, which is the same everywhere.
#include "allocation_counter.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/candidate.hpp"
#include "haloscope/haloscope.hpp"
#include "haloscope/transport/automatic.hpp"
#include "random_case.hpp"

namespace haloscope::test {
namespace {

/// On one node, on the real ones and on two emulated ones; fields of the rank's own and in shared memory.
std::vector<Case> forms() {
  std::vector<Case> list;
  for (bool emulated : {false, true})
    for (bool shared_fields : {false, true}) {
      if (emulated && world_size() < 2) continue;
      Case c{.transport = "auto", .options = {"quick"}, .shared_fields = shared_fields};
      if (emulated) c.nodes = emulated_nodes(world_size(), 2, Placement::block);
      list.push_back(c);
    }
  return list;
}

AutoLink& automatic(Rig& rig) { return dynamic_cast<AutoLink&>(*rig.link); }
bool has_messages(const Rig& rig) { return !rig.plan.messages.empty(); }

/// Exchanges that are more than enough for the decision to be in use.
std::int64_t enough(Rig& rig, const Case& c) { return automatic(rig).deadline() + 3 * c.slots; }

void check_auto(const Case& c) {
  SCOPED_TRACE(describe(c));
  Rig rig(c);
  const std::int64_t end = enough(rig, c);
  for (int epoch = 0; epoch < end && !testing::Test::HasFailure(); ++epoch) {
    const int slot = epoch % c.slots;
    rig.fill(slot, epoch);
    rig.exchange(slot);
    expect_right(rig, slot, epoch);
    EXPECT_EQ(rig.link->waiting_for(rig.in(0), slot), -1);
  }
  EXPECT_EQ(automatic(rig).chosen() >= 0, has_messages(rig)) << automatic(rig).report();
}

TEST(Auto, EveryGhostPointHoldsTheIdOfThePointItMirrorsWhateverHasBeenDecided) {
  std::mt19937 random(100 + world_size());
  const int rounds = world_size() <= 2 ? 8 : world_size() <= 4 ? 3 : 1;
  for (int i = 0; i < rounds; ++i)
    for (const Case& form : forms()) {
      Case c = random_case(random, form);
      c.threads = i == 0 && form.shared_fields ? 2 : 1;
      c.yield = true;  // a hundred exchanges each, whatever the load of the machine
      check_auto(c);
    }
}

TEST(Auto, DelaysOfAnyRankAnywhereDoNotChangeTheHalos) {
  std::mt19937 random(110 + world_size());
  for (const Case& form : forms()) {
    Case c = random_case(random, form);
    c.delay_us = 100;
    check_auto(c);
  }
}

TEST(Auto, WorksBetweenNodesWithSharedMemoryInsideThem) {
  std::mt19937 random(120 + world_size());
  for (const Case& form : forms()) {
    if (!form.shared_fields) continue;
    Case c = random_case(random, form);
    c.transport = "shared";
    c.options.clear();
    c.between = "auto";
    c.between_options = {"quick"};
    SCOPED_TRACE(describe(c));
    Rig rig(c);
    for (int epoch = 0; epoch < 100; ++epoch) {
      rig.fill(epoch % c.slots, epoch);
      rig.exchange(epoch % c.slots);
      expect_right(rig, epoch % c.slots, epoch);
    }
  }
}

/// Trials by the form, and their ends: losers are closed unless that is a collective call.
TEST(Auto, TriesWhatIsPossibleKeepsOneOnAllRanksAndClosesTheOthers) {
  if (world_size() < 2) GTEST_SKIP() << "a lone rank has no message";
  for (const Case& form : forms())
    for (Pattern pattern : {Pattern::ordered, Pattern::direct}) {
      Case c = periodic_cube(2, form);
      c.spec.pattern = pattern;
      SCOPED_TRACE(describe(c));
      Rig rig(c);
      AutoLink& link = automatic(rig);
      const bool across = !c.nodes.empty(), inside = !across || world_size() > 2;
      const int shared = inside ? 1 + c.shared_fields : 0;
      EXPECT_EQ(link.open(), 3 + shared) << link.report();
      EXPECT_EQ(has_part(link.report(), "shared:packed+p2p"), across && inside) << link.report();
      EXPECT_EQ(has_part(link.report(), "without shared"), inside && !c.shared_fields);
      EXPECT_PART(link.report(), "until it has decided");
      for (std::int64_t e = 0; e < link.deadline() + c.slots; ++e) rig.exchange(static_cast<int>(e % c.slots));
      EXPECT_EQ(link.chosen(), -1);  // the deadline's slot has not been used since
      for (int slot = 0; slot < 2 * c.slots; ++slot) rig.exchange((link.deadline() + slot) % c.slots);
      int mine[2] = {link.chosen(), -link.chosen()}, most[2];
      MPI_Allreduce(mine, most, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
      EXPECT_EQ(most[0], -most[1]);
      EXPECT_GE(link.chosen(), 0);
      EXPECT_EQ(link.open(), shared + (link.chosen() < 3 ? 1 : 0)) << link.report();
      EXPECT_PART(link.report(), "chose " + (link.chosen() == 0 ? std::string("p2p,") : ""));
    }
}

TEST(Auto, ExchangesAllocateNothingOutsideMpiBeforeAndAfterTheDecision) {
  for (const Case& form : forms()) {
    const Case c = periodic_cube(2, form);
    Rig rig(c);
    const std::int64_t end = enough(rig, c), before = allocations();
    for (std::int64_t e = 0; e < end + 4; ++e) rig.exchange(static_cast<int>(e % c.slots));
    EXPECT_EQ(allocations() - before, 0) << describe(c);
  }
}

/// All rounds of two exchanges interleaved; the order in which slots are finished differs between ranks.
TEST(Auto, BothSlotsCanBeInFlightAtOnceAllTheTime) {
  for (const Case& form : forms())
    for (Pattern pattern : {Pattern::ordered, Pattern::direct}) {
      Case c = form;
      c.ranks = random_case(*std::make_unique<std::mt19937>(7), form).ranks;
      c.grid.cells = {3 * c.ranks[0], 3 * c.ranks[1], 3 * c.ranks[2]};
      c.grid.periodic = {true, true, true};
      c.spec.pattern = pattern;
      c.yield = world_size() > 2;
      SCOPED_TRACE(describe(c));
      Rig rig(c);
      const int first = world_rank() % 2;
      for (int epoch = 0; epoch < enough(rig, c); epoch += 2) {
        for (int slot : {0, 1}) rig.fill(slot, epoch + slot);
        for (int r = 0; r < rig.plan.rounds; ++r) {
          for (int slot : {0, 1}) rig.copy(r, slot);
          for (int slot : {0, 1}) rig.start(r, slot);
          for (int slot : {first, 1 - first}) rig.finish(r, slot);
        }
        for (int slot : {0, 1}) expect_right(rig, slot, epoch + slot);
      }
      EXPECT_EQ(automatic(rig).chosen() >= 0, has_messages(rig));
    }
}

TEST(Auto, LinkDestroyedInFlightCompletesItsMessagesAtAnyTime) {
  for (const Case& form : forms()) {
    if (world_size() > 2 && !form.shared_fields) continue;  // crowded: keep it short
    Case c = periodic_cube(0, form);
    c.spec.pattern = Pattern::direct;
    SCOPED_TRACE(describe(c));
    std::vector<std::int64_t> numbers{0, 22};
    {
      Rig probe(c);
      const std::int64_t trials = automatic(probe).trials(), deadline = automatic(probe).deadline();
      numbers.insert(numbers.end(), {trials - 1, trials, deadline, deadline + 1, deadline + 2});
    }
    for (const std::int64_t before : numbers) {
      Rig rig(c);
      for (std::int64_t e = 0; e < before; ++e) rig.exchange(static_cast<int>(e % c.slots));
      rig.start(0, static_cast<int>(before % c.slots));
      rig.link.reset();
      MPI_Barrier(MPI_COMM_WORLD);
    }
    check_auto(c);  // no message is left over that could be mistaken for a later one
  }
}

/// A clock that only a slow link moves: load on the machine does not show.
double slow_seconds = 0;
double slow_clock() { return slow_seconds; }

/// Moves messages as another link does, but late on one rank, by slow_clock(): by these microseconds in turn.
class SlowLink final : public Link {
 public:
  SlowLink(std::unique_ptr<Link> link, int slow_rank, std::vector<int> us, int& exchanges)
      : link_(std::move(link)), slow_(world_rank() == slow_rank), us_(std::move(us)), exchanges_(exchanges) {}
  void post(Ids in, int slot) override {
    link_->post(in, slot);
    ++exchanges_;
  }
  void pack(Ids out, int slot, Share share) override { link_->pack(out, slot, share); }
  void send(Ids out, int slot) override { link_->send(out, slot); }
  bool test(Ids in, int slot) override { return link_->test(in, slot); }
  void wait(Ids in, int slot) override {
    link_->wait(in, slot);
    if (slow_) slow_seconds += 1e-6 * us_[static_cast<std::size_t>(exchanges_) % us_.size()];
  }
  void unpack(Ids in, int slot, Share share) override { link_->unpack(in, slot, share); }
  bool test_complete(Ids out, int slot) override { return link_->test_complete(out, slot); }
  void complete(Ids out, int slot) override { link_->complete(out, slot); }
  int waiting_for(Ids in, int slot) const override { return link_->waiting_for(in, slot); }

 private:
  std::unique_ptr<Link> link_;
  bool slow_;
  std::vector<int> us_;
  int& exchanges_;
};

/// A rig whose candidates are all p2p, each late by the specified microseconds in turn on one rank.
struct Runners {
  std::vector<int> exchanges;  ///< by candidate
  std::unique_ptr<Rig> rig;

  Runners(const Case& c, const std::vector<std::vector<int>>& delays, int slow_rank, TrialLimits limits)
      : exchanges(delays.size()), rig(std::make_unique<Rig>(c)) {
    const LinkContext context = rig->context();
    std::vector<Trial> candidates;
    for (std::size_t i = 0; i < delays.size(); ++i)
      candidates.push_back(
          {"late by " + std::to_string(delays[i].front()) + " us",
           std::make_unique<SlowLink>(open_transport("p2p", context, {}), slow_rank, delays[i], exchanges[i]), true});
    slow_seconds = 0;
    rig->link =
        std::make_unique<AutoLink>(context, std::move(candidates), AutoOptions{.limits = limits, .clock = slow_clock});
  }
};

constexpr TrialLimits one_heat{2, 1};

Case ring() {
  Case c{.transport = "p2p"};
  c = periodic_cube(0, c);
  c.spec.pattern = Pattern::direct;
  c.yield = world_size() > 2;
  return c;
}

/// One slow rank is enough to lose, and it need not be the first rank to notice.
TEST(Auto, KeepsTheTrialWhoseSlowestRankIsFastest) {
  if (world_size() < 2) GTEST_SKIP() << "a lone rank has no message";
  const Case c = ring();
  for (int slow_rank : {0, world_size() - 1})
    for (const auto& [delays, winner] :
         {std::pair{std::vector<std::vector<int>>{{9}, {1}, {9}}, 1}, {{{9}, {4}, {1}}, 2}, {{{1}, {9}}, 0}}) {
      const Runners runners(c, delays, slow_rank, one_heat);
      Rig* const rig = runners.rig.get();
      AutoLink& link = automatic(*rig);
      for (std::int64_t e = 0; e < enough(*rig, c); ++e) rig->exchange(static_cast<int>(e % c.slots));
      EXPECT_EQ(link.chosen(), winner) << link.report();
      EXPECT_EQ(link.open(), 1);
      EXPECT_PART(link.report(), "chose late by 1 us");
    }
}

/// The third is out after one round; the first two are indistinguishable, and race until the rounds are used up.
TEST(Auto, TriesThoseThatCannotBeToldApartOnAndOnAndNoOthers) {
  if (world_size() < 2) GTEST_SKIP() << "a lone rank has no message";
  const Case c = ring();
  const TrialLimits limits{4, 3};
  const Runners runners(c, {{10, 14}, {9, 13}, {50}}, world_size() - 1, limits);
  AutoLink& link = automatic(*runners.rig);
  const std::int64_t most = limits.rounds * (link.deadline() + 2 * c.slots);
  std::int64_t e = 0;
  for (; link.chosen() < 0 && e < most; ++e) runners.rig->exchange(static_cast<int>(e % c.slots));
  EXPECT_EQ(link.chosen(), 1) << link.report();
  const int round = limits.turns * (c.slots + timed_exchanges);
  EXPECT_EQ(runners.exchanges[2], round);
  EXPECT_GE(runners.exchanges[0] + runners.exchanges[1], 6 * round);
  EXPECT_PART(link.report(), std::to_string(7 * round) + " trials");
}

/// Whatever is decided, and after any number of rounds, it is the same on all ranks, and the halos are right.
TEST(Auto, ManyHeatsEndAlikeOnAllRanksWithRightHalos) {
  std::mt19937 random(130 + world_size());
  for (int i = 0; i < (world_size() > 2 ? 1 : 3); ++i)  // crowded: keep it short
    for (const Case& form : forms()) {
      if (world_size() > 2 && !form.shared_fields) continue;
      Case c = random_case(random, form);
      c.options.clear();
      c.yield = true;
      SCOPED_TRACE(describe(c));
      Rig rig(c);
      AutoLink& link = automatic(rig);
      const std::int64_t most = TrialLimits{}.rounds * (link.deadline() + 2 * c.slots);
      for (std::int64_t e = 0; e < most && !testing::Test::HasFailure(); ++e) {
        const int slot = static_cast<int>(e % c.slots), epoch = static_cast<int>(e);
        rig.fill(slot, epoch);
        rig.exchange(slot);
        if (e % 16 == 0) expect_right(rig, slot, epoch);
      }
      EXPECT_EQ(link.chosen() >= 0, has_messages(rig)) << link.report();
    }
}

TEST(Auto, KeepsTheFirstWhereTheDeadlinesSlotIsNotUsedAgainAndSwitchesWhenItIs) {
  if (world_size() < 2) GTEST_SKIP() << "a lone rank has no message";
  const Case c = ring();
  const Runners runners(c, {{9}, {1}}, 0, one_heat);
  Rig* const rig = runners.rig.get();
  AutoLink& link = automatic(*rig);
  std::int64_t e = 0;
  for (; e < link.deadline(); ++e) rig->exchange(0);
  rig->exchange(1);
  for (int i = 0; i < 5; ++i) rig->exchange(0);
  EXPECT_EQ(link.chosen(), -1);
  EXPECT_EQ(link.open(), 2);
  rig->exchange(1);
  EXPECT_EQ(link.chosen(), 1);
  EXPECT_EQ(link.open(), 2);  // slot 0 has not been used since
  rig->exchange(0);
  EXPECT_EQ(link.open(), 1);
}

/// Rows of a grid that exchange nothing with each other: the second row begins when the first has finished.
TEST(Auto, RanksThatNoMessageJoinsDoNotWaitForEachOther) {
  if (world_size() != 4) GTEST_SKIP() << "needs two rows of two ranks";
  for (Case c : forms()) {
    c.grid = {2, {8, 8, 1}, {true, true, false}};
    c.ranks = {2, 2, 1};
    c.spec.low = {1, 0, 0};
    c.spec.high = {1, 0, 0};
    c.yield = true;
    Rig rig(c);
    const int row = world_rank() / 2, other = (world_rank() + 2) % 4;
    if (row == 1) MPI_Recv(nullptr, 0, MPI_BYTE, other, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int epoch = 0; epoch < enough(rig, c); ++epoch) {
      rig.fill(epoch % 2, epoch);
      rig.exchange(epoch % 2);
      expect_right(rig, epoch % 2, epoch);
    }
    EXPECT_GE(automatic(rig).chosen(), 0);
    if (row == 0) MPI_Send(nullptr, 0, MPI_BYTE, other, 99, MPI_COMM_WORLD);
  }
}

/// Legal because start() never waits: ranks start and finish two exchanges in different orders.
TEST(Auto, StartWaitsForNobodyWhoIsInAnotherExchange) {
  const Grid<2> grid(MPI_COMM_WORLD, {.cells = {16, 17}, .periodic = {true, true}});
  Field<double, 2> u(grid, {.halo = 1, .slots = 2}), v(grid, {.halo = 1});
  Exchange a = make_exchange(grid, {u}, "ordered/auto:quick"), b = make_exchange(grid, {v}, "direct/shared:packed");
  for (int e = 0; e < 120; ++e) {
    if (world_rank() % 2 == 0) a.start(e % 2);
    b.start();
    if (world_rank() % 2 == 0) {
      while (!a.progress()) {
      }
      b.finish();
    } else {
      b.finish();
      a.exchange(e % 2);
    }
  }
}

/// The choice of a link, equal on all ranks that have messages; -1: none in use.
int common_choice(Rig& rig) {
  const int chosen = automatic(rig).chosen();
  int mine[2] = {chosen, -chosen}, most[2];
  MPI_Allreduce(mine, most, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  EXPECT_EQ(most[0], -most[1]);
  return chosen;
}

/// Ranks start them in different orders.
TEST(Auto, ExchangesOfSimilarSizeTakeOverTheChoiceOfTheOneThatMakesTrials) {
  if (world_size() < 2) GTEST_SKIP() << "a lone rank has no message";
  for (const Case& form : forms()) {
    Case c = periodic_cube(2, form);
    c.spec.pattern = Pattern::direct;
    SCOPED_TRACE(describe(c));
    Rig leader(c), second(c), third(c);
    std::vector<Rig*> rigs{&leader, &second, &third};
    if (world_rank() % 2) std::swap(rigs[0], rigs[2]);
    const std::int64_t end = automatic(leader).deadline() + 2 * automatic(second).deadline() + 4 * c.slots;
    for (int epoch = 0; epoch < end && !testing::Test::HasFailure(); ++epoch) {
      const int slot = epoch % c.slots;
      for (Rig* rig : rigs) {
        rig->fill(slot, epoch);
        rig->copy(0, slot);
      }
      for (Rig* rig : rigs) rig->start(0, slot);
      for (Rig* rig : {&leader, &second, &third}) rig->finish(0, slot);
      for (Rig* rig : rigs) expect_right(*rig, slot, epoch);
    }
    const int chosen = common_choice(leader);
    EXPECT_GE(chosen, 0);
    for (Rig* rig : {&second, &third}) {
      EXPECT_EQ(common_choice(*rig), chosen) << automatic(*rig).report();
      EXPECT_PART(automatic(*rig).report(), "by trials of an exchange of similar size");
    }
    EXPECT_PART(automatic(leader).report(), "in use since exchange");
  }
}

TEST(Auto, AnExchangeMakesTrialsItselfWhereTheOneThatItFollowsIsNotUsed) {
  if (world_size() < 2) GTEST_SKIP() << "a lone rank has no message";
  for (const bool ends : {false, true})
    for (const Case& form : forms()) {
      const Case c = periodic_cube(2, form);
      SCOPED_TRACE(describe(c));
      auto leader = std::make_unique<Rig>(c);
      const std::int64_t end = 2 * automatic(*leader).deadline() + 8 * c.slots;
      Rig rig(c);
      if (ends) leader.reset();
      for (int epoch = 0; epoch < end; ++epoch) rig.exchange(epoch % c.slots);
      EXPECT_GE(common_choice(rig), 0) << automatic(rig).report();
      EXPECT_PART(automatic(rig).report(), "trials of (exchange and step)");
    }
}

TEST(Auto, BadRequestsAreRefusedWithTheReason) {
  EXPECT_THROW(Strategy("ordered/auto:quik"), UsageError);
  EXPECT_THROW(Strategy("ordered/auto+p2p"), UsageError);
  EXPECT_EQ(to_string(Strategy("direct:merged/auto:quick")), "direct:merged/auto:quick");
  EXPECT_PART(refused_single_messages(Strategy("ordered/auto")), "timed as a whole");
  EXPECT_TRUE(has(strategy_names(), "ordered/auto"));
}

}  // namespace
}  // namespace haloscope::test
