// The simulator against times computed by hand, and rules that hold for every run: nothing is lost, seeds determine
// runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "haloscope/error.hpp"
#include "haloscope/extend/schedule.hpp"
#include "haloscope/simulate/event_queue.hpp"
#include "haloscope/simulate/simulator.hpp"
#include "texts.hpp"

namespace haloscope::simulate {
namespace {

constexpr double L = 4, G = 0.5;  // latency and seconds per byte in these tests

Network network(double shared = 0, double duplex = 1) {
  Network result;
  for (NetworkClass& c : result.classes) {
    c.segments[0].latency_s = L;
    c.segments[0].per_byte_s = G;
    c.shared = shared;
    c.duplex = duplex;
  }
  return result;
}

TEST(EventQueue, GivesTheEarliestAndOfEquallyEarlyOnesTheLowestActor) {
  std::uint32_t random = 1;
  const auto next = [&](std::uint32_t below) { return (random = random * 1664525u + 1013904223u) / 65536 % below; };
  for (const std::uint32_t times : {3u, 1000u}) {  // many ties and few
    EventQueue queue;
    std::vector<std::pair<double, std::int32_t>> waiting;
    for (int turn = 0; turn < 3000; ++turn) {
      const bool more = waiting.empty() || next(turn < 2000 ? 3 : 8) > 1;
      if (more && turn < 2500) {
        const Event event{0.25 * next(times), static_cast<std::int32_t>(next(50)), 0};
        queue.push(event);
        waiting.emplace_back(event.time, event.actor);
      } else if (!waiting.empty()) {
        const auto least = std::min_element(waiting.begin(), waiting.end());
        EXPECT_EQ(std::pair(queue.next().time, queue.next().actor), *least);
        const Event event = queue.pop();
        EXPECT_EQ(std::pair(event.time, event.actor), *least);
        waiting.erase(least);
      }
      EXPECT_EQ(queue.empty(), waiting.empty());
    }
  }
}

/// Plans, programs and costs of all ranks of a layout, each rank a separate class.
struct Case {
  Layout layout;
  std::vector<Plan> plans = {};
  std::vector<Program> programs = {};
  std::vector<RankClass> classes = {};
  std::vector<std::int32_t> node = {}, socket = {};

  /// Sets the same cost for every operation of a kind; `busy` and `idle` are the costs of sweeps during work of a
  /// communication thread.
  void price(const std::map<OpKind, double>& seconds, double busy = 0, double idle = 0) {
    classes.clear();
    for (std::size_t r = 0; r < plans.size(); ++r) {
      RankClass c;
      c.plans = {&plans[r]};
      c.body = {{&programs[r]}};
      c.comm_thread = programs[r].comm_thread;
      for (const Op& op : programs[r].ops) {
        const auto found = seconds.find(op.kind);
        c.seconds.push_back({busy, idle, found == seconds.end() ? 0.0 : found->second});
      }
      classes.push_back(c);
    }
  }
  Result run(const Network& network, const Options& options) {
    std::vector<std::int32_t> each(layout.size());
    std::iota(each.begin(), each.end(), 0);
    if (node.empty()) node = socket = each;
    return Simulator(layout, network, node, socket, classes, each).run(options);
  }
};

Options rounds(int count) {
  Options options{.rounds = count};
  return options;
}

Case exchange_case(const Layout& layout, const std::string& schedule, Pattern pattern = Pattern::ordered,
                   int tiles = 4) {
  Case c{layout};
  ExchangeSpec spec{.pattern = pattern, .corners = false};
  ScheduleOptions options{.tiles = tiles};
  const Step stencil = stencil_step(layout.dims(), 1, false);
  c.plans.reserve(layout.size());
  for (int r = 0; r < layout.size(); ++r) {
    c.plans.push_back(make_plan(layout, r, spec));
    c.programs.push_back(find_schedule(schedule).make(stencil.stages.front(), c.plans.back(), options));
  }
  return c;
}

Layout ring(int ranks, std::int64_t cells_per_rank = 4) {
  return Layout(GridSpec{1, {ranks * cells_per_rank, 1, 1}, {true, false, false}}, ProcessGrid{ranks, 1, 1});
}

/// Rank 0 works, sends 10 bytes to rank 1 and waits until they may be overwritten; rank 1 posts, works and waits.
Case one_message() {
  Case c{Layout(GridSpec{1, {2, 1, 1}, {false, false, false}}, ProcessGrid{2, 1, 1})};
  c.plans.resize(2);
  c.programs.resize(2);
  for (int r = 0; r < 2; ++r) {
    c.plans[r].rank = r;
    Message message;
    message.out = r == 0;
    message.peer = 1 - r;
    message.bytes = 10;
    c.plans[r].messages = {message};
    c.programs[r].sets = {{0}};
    c.programs[r].sweeps = {Sweep{}};
  }
  c.programs[0].ops = {{OpKind::sweep, Lane::main, 0, 0, {}},
                       {OpKind::send, Lane::comm, 0, 0, {0}},
                       {OpKind::complete, Lane::comm, 0, 0, {}}};
  c.programs[1].ops = {{OpKind::post, Lane::comm, 0, 0, {}},
                       {OpKind::sweep, Lane::main, 0, 0, {0}},
                       {OpKind::wait, Lane::comm, 0, 0, {1}}};
  c.classes = {{{&c.plans[0]}, {}, {{&c.programs[0]}}, {}, {}, {{0, 0, 3}, {}, {}}, {}, false},
               {{&c.plans[1]}, {}, {{&c.programs[1]}}, {}, {}, {{}, {0, 0, 20}, {}}, {}, false}};
  return c;
}

TEST(Simulate, AnEagerMessageTakesOverheadLatencyAndBytes) {
  Case c = one_message();
  c.classes[1].seconds[1].seconds = 1;
  Network n = network();
  for (NetworkClass& place : n.classes) place.segments[0].overhead_send_s = 2, place.segments[0].overhead_receive_s = 1;
  const Result found = c.run(n, rounds(1));
  EXPECT_EQ(found.ends, (std::vector<double>{3 + 2, 3 + 2 + L + 10 * G + 1}));
  EXPECT_EQ(found.messages, 1);
  EXPECT_EQ(found.bytes, 10);
  EXPECT_EQ(found.seconds[int(OpKind::wait)], found.ends[1] - 1);  // rank 1 waits from 1 on
}

TEST(Simulate, AnEagerMessageTravelsWhileItsReceiverComputes) {
  Case c = one_message();
  EXPECT_EQ(c.run(network(), rounds(1)).ends, (std::vector<double>{3, 20}));
  Options half = rounds(1);
  half.efficiency = 0.25;  // a quarter of the 17 seconds counts
  EXPECT_EQ(c.run(network(), half).ends[1], 20 + L + 10 * G - 17 * 0.25);
  Network held = network();
  for (NetworkClass& place : held.classes) place.segments[0].held_per_byte = 1;
  EXPECT_EQ(c.run(held, rounds(1)).ends[1], 20 + 10 * G);
}

TEST(Simulate, ARendezvousMessageWaitsForItsReceiversCall) {
  Case c = one_message();
  Network n = network();
  for (NetworkClass& place : n.classes)
    place.segments.push_back({.from_bytes = 10, .latency_s = L, .per_byte_s = G, .rendezvous = true});
  EXPECT_EQ(c.run(n, rounds(1)).ends, (std::vector<double>{20 + L + 10 * G, 20 + L + 10 * G}));
  Options offload = rounds(1);
  offload.by_itself = true;  // posted at 0, so nothing holds it up
  EXPECT_EQ(c.run(n, offload).ends, (std::vector<double>{20, 20}));
  c.classes[1].seconds[0].seconds = 15;  // posted at 15 only, then 20 seconds of work
  EXPECT_EQ(c.run(n, offload).ends[1], 35);
  c.classes[1].seconds[1].seconds = 1;
  EXPECT_EQ(c.run(n, offload).ends[1], 15 + L + 10 * G);
}

TEST(Simulate, ASegmentServesMessagesFromItsFirstByteOn) {
  NetworkClass c;
  c.segments = {{.latency_s = 1}, {.from_bytes = 10, .latency_s = 2}, {.from_bytes = 20, .latency_s = 3}};
  EXPECT_EQ(flight(c, 0, 0).seconds, 1);
  EXPECT_EQ(flight(c, 9, 0).seconds, 1);
  EXPECT_EQ(flight(c, 10, 0).seconds, 2);
  EXPECT_EQ(flight(c, 1000, 0).seconds, 3);
  EXPECT_EQ(flight(c, 1000, -5).seconds, 0);
}

TEST(Simulate, ARingAdvancesByWhatOneRankDoes) {
  Case c = exchange_case(ring(5), "bulk");
  c.price({{OpKind::pack, 1}, {OpKind::send, 2}, {OpKind::unpack, 3}, {OpKind::sweep, 10}});
  const Result found = c.run(network(), rounds(3));
  const double step = 1 + 2 + (L + 8 * G) + 3 + 10;
  for (int k = 0; k < 3; ++k)
    for (int r = 0; r < 5; ++r) EXPECT_DOUBLE_EQ(found.ends[k * 5 + r], (k + 1) * step);
  EXPECT_DOUBLE_EQ(found.seconds[int(OpKind::sweep)], 3 * 5 * 10);
  EXPECT_DOUBLE_EQ(found.seconds[int(OpKind::wait)], 3 * 5 * (L + 8 * G));
}

TEST(Simulate, AnOrderedExchangeIn2DHasTwoRoundsOneAfterTheOther) {
  Case c = exchange_case(Layout(GridSpec{2, {12, 6, 1}, {true, true, false}}, ProcessGrid{3, 3, 1}), "bulk");
  c.price({{OpKind::sweep, 100}});
  const double columns = L + 2 * 8 * G, rows = L + 4 * 8 * G;  // blocks of 4 x 2 cells
  EXPECT_DOUBLE_EQ(c.run(network(), rounds(1)).ends[4], columns + rows + 100);
  Case direct = exchange_case(c.layout, "bulk", Pattern::direct);
  direct.price({{OpKind::sweep, 100}});
  EXPECT_DOUBLE_EQ(direct.run(network(), rounds(1)).ends[4], rows + 100);
}

TEST(Simulate, ASplitScheduleHidesWhatTravelsBehindTheInterior) {
  Case c = exchange_case(ring(4, 64), "split", Pattern::ordered, 4);
  c.price({{OpKind::sweep, 10}, {OpKind::pack, 1}, {OpKind::unpack, 2}});
  const int sweeps = std::count_if(c.programs[0].ops.begin(), c.programs[0].ops.end(),
                                   [](const Op& op) { return op.kind == OpKind::sweep; });
  EXPECT_DOUBLE_EQ(c.run(network(), rounds(1)).ends[0], 1 + 10 * sweeps + 2);
  c.price({{OpKind::sweep, 1}, {OpKind::pack, 1}, {OpKind::unpack, 2}});  // four tiles do not last long enough
  EXPECT_DOUBLE_EQ(c.run(network(), rounds(1)).ends[0], 1 + (L + 8 * G) + 2 + (sweeps - 4));
}

TEST(Simulate, ADelayTravelsOneNeighbourARound) {
  const int ranks = 11, count = 4;
  Case c = exchange_case(ring(ranks), "bulk");
  c.price({{OpKind::sweep, 10}});
  Program late;  // rank 0 begins 20 seconds after the others
  late.sweeps = {Sweep{}};
  late.ops = {{OpKind::sweep, Lane::main, 0, 0, {}}};
  c.classes[0].opening = {{&late}};
  c.classes[0].seconds.insert(c.classes[0].seconds.begin(), OpSeconds{0, 0, 20});
  const Result found = c.run(network(), rounds(count));
  // A rank continues when it is ready and its neighbours' messages have arrived.
  std::vector<double> ready(ranks, 0);
  ready[0] = 20;
  for (int k = 0; k < count; ++k) {
    const std::vector<double> before = ready;
    for (int r = 0; r < ranks; ++r) {
      const double sent = std::max(before[(r + 1) % ranks], before[(r + ranks - 1) % ranks]);
      ready[r] = std::max(before[r], sent + L + 8 * G) + 10;
      EXPECT_DOUBLE_EQ(found.ends[k * ranks + r], ready[r]) << k << " " << r;
    }
    const double undisturbed = (k + 1) * (10 + L + 8 * G);
    EXPECT_EQ(ready[k + 1], undisturbed + 20);  // the neighbours that it has reached
    EXPECT_EQ(ready[k + 2], undisturbed);
  }
}

TEST(Simulate, MessagesOfANodeQueueForWhatTheyShare) {
  Case c = exchange_case(ring(4), "bulk");
  c.price({});
  c.node = {0, 0, 0, 0}, c.socket = {0, 0, 0, 0};
  const double one = L + 8 * G;
  EXPECT_DOUBLE_EQ(c.run(network(0), rounds(1)).ends[0], one);
  const auto last = [](const Result& found) { return *std::max_element(found.ends.begin(), found.ends.end()); };
  EXPECT_DOUBLE_EQ(last(c.run(network(1, 1), rounds(1))), 4 * one);  // 4 each way
  EXPECT_DOUBLE_EQ(last(c.run(network(1, 2), rounds(1))), 8 * one);  // both ways are the same memory
  EXPECT_DOUBLE_EQ(last(c.run(network(0.5, 1), rounds(1))), 2.5 * one);
}

TEST(Simulate, LatenciesOfQueuedMessagesOverlapButForTheirGap) {
  Case c = exchange_case(ring(4), "bulk");
  c.price({});
  c.node = {0, 0, 0, 0}, c.socket = {0, 0, 0, 0};
  Network overlapping = network(1, 1);
  for (NetworkClass& link : overlapping.classes) link.overlaps_s = L - 1;  // a gap of a second
  const Result found = c.run(overlapping, rounds(1));
  EXPECT_DOUBLE_EQ(*std::max_element(found.ends.begin(), found.ends.end()), L + 8 * G + 3 * (1 + 8 * G));
}

TEST(Simulate, RanksOfANodeShareItsInjectionRate) {
  Case c = exchange_case(Layout(GridSpec{2, {8, 8, 1}, {false, true, false}}, ProcessGrid{2, 2, 1}), "bulk");
  c.price({});
  c.node = c.socket = {0, 0, 1, 1};  // rows of two ranks; each sends two rows of 32 bytes to the other node
  Network n = network();
  n.injection_bytes_per_s = 1;
  const Result found = c.run(n, rounds(1));  // after the columns; the first two rows are rank 0's
  EXPECT_DOUBLE_EQ(found.ends[0], (L + 32 * G) + 2 * 32 + L);
  EXPECT_DOUBLE_EQ(found.ends[1], (L + 32 * G) + 4 * 32 + L);
}

TEST(Simulate, ACommunicationThreadLetsTheOthersSweepFasterWhileItWaits) {
  Case c = exchange_case(ring(4, 64), "comm-thread");
  const auto& ops = c.programs[0].ops;
  ASSERT_TRUE(c.programs[0].comm_thread);
  // Packing takes 6, during which an eighth of the interior is done (48 a sweep), the flight 8 (32 a sweep): a quarter.
  c.price({{OpKind::pack, 6}, {OpKind::sweep, 24}}, 48, 32);
  const int sweeps = std::count_if(ops.begin(), ops.end(), [](const Op& op) { return op.kind == OpKind::sweep; });
  const double interior = 6 + 8 + (1 - 6 / 48.0 - 8 / 32.0) * 24;
  EXPECT_DOUBLE_EQ(c.run(network(), rounds(1)).ends[0], interior + (sweeps - 1) * 24);
}

TEST(Simulate, ABarrierHoldsEveryRankUntilTheLastComes) {
  Case c = exchange_case(ring(3), "bulk");
  for (int r = 0; r < 3; ++r) {
    ScheduleOptions options{.barrier = true};
    c.programs[r] = find_schedule("bulk").make(stencil_step(1, 1, false).stages.front(), c.plans[r], options);
  }
  c.price({{OpKind::sweep, 10}, {OpKind::barrier, 1}});
  for (std::size_t i = 0; i < c.programs[0].ops.size(); ++i)
    if (c.programs[0].ops[i].kind == OpKind::sweep) c.classes[0].seconds[i].seconds = 50;
  const Result found = c.run(network(), rounds(2));
  const double exchange = 1 + L + 8 * G;
  EXPECT_DOUBLE_EQ(found.ends[3], 2 * (exchange + 50));
  EXPECT_DOUBLE_EQ(found.ends[4], exchange + 50 + exchange + 10);
}

/// A step of the ring whose sweep ends in a reduction that takes `seconds`; rank 0 sweeps for 50, the others for 10.
Case reducing_case(const std::string& schedule, ReduceMode mode, double seconds) {
  Case c = exchange_case(ring(3), schedule);
  Step step = stencil_step(1, 1, false);
  step.stages[0].reductions = {{.name = "norm", .mode = mode, .sweep = 0}};
  for (int r = 0; r < 3; ++r)
    c.programs[r] = find_schedule(schedule).make(step.stages[0], c.plans[r], ScheduleOptions{.tiles = 1});
  c.price({{OpKind::sweep, 10}, {OpKind::reduce, 2}}, 10, 10);
  for (RankClass& one : c.classes) one.reductions = {{seconds, mode == ReduceMode::blocking}};
  for (std::size_t i = 0; i < c.programs[0].ops.size(); ++i)
    if (c.programs[0].ops[i].kind == OpKind::sweep) c.classes[0].seconds[i] = {50, 50, 50};
  return c;
}

TEST(Simulate, ABlockingReductionEndsForAllRanksAfterTheLastOnesNumbers) {
  Case c = reducing_case("bulk", ReduceMode::blocking, 7);
  const double exchange = L + 8 * G;
  const Result found = c.run(network(), rounds(2));
  for (int r = 0; r < 3; ++r) EXPECT_DOUBLE_EQ(found.ends[r], exchange + 50 + 2 + 7) << r;
  for (int r = 0; r < 3; ++r) EXPECT_DOUBLE_EQ(found.ends[3 + r], 2 * (exchange + 50 + 2 + 7)) << r;
  // Each of the two others contributes its numbers 40 before the last one does.
  EXPECT_DOUBLE_EQ(found.seconds[static_cast<int>(OpKind::reduce)], 2 * (3 * (2 + 7) + 2 * 40));
}

TEST(Simulate, ADeferredReductionIsWaitedForOneStepLater) {
  // Its 30 seconds pass during the next step's exchange and sweep, which take rank 1 only 18.
  Case c = reducing_case("bulk", ReduceMode::deferred, 30);
  for (auto& one : c.classes[0].seconds)
    if (one.busy == 50) one = {10, 10, 10};
  const double exchange = L + 8 * G, step = exchange + 10 + 2;
  const Result found = c.run(network(), rounds(2));
  EXPECT_DOUBLE_EQ(found.ends[1], step);  // nothing is in flight before the first
  EXPECT_DOUBLE_EQ(found.ends[4], step + 30 + 2);
}

TEST(Simulate, SeveralReductionsOfAStepAreWaitedForSeparately) {
  const double exchange = L + 8 * G, first = exchange + 10 + 2;  // end of the first contribution
  const auto end = [](double one, double other) {
    Case c = exchange_case(ring(3), "bulk");
    Step step = stencil_step(1, 1, false);
    step.stages[0].reductions = {{.name = "one", .mode = ReduceMode::deferred, .sweep = 0},
                                 {.name = "other", .mode = ReduceMode::deferred, .sweep = 0}};
    for (int r = 0; r < 3; ++r)
      c.programs[r] = find_schedule("bulk").make(step.stages[0], c.plans[r], ScheduleOptions{});
    c.price({{OpKind::sweep, 10}, {OpKind::reduce, 2}});
    for (RankClass& rank : c.classes) rank.reductions = {{one, false}, {other, false}};
    return c.run(network(), rounds(2)).ends[4];
  };
  EXPECT_DOUBLE_EQ(end(30, 5), first + 30 + 2 + 2);   // the second is over when the first one is
  EXPECT_DOUBLE_EQ(end(30, 40), first + 2 + 40 + 2);  // the second is contributed 2 later, and over later
  EXPECT_DOUBLE_EQ(end(0, 0), 2 * (first + 2));
}

TEST(Simulate, ANonblockingReductionIsWaitedForAtTheEndOfItsProgram) {
  Case c = reducing_case("bulk", ReduceMode::nonblocking, 7);
  const Result found = c.run(network(), rounds(1));
  EXPECT_DOUBLE_EQ(found.ends[2], L + 8 * G + 50 + 2 + 7);
}

TEST(Simulate, AThreadThatCommunicatesReducesOnceItHasDoneThat) {
  Case c = reducing_case("comm-thread", ReduceMode::blocking, 7);
  c.price({{OpKind::sweep, 10}, {OpKind::complete, 100}, {OpKind::reduce, 2}}, 10, 10);
  for (RankClass& one : c.classes) one.reductions = {{7, true}};
  const Result found = c.run(network(), rounds(1));
  EXPECT_DOUBLE_EQ(found.ends[0], L + 8 * G + 100 + 2 + 7);
}

/// Two stages with exchanges of different widths, by the same plan class each: rank r sends the messages of both plans.
Case staged_case(const Layout& layout, const std::string& schedule) {
  Case c{layout};
  const Step wide = stencil_step(layout.dims(), 2, true), narrow = stencil_step(layout.dims(), 1, false);
  c.plans.reserve(2 * static_cast<std::size_t>(layout.size()));
  c.programs.reserve(2 * static_cast<std::size_t>(layout.size()));
  for (int r = 0; r < layout.size(); ++r) {
    RankClass one;
    for (const Step* step : {&wide, &narrow}) {
      ExchangeSpec spec;
      spec.low = spec.high = {step == &wide ? 2 : 1, step == &wide ? 2 : 1, 1};
      spec.corners = step == &wide;
      const Plan& plan = c.plans.emplace_back(make_plan(layout, r, spec));
      const Program& program = c.programs.emplace_back(find_schedule(schedule).make(step->stages[0], plan, {}));
      one.body.push_back({&program, static_cast<int>(one.plans.size()), 0});
      one.plans.push_back(&plan);
      for (const Op& op : program.ops) one.seconds.push_back({0, 0, op.kind == OpKind::sweep ? 5.0 : 0.0});
    }
    c.classes.push_back(one);
  }
  return c;
}

TEST(Simulate, OpeningAndClosingRunOnceAroundTheRounds) {
  Case c = exchange_case(ring(3), "split");
  c.price({{OpKind::sweep, 10}, {OpKind::pack, 1}});
  const double end_of_three = c.run(network(), rounds(3)).ends.back();
  const std::int64_t messages_of_four = c.run(network(), rounds(4)).messages;
  for (RankClass& one : c.classes) {
    const std::vector<OpSeconds> once = one.seconds;
    for (int part = 0; part < 2; ++part) one.seconds.insert(one.seconds.end(), once.begin(), once.end());
    one.opening = one.closing = one.body;
  }
  const Result two = c.run(network(), rounds(2));
  EXPECT_DOUBLE_EQ(two.ends.back(), end_of_three);  // of the second round
  EXPECT_EQ(two.messages, messages_of_four);
}

TEST(Simulate, StagesHaveMessagesOfTheirOwn) {
  Case one_rank_a_side = staged_case(ring(3, 8), "bulk");
  const Result found = one_rank_a_side.run(network(), rounds(2));
  EXPECT_DOUBLE_EQ(found.ends.back(), 2 * (L + 16 * G + 5 + L + 8 * G + 5));
  for (const char* schedule : {"bulk", "split", "interleaved"}) {
    Case c = staged_case(Layout(GridSpec{2, {19, 17, 1}, {true, false, false}}, ProcessGrid{3, 2, 1}), schedule);
    const Result all = c.run(network(), rounds(4));
    std::int64_t messages = 0, bytes = 0;
    for (const Plan& plan : c.plans) messages += plan.messages_out(), bytes += plan.bytes_out();
    EXPECT_EQ(all.messages, 4 * messages) << schedule;
    EXPECT_EQ(all.bytes, 4 * bytes) << schedule;
  }
}

TEST(Simulate, ReductionsAndPlansThatAClassLacksAreRefused) {
  Case c = reducing_case("bulk", ReduceMode::blocking, 7);
  c.classes[1].reductions.clear();
  EXPECT_THROW(c.run(network(), rounds(1)), UsageError);
  c = reducing_case("bulk", ReduceMode::blocking, -1);
  EXPECT_THROW(c.run(network(), rounds(1)), UsageError);
  c = reducing_case("bulk", ReduceMode::blocking, 7);
  c.classes[2].body[0].plan = 1;
  EXPECT_THROW(c.run(network(), rounds(1)), UsageError);
}

TEST(Simulate, NothingIsLostWhateverTheSchedule) {
  for (const char* schedule : {"bulk", "split", "interleaved", "comm-thread"})
    for (Pattern pattern : {Pattern::ordered, Pattern::direct}) {
      Case c =
          exchange_case(Layout(GridSpec{3, {13, 9, 7}, {true, false, true}}, ProcessGrid{3, 2, 2}), schedule, pattern);
      c.price({{OpKind::sweep, 5}, {OpKind::pack, 1}}, 7, 6);
      const Result found = c.run(network(), rounds(3));
      std::int64_t messages = 0, bytes = 0, operations = 0;
      for (const Plan& plan : c.plans) messages += plan.messages_out(), bytes += plan.bytes_out();
      for (const Program& program : c.programs)
        operations += std::count_if(program.ops.begin(), program.ops.end(), [&](const Op& op) {
          return !program.comm_thread || op.lane == Lane::comm || op.kind == OpKind::sweep;
        });
      EXPECT_EQ(found.messages, 3 * messages) << schedule;
      EXPECT_EQ(found.bytes, 3 * bytes) << schedule;
      EXPECT_EQ(found.operations, 3 * operations) << schedule;
      EXPECT_GT(found.events, 0);
    }
}

TEST(Simulate, TheSeedDecidesAndDelaysNeverHelp) {
  Case c = exchange_case(Layout(GridSpec{2, {16, 16, 1}, {true, true, false}}, ProcessGrid{4, 4, 1}), "split");
  c.price({{OpKind::sweep, 5}, {OpKind::pack, 1}});
  const auto with = [&](double mean, std::uint64_t seed) {
    Options options = rounds(20);
    options.noise_s = mean;
    options.seed = seed;
    return c.run(network(), options).ends;
  };
  const auto calm = with(0, 1);
  EXPECT_EQ(calm, with(0, 2));
  EXPECT_EQ(with(0.5, 1), with(0.5, 1));
  EXPECT_NE(with(0.5, 1), with(0.5, 2));
  const auto noisy = with(0.5, 1);
  for (std::size_t i = 0; i < calm.size(); ++i) EXPECT_GT(noisy[i], calm[i]);
}

TEST(Simulate, DelaysHaveTheMeanThatIsAskedFor) {
  Case c{Layout(GridSpec{1, {1, 1, 1}, {false, false, false}}, ProcessGrid{1, 1, 1})};
  c.plans.resize(1);
  c.programs.resize(1);
  c.programs[0].sweeps = {Sweep{}};
  c.programs[0].ops = {{OpKind::sweep, Lane::main, 0, 0, {}}};
  c.price({{OpKind::sweep, 2}});
  Options options = rounds(40000);
  options.noise_s = 1;
  options.noise_share = 0.5;
  EXPECT_NEAR(c.run(network(), options).ends.back() / 40000, 2 + 1 + 0.5 * 2, 4 * 2 / 200.0);  // 4 standard errors
}

TEST(Simulate, RanksThatWaitForWhatNobodySendsAreAnError) {
  Case c = one_message();
  c.programs[0].ops.erase(c.programs[0].ops.begin() + 1);
  c.classes[0].seconds.pop_back();
  EXPECT_PART(test::error_of<Error>([&] { c.run(network(), rounds(1)); }),
              "rank 1 waits forever in round 0 at operation 'wait'");
}

TEST(Simulate, WhatDoesNotFitTogetherIsRefused) {
  const auto refused = [](auto change) {
    Case c = one_message();
    Network n = network();
    Options options = rounds(1);
    change(c, n, options);
    EXPECT_THROW(c.run(n, options), UsageError);
  };
  refused([](Case& c, Network&, Options&) { c.classes[0].seconds.pop_back(); });
  refused([](Case& c, Network&, Options&) { c.classes[0].seconds[0].seconds = -1; });
  refused([](Case& c, Network&, Options&) { c.classes[0].flight_change = {1, 2}; });
  refused([](Case& c, Network&, Options&) { c.classes[0].body.clear(); });
  refused([](Case& c, Network&, Options&) { c.plans[0].messages[0].bytes = 11; });
  refused([](Case& c, Network&, Options&) { c.programs[0].sets[0] = {3}; });
  refused([](Case& c, Network&, Options&) { c.node = {0}, c.socket = {0, 0}; });
  refused([](Case&, Network& n, Options&) { n.classes[0].segments[0].latency_s = -1; });
  refused([](Case&, Network& n, Options&) { n.classes[1].duplex = 0.5; });
  refused([](Case&, Network& n, Options&) { n.classes[2].segments.push_back({}); });
  refused([](Case&, Network&, Options& o) { o.rounds = 0; });
  refused([](Case&, Network&, Options& o) { o.counted_from = 1; });
  refused([](Case&, Network&, Options& o) { o.efficiency = 0; });
  refused([](Case&, Network&, Options& o) { o.noise_s = -1; });
}

}  // namespace
}  // namespace haloscope::simulate
