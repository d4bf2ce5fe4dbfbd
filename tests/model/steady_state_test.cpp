// Steady states of timelines: lanes, dependencies, messages and waits determine the time, not a formula per schedule.
#include "haloscope/model/steady_state.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "haloscope/simulate/simulator.hpp"

namespace haloscope::model {
namespace {

TimedOp work(Term term, double seconds, Lane lane = Lane::comm, std::vector<int> after = {}) {
  TimedOp action;
  action.lane = lane;
  action.after = std::move(after);
  action.parts.add(term, seconds);
  return action;
}

TimedOp message(Deed deed, int number) {
  TimedOp action;
  action.deed = deed;
  action.lane = Lane::comm;
  action.messages = {number};
  return action;
}

TimedOp sweep(std::array<double, 3> seconds, std::vector<int> after, Lane lane = Lane::main) {
  TimedOp action;
  action.deed = Deed::sweep;
  action.lane = lane;
  action.after = std::move(after);
  action.sweep = seconds;
  return action;
}
TimedOp sweep(double seconds, std::vector<int> after, Lane lane = Lane::main) {
  return sweep({seconds, seconds, seconds}, std::move(after), lane);
}

/// One message each way: pack, send, wait, unpack, complete.
std::vector<TimedOp> exchange(double pack, double unpack, int out = 1, int in = 0) {
  return {work(Term::pack, pack), message(Deed::send, out), message(Deed::wait, in), work(Term::unpack, unpack),
          message(Deed::complete, out)};
}

/// A timeline whose peers are equal to it: message 1 goes out, 0 comes in.
Timeline alike(std::vector<TimedOp> body, double flight) {
  Timeline track;
  track.body = std::move(body);
  track.ends = {static_cast<int>(track.body.size())};
  track.flights = {{}, {flight, true, 0}};
  track.sources = {{{0, 1}}, {}};
  return track;
}

struct Parts5 {
  double pack, flight, unpack, inner, outer;
};

Timeline bulk(const Parts5& p) {
  auto body = exchange(p.pack, p.unpack);
  body.push_back(sweep(p.inner + p.outer, {3}));
  return alike(std::move(body), p.flight);
}

/// Interior after the send, in tiles with calls for progress between them, then the boundary.
Timeline split(const Parts5& p, int tiles = 1) {
  auto body = exchange(p.pack, p.unpack);
  for (int tile = 0; tile < tiles; ++tile) {
    body.push_back(sweep(p.inner / tiles, {1}));
    if (tile + 1 == tiles) break;
    TimedOp progress;
    progress.deed = Deed::progress;
    body.push_back(progress);
  }
  body.push_back(sweep(p.outer, {3}));
  return alike(std::move(body), p.flight);
}

Timeline calling(Timeline track) {
  for (Flight& flight : track.flights) flight.by_itself = false;
  return track;
}

double seconds(const Timeline& track) { return steady_state({track}).front().seconds; }

/// Calls `check` with random parts of a step.
template <class Check>
void for_random_parts(Check check) {
  std::mt19937 engine(7);
  std::uniform_real_distribution<double> any(0, 50);
  std::bernoulli_distribution nothing(0.1);
  const auto draw = [&] { return nothing(engine) ? 0.0 : std::round(any(engine) * 1000) / 1000; };
  for (int i = 0; i < 100; ++i) check(Parts5{draw(), draw(), draw(), draw(), draw()}, 1 + i % 6);
}

constexpr double close = 1e-9;

TEST(Compose, WithoutOverlapTheTimeIsTheSumOfAllParts) {
  for_random_parts([](const Parts5& p, int) {
    const RoundTime mean = steady_state({bulk(p)}).front();
    EXPECT_NEAR(mean.seconds, p.pack + p.flight + p.unpack + p.inner + p.outer, close);
    EXPECT_NEAR(mean.term(Term::message), p.flight, close);
    EXPECT_NEAR(mean.term(Term::compute), p.inner + p.outer, close);
    EXPECT_NEAR(std::accumulate(mean.terms.begin(), mean.terms.end(), 0.0), mean.seconds, close);
  });
}

TEST(Compose, OverlapHidesTheMessageBehindTheInteriorAndNoMore) {
  for_random_parts([](const Parts5& p, int) {
    const RoundTime mean = steady_state({split(p)}).front();
    EXPECT_NEAR(mean.seconds, p.pack + std::max(p.inner, p.flight) + p.unpack + p.outer, close);
    EXPECT_NEAR(mean.term(Term::message), std::max(0.0, p.flight - p.inner), close);
    EXPECT_NEAR(mean.busy[static_cast<std::size_t>(Term::message)], p.flight, close);
  });
}

TEST(Compose, OverlapIsNeverSlowerThanBulkAndNeverFasterThanItsLongestPart) {
  for_random_parts([](const Parts5& p, int tiles) {
    for (const bool by_itself : {true, false}) {
      const double overlapped = seconds(by_itself ? split(p, tiles) : calling(split(p, tiles)));
      EXPECT_LE(overlapped, seconds(by_itself ? bulk(p) : calling(bulk(p))) + close);
      EXPECT_GE(overlapped, std::max(p.pack + p.inner + p.outer + p.unpack, p.flight) - close);
    }
  });
}

TEST(Compose, TheBreakdownAddsUpToTheTime) {
  for_random_parts([](const Parts5& p, int tiles) {
    Timeline thread = split(p);
    thread.comm_thread = true;
    for (const Timeline& track : {split(p, tiles), bulk(p), thread}) {
      const RoundTime mean = steady_state({track}).front();
      EXPECT_NEAR(std::accumulate(mean.terms.begin(), mean.terms.end(), 0.0), mean.seconds, close);
      EXPECT_GE(*std::min_element(mean.terms.begin(), mean.terms.end()), 0);
    }
  });
}

TEST(Compose, MessagesProgressWhileComputingAsFarAsTheEfficiencySays) {
  for_random_parts([](const Parts5& p, int tenths) {
    Timeline track = split({1, p.flight, 1, p.inner, 1});
    track.efficiency = tenths / 10.0;
    EXPECT_NEAR(seconds(track), 3 + p.inner + std::max(0.0, p.flight - track.efficiency * p.inner), close);
  });
}

TEST(Compose, AMessageThatNeedsCallsTravelsFromTheFirstCallOn) {
  EXPECT_NEAR(seconds(calling(split({1, 5, 1, 8, 1}, 4))), 1 + 8 + 1 + 1, close);  // the first call is after 2
  EXPECT_NEAR(seconds(calling(split({1, 7, 1, 8, 1}, 4))), 1 + (2 + 7) + 1 + 1, close);
  EXPECT_NEAR(seconds(calling(split({1, 5, 1, 8, 1}))), 1 + 8 + 5 + 1 + 1, close);  // the wait itself
}

TEST(Compose, WhatTheReceiverMustDoItselfIsNotHidden) {
  for_random_parts([](const Parts5& p, int) {
    const double held = std::min(p.pack, p.flight);
    Timeline track = split({1, p.flight, 1, p.inner, 1});
    track.flights[1].held = held;
    EXPECT_NEAR(seconds(track), 3 + p.inner + std::max(held, p.flight - p.inner), close);
  });
}

/// Two rounds of an ordered pattern, each a message both ways, concurrent with one sweep.
Timeline two_rounds(bool overlapped, double flight) {
  auto body = exchange(1, 1, 1, 0);
  body.pop_back();
  auto second = exchange(1, 1, 3, 2);
  second.pop_back();
  body.insert(body.end(), second.begin(), second.end());
  body.push_back(sweep(10, {overlapped ? 1 : 7}));
  body.push_back(sweep(2, {7}));
  Timeline track = alike(std::move(body), flight);
  track.flights = {{}, {flight, true, 0}, {}, {flight, true, 0}};
  track.sources = {{{0, 1}}, {}, {{0, 3}}, {}};
  return track;
}

TEST(Compose, ARoundThatFollowsAnotherStartsOnlyWhenTheControlThreadGetsToIt) {
  EXPECT_NEAR(seconds(two_rounds(false, 4)), 4 * 1 + 2 * 4 + 12, close);
  EXPECT_NEAR(seconds(two_rounds(true, 4)), 4 * 1 + 10 + 4 + 2, close);  // no call for progress is made in the sweep
}

TEST(Compose, ACommunicationThreadServesEveryRoundBesideTheSweep) {
  Timeline track = two_rounds(true, 4);
  track.comm_thread = true;
  const RoundTime mean = steady_state({track}).front();
  EXPECT_NEAR(mean.seconds, 4 * 1 + 2 * 4 + 2, close);  // the exchange is the longer lane: 12, sweep 1 to 11
  EXPECT_NEAR(mean.term(Term::compute), 12, close);
  EXPECT_NEAR(mean.busy[static_cast<std::size_t>(Term::message)], 8, close);
}

TEST(Compose, ASweepGoesFasterWhileTheCommunicationThreadWaitsAndOnceItHelps) {
  // Packing 2 s at a rate of 1/20, then waiting 4 s at 1/16, then helping at 1/8: 2/20 + 4/16 leave 0.65 x 8 s.
  Timeline track =
      alike({work(Term::pack, 2), message(Deed::send, 1), message(Deed::wait, 0), sweep({20, 16, 8}, {})}, 4);
  track.comm_thread = true;
  EXPECT_NEAR(seconds(track), 6 + 0.65 * 8, close);
}

TEST(Compose, ASlowRankSetsThePaceAndItsNeighboursWaitForIt) {
  std::vector<Timeline> tracks{bulk({1, 2, 1, 3, 1}), bulk({1, 2, 1, 8, 1})};
  for (int i = 0; i < 2; ++i) tracks[i].sources[0] = {{1 - i, 1}};
  const auto means = steady_state(tracks);
  for (const RoundTime& mean : means) EXPECT_NEAR(mean.seconds, 11, close);
  EXPECT_NEAR(means[1].term(Term::message), 0, close);  // its peer is early
  EXPECT_NEAR(means[1].term(Term::wait), 0, close);
  EXPECT_NEAR(means[0].term(Term::wait), 11 - (1 + 2 + 1 + 4), close);
}

TEST(Compose, OfSeveralPossibleSendersTheLastCounts) {
  std::vector<Timeline> tracks{bulk({1, 2, 1, 1, 1}), bulk({1, 2, 1, 2, 1}), bulk({1, 2, 1, 9, 1})};
  for (Timeline& track : tracks) track.sources[0] = {{0, 1}, {1, 1}, {2, 1}};
  for (const RoundTime& mean : steady_state(tracks)) EXPECT_NEAR(mean.seconds, 14, close);
}

TEST(Compose, AMessageThatNeedsCallsIsKeptUntilTheLastOfItsReceiversHasIt) {
  // The first sends to both others and waits for neither; it cannot continue before the slower one has called.
  std::vector<Timeline> tracks{calling(bulk({1, 2, 1, 1, 1})), calling(bulk({1, 2, 1, 3, 1})),
                               calling(bulk({1, 2, 1, 8, 1}))};
  tracks[0].sources[0] = {};
  for (const std::size_t receiver : {1, 2}) tracks[receiver].sources[0] = {{0, 1}};
  for (const RoundTime& mean : steady_state(tracks)) EXPECT_NEAR(mean.seconds, 1 + 2 + 1 + 8 + 1, close);
}

TEST(Compose, BarriersMakeAllWaitForTheSlowest) {
  std::vector<Timeline> tracks;
  for (const double time : {1.0, 5.0}) {
    Timeline& track = tracks.emplace_back();
    TimedOp barrier;
    barrier.deed = Deed::barrier;
    barrier.lane = Lane::comm;
    track.body = {barrier, sweep(time, {0})};
    track.ends = {2};
  }
  const auto means = steady_state(tracks);
  for (const RoundTime& mean : means) EXPECT_NEAR(mean.seconds, 5, close);
  EXPECT_NEAR(means[0].term(Term::wait), 4, close);
}

TEST(Compose, RanksThatAllWaitBeforeTheySendAreReported) {
  EXPECT_THROW(steady_state({alike({message(Deed::wait, 0), message(Deed::send, 1)}, 1)}), simulate::Deadlock);
}

TEST(Compose, AChainThatTakesTurnsRunsAtThePaceOfOneLink) {
  Timeline first = alike({sweep(4, {}), work(Term::pack, 1), message(Deed::send, 1)}, 2);
  first.sources = {{}, {}};
  std::vector<Timeline> tracks{first};
  for (const int before : {0, 1}) {
    tracks.push_back(alike({message(Deed::wait, 0), sweep(4, {0}), work(Term::pack, 1), message(Deed::send, 1)}, 2));
    tracks.back().sources[0] = {{before, 1}};
  }
  for (const RoundTime& mean : steady_state(tracks)) EXPECT_NEAR(mean.seconds, 5, close);
}

TEST(Compose, NoPartCanGrowAndMakeTheStepShorter) {
  for_random_parts([](const Parts5& p, int which) {
    Parts5 longer = p;
    (which % 2 ? longer.flight : which % 3 ? longer.inner : longer.pack) += p.outer;
    EXPECT_GE(seconds(bulk(longer)), seconds(bulk(p)) - close);
    EXPECT_GE(seconds(split(longer)), seconds(split(p)) - close);
  });
}

// ---- the streams of a device ----

TimedOp on_stream(Term term, double seconds, Lane lane, std::vector<int> after = {}) {
  TimedOp action = work(term, seconds, lane, std::move(after));
  action.copying = term == Term::d2h || term == Term::h2d;
  return action;
}

/// An exchange of a device: it packs, copies to the host, which sends and waits, and back; then the boundary.
Timeline staged(double pack, double d2h, double flight, double h2d, double unpack, double inner, double last) {
  Timeline track =
      alike({on_stream(Term::pack, pack, Lane::halo_stream), on_stream(Term::d2h, d2h, Lane::halo_stream, {0}),
             message(Deed::send, 1), message(Deed::wait, 0), on_stream(Term::h2d, h2d, Lane::halo_stream, {3}),
             on_stream(Term::unpack, unpack, Lane::halo_stream, {4}), sweep(inner, {}, Lane::sweep_stream),
             sweep(last, {5}, Lane::sweep_stream)},
            flight);
  track.body[2].after = {1};
  return track;
}

TEST(Compose, ASweepOfADeviceHidesTheHaloStreamAndTheMessage) {
  for_random_parts([](const Parts5& p, int) {
    const double chain = p.pack + 2 + p.flight + 3 + p.unpack;
    EXPECT_NEAR(seconds(staged(p.pack, 2, p.flight, 3, p.unpack, p.inner, p.outer)), std::max(chain, p.inner) + p.outer,
                close);
  });
}

TEST(Compose, TheHostNoticesTheEndOfAStreamsWorkLate) {
  Timeline track = staged(1, 1, 1, 1, 1, 0, 1);
  const double usual = seconds(track);
  track.notice_s = 0.5;
  EXPECT_NEAR(seconds(track), usual + 0.5, close);  // before the send
}

TEST(Compose, HandingWorkToADeviceTakesTheHostTime) {
  Timeline track;
  for (int i = 0; i < 5; ++i) {
    track.body.push_back(sweep(1, {}, Lane::sweep_stream));
    track.body.back().hand_s = 10;
  }
  track.ends = {5};
  EXPECT_NEAR(seconds(track), 5 * 10, close);
}

TEST(Compose, KernelsOnOneStreamSlowTheSweepOnTheOtherAndCopiesDoNot) {
  for_random_parts([](const Parts5& p, int tenths) {
    const double conflict = tenths / 10.0;
    const double inner = 1 + 2 * (p.pack + 2 * 3 + p.flight + 2) / (1 - conflict);  // lasts beyond the exchange
    Timeline track = staged(p.pack, 3, p.flight, 3, 1, inner, 1);
    track.body[6].sweep = {inner / (1 - conflict), inner, inner};
    track.body[7].lane = Lane::halo_stream;
    EXPECT_NEAR(seconds(track), inner + conflict * (p.pack + 1 + 1), 1e-6);
  });
}

TEST(Compose, LargeWorkHidesTheHandingOver) {
  Timeline track;
  for (int i = 0; i < 5; ++i) {
    track.body.push_back(on_stream(Term::copy, 10, Lane::sweep_stream));
    track.body.back().hand_s = 2;
  }
  track.ends = {5};
  EXPECT_NEAR(seconds(track), 5 * 10, close);
}

TEST(Compose, StreamsMeetAtTheEndOfEveryProgram) {
  Timeline track;
  track.body = {sweep(4, {}, Lane::sweep_stream), on_stream(Term::pack, 1, Lane::halo_stream),
                sweep(1, {}, Lane::sweep_stream), on_stream(Term::pack, 4, Lane::halo_stream)};
  track.ends = {4};
  EXPECT_NEAR(seconds(track), 5, close);
  track.ends = {2, 4};
  EXPECT_NEAR(seconds(track), 4 + 4, close);
}

TEST(Compose, TheHostComputesWhileItWaitsForMessagesAndStreams) {
  // A wall of 4 without dependencies, concurrent with a message of 10 that follows a copy of 3.
  Timeline track = alike({on_stream(Term::d2h, 3, Lane::halo_stream), message(Deed::send, 1), message(Deed::wait, 0),
                          sweep(2, {2}, Lane::sweep_stream), sweep(4, {})},
                         10);
  track.body[1].after = {0};
  EXPECT_NEAR(seconds(track), 3 + 10 + 2, close);
  track.body[0] = on_stream(Term::d2h, 0, Lane::halo_stream);  // the message has to wait for the wall
  EXPECT_NEAR(seconds(track), 4 + 10, close);
}

}  // namespace
}  // namespace haloscope::model
