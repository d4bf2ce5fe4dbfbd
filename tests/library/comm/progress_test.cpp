// While a rank waits in the library, MPI continues calls of other ranks that depend on it.
#include <gtest/gtest.h>
#include <mpi.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "haloscope/haloscope.hpp"
#include "tori.hpp"
#include "world.hpp"

namespace haloscope {
namespace {

using test::world_rank;
using test::world_size;

/// Memory of rank 0 that rank 1 sends to, or reads by a window, while rank 0 waits for it.
class Reached {
 public:
  Reached() : memory_(bytes, static_cast<char>(world_rank())) {
    MPI_Win_create(memory_.data(), bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window_);
  }
  ~Reached() { MPI_Win_free(&window_); }
  Reached(const Reached&) = delete;
  Reached& operator=(const Reached&) = delete;

  /// Rank 1 is in a call that depends on rank 0 before it does its part of `work`.
  void send_before(const std::function<void()>& work) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (world_rank() == 0) MPI_Irecv(memory_.data(), bytes, MPI_CHAR, 1, tag, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank() == 1) MPI_Send(memory_.data(), bytes, MPI_CHAR, 0, tag, MPI_COMM_WORLD);
    work();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT_EQ(memory_.back(), world_rank() < 2 ? 1 : static_cast<char>(world_rank()));
  }
  void get_before(const std::function<void()>& work) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank() == 1) {
      std::vector<char> got(bytes, 7);
      MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window_);
      MPI_Get(got.data(), bytes, MPI_CHAR, 0, 0, bytes, MPI_CHAR, window_);
      MPI_Win_flush(0, window_);
      EXPECT_NE(got.back(), 7);
      MPI_Win_unlock(0, window_);
    }
    work();
  }

 private:
  static constexpr int tag = 5;
  static constexpr int bytes = 512 << 10;  // large: MPI sends it only once the receiver is in one of its calls

  std::vector<char> memory_;
  MPI_Win window_ = MPI_WIN_NULL;
};

/// Enough exchanges for `auto` to have tried each of its candidates.
int exchanges_to_try(const std::string& strategy) { return Strategy(strategy).transport == "auto" ? 50 : 2; }

/// Exchanges by every strategy, each while rank 1 is in a call that depends on rank 0.
void exchange_by_every_strategy(void (Reached::*call_before)(const std::function<void()>& work)) {
  const auto grid = test::torus(16);
  const Field<double, 2> u{grid, {.halo = 1, .memory = MemoryKind::shared}};
  Reached reached;
  for (const std::string& strategy : test::sampled(strategy_names())) {
    SCOPED_TRACE(strategy);
    test::run_if_available([&] {
      auto halo = make_exchange(grid, {u}, strategy);
      for (int n = 0; n < exchanges_to_try(strategy); ++n) (reached.*call_before)([&] { halo.exchange(); });
    });
  }
}

TEST(MpiProgress, AWaitForHalosLetsMessagesOfTheProgramArrive) {
  if (world_size() < 2 || world_size() > 4) GTEST_SKIP();  // more share cores, and take long
  exchange_by_every_strategy(&Reached::send_before);
}

TEST(MpiProgress, AWaitForHalosLetsOthersReadAWindowOfTheProgram) {
  if (world_size() < 2 || world_size() > 4) GTEST_SKIP();  // more share cores, and take long
  exchange_by_every_strategy(&Reached::get_before);
}

/// An exchange in flight on the same communicator has a message here that the probe must not find.
TEST(MpiProgress, AMessageThatHasArrivedEarlyKeepsNoOtherOneBack) {
  if (world_size() < 2) GTEST_SKIP();
  const auto grid = test::torus(16);
  const Field<double, 2> u{grid, {.halo = 1}}, v{grid, {.halo = 1}};
  auto other = make_exchange(grid, {v}, "direct/p2p");
  Reached reached;
  for (const char* strategy : {"direct/shared:packed", "direct/rma-lockall:flag"}) {
    auto halo = make_exchange(grid, {u}, strategy);
    if (world_rank() != 0) other.start();
    reached.send_before([&] { halo.exchange(); });
    if (world_rank() == 0) other.start();
    other.finish();
  }
}

TEST(MpiProgress, ALoopOverProgressLetsMessagesOfTheProgramArrive) {
  if (world_size() < 2) GTEST_SKIP();
  const auto grid = test::torus(16);
  const Field<double, 2> u{grid, {.halo = 1, .memory = MemoryKind::shared}};
  Reached reached;
  for (const char* strategy : {"direct/shared", "ordered/shared:pull", "direct/shared:packed", "direct/p2p"}) {
    auto halo = make_exchange(grid, {u}, strategy);
    reached.send_before([&] {
      halo.start();
      while (!halo.progress()) continue;
    });
  }
}

TEST(MpiProgress, AnEndWithAnExchangeInFlightLetsMessagesOfTheProgramArrive) {
  if (world_size() < 2) GTEST_SKIP();
  const auto grid = test::torus(16);
  const Field<double, 2> u{grid, {.halo = 1, .memory = MemoryKind::shared}};
  Reached reached;
  for (const char* strategy : {"direct/shared", "direct/shared:packed", "direct/p2p"})
    reached.send_before([&, halo = std::make_shared<Exchange>(make_exchange(grid, {u}, strategy))]() mutable {
      halo->start();
      halo.reset();
    });
}

TEST(MpiProgress, AStepperLetsMessagesOfTheProgramArrive) {
  if (world_size() < 2) GTEST_SKIP();
  const auto grid = test::torus(16);
  const Field<double, 2> u{grid, {.halo = 1, .slots = 2}};
  Reached reached;
  for (const char* schedule : {"bulk", "comm-thread"}) {
    Choice choice{
        .threads = schedule == std::string("bulk") ? 1 : 2, .schedule = schedule, .strategy = "direct/shared:packed"};
    Stepper stepper(grid, {u}, choice, [](const SweepArgs&) {});
    reached.send_before([&] { stepper.run(2); });
  }
}

}  // namespace
}  // namespace haloscope
