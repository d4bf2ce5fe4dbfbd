// Epochs of one-sided communication, from made-up calls.
#include "haloscope/rank/watch/epochs.hpp"

#include <gtest/gtest.h>

namespace haloscope {
namespace {

/// A log with a clock that tests move by hand.
class Epochs : public testing::Test {
 protected:
  Epochs() {
    MPI_Info info = MPI_INFO_NULL;
    for (MPI_Win* window : {&first_, &second_}) MPI_Win_create(nullptr, 0, 1, info, MPI_COMM_SELF, window);
    log_.start(100);
  }
  ~Epochs() override {
    for (MPI_Win* window : {&first_, &second_}) MPI_Win_free(window);
  }

  /// A call that waits.
  void waits(const EpochCall& call, double begin_s, double end_s) {
    log_.note(call, {.begin_s = begin_s, .end_s = end_s, .waits = true});
  }
  void starts(const EpochCall& call, double at_s) { log_.note(call, {.begin_s = at_s, .end_s = at_s}); }
  void polls(const EpochCall& call, double begin_s, double end_s, std::int32_t during = 0) {
    log_.note(call, {.begin_s = begin_s, .end_s = end_s, .during = during, .polls = true});
  }
  /// The only kind of the log.
  EpochSum only(EpochKind kind) const {
    const auto sums = log_.sums();
    EXPECT_EQ(sums.size(), 1u);
    EXPECT_EQ(sums.at(0).kind, kind);
    return sums.at(0);
  }

  EpochCall fence(bool opens) const { return {first_, EpochKind::fence, -1, true, opens}; }
  EpochCall operation(int target) const { return {first_, EpochKind::lock_all, target}; }

  MPI_Win first_ = MPI_WIN_NULL, second_ = MPI_WIN_NULL;
  EpochLog log_{8};
};

TEST_F(Epochs, SH1_AnEpochLastsFromTheCallThatOpensItToTheEndOfTheCallThatClosesIt) {
  waits(fence(true), 101, 102);
  starts(operation(1), 103);
  waits(fence(false), 105, 109);
  const EpochSum sum = only(EpochKind::fence);
  EXPECT_EQ(sum.epochs, 1);
  EXPECT_EQ(sum.open_s, 8);
  EXPECT_EQ(sum.blocked_s, 1 + 4);
  ASSERT_EQ(log_.spans().size(), 1u);
  EXPECT_EQ(log_.spans()[0].begin_s, 101);
  EXPECT_EQ(log_.spans()[0].end_s, 109);
}

TEST_F(Epochs, SH1_AFenceBetweenTwoEpochsWaitsForTheEndOfTheFirst) {
  waits(fence(true), 101, 102);
  waits(fence(true), 105, 107);
  waits(fence(false), 108, 111);
  const EpochSum sum = only(EpochKind::fence);
  EXPECT_EQ(sum.epochs, 2);
  EXPECT_EQ(sum.open_s, (107 - 101) + (111 - 107));
  EXPECT_EQ(sum.longest_s, 6);
  EXPECT_EQ(sum.blocked_s, 1 + 2 + 3);
}

TEST_F(Epochs, SH1_AnExposureIsBlockedWhileItIsPolledWithoutPauseInOneOperation) {
  const EpochCall post{first_, EpochKind::exposure, -1, false, true};
  const EpochCall not_yet{first_, EpochKind::exposure}, done{first_, EpochKind::exposure, -1, true};
  starts(post, 101);
  polls(not_yet, 102, 102.5, 1);  // progress during another operation
  polls(not_yet, 110, 110.5, 2);
  polls(not_yet, 112, 112.5, 2);
  polls(done, 115, 116, 2);
  const EpochSum sum = only(EpochKind::exposure);
  EXPECT_EQ(sum.open_s, 15);
  EXPECT_EQ(sum.blocked_s, 0.5 + (116 - 110));
}

TEST_F(Epochs, SH1_LocksOfTwoTargetsAreTwoEpochsAndAFlushBelongsToItsTarget) {
  const auto lock = [&](int target) { return EpochCall{first_, EpochKind::lock, target, false, true}; };
  const auto unlock = [&](int target) { return EpochCall{first_, EpochKind::lock, target, true}; };
  waits(lock(1), 101, 101);
  waits(lock(2), 102, 102);
  waits(operation(2), 103, 106);  // a flush
  waits(unlock(1), 107, 107);
  waits(unlock(2), 108, 108);
  const EpochSum sum = only(EpochKind::lock);
  EXPECT_EQ(sum.epochs, 2);
  EXPECT_EQ(log_.spans().at(0).blocked_s, 0);
  EXPECT_EQ(log_.spans().at(1).blocked_s, 3);
}

TEST_F(Epochs, SH1_AnEpochToAllRanksThatWasOpenBeforeLastsFromTheStartToTheEnd) {
  waits(operation(1), 103, 104);
  waits(operation(1), 106, 108);
  log_.stop(120, 7);
  const EpochSum sum = only(EpochKind::lock_all);
  EXPECT_EQ(sum.epochs, 1);
  EXPECT_EQ(sum.open_s, 20);
  EXPECT_EQ(sum.blocked_s, 3);
  EXPECT_EQ(log_.spans().at(0).step, 7);
}

TEST_F(Epochs, SH1_EpochsOfTwoWindowsAndOfAccessAndExposureAreSeparate) {
  const auto call = [&](MPI_Win window, EpochKind kind, bool opens) {
    return EpochCall{window, kind, -1, !opens, opens};
  };
  starts(call(first_, EpochKind::exposure, true), 101);
  waits(call(first_, EpochKind::access, true), 102, 104);
  waits(call(second_, EpochKind::access, true), 104, 104);
  starts(operation(1), 104);
  waits(call(first_, EpochKind::access, false), 105, 106);
  waits(call(second_, EpochKind::access, false), 107, 107);
  waits(call(first_, EpochKind::exposure, false), 108, 110);
  const auto sums = log_.sums();
  ASSERT_EQ(sums.size(), 2u);
  EXPECT_EQ(sums[0].kind, EpochKind::access);
  EXPECT_EQ(sums[0].epochs, 2);
  EXPECT_EQ(sums[0].open_s, 4 + 3);
  EXPECT_EQ(sums[0].blocked_s, 2 + 1);
  EXPECT_EQ(sums[1].open_s, 9);
  EXPECT_EQ(sums[1].blocked_s, 2);
}

TEST_F(Epochs, SH1_AnExposureThatEndsBeforeItsBeginWasSeenIsNotCounted) {
  polls({first_, EpochKind::exposure}, 101, 102);
  waits({first_, EpochKind::exposure, -1, true}, 103, 104);
  waits(fence(false), 105, 106);
  log_.stop(110, 0);
  EXPECT_TRUE(log_.sums().empty());
}

TEST_F(Epochs, SH1_EpochsBeyondTheRoomOfATraceAreCounted) {
  EpochLog small{1};
  small.start(0);
  for (double at = 1; at < 4; ++at) small.note(fence(true), {.begin_s = at, .end_s = at, .waits = true});
  EXPECT_EQ(small.spans().size(), 1u);
  EXPECT_EQ(small.sums().at(0).epochs, 2);
}

}  // namespace
}  // namespace haloscope
