// Reductions by a chain of one-sided communication with general active target synchronisation: no messages.
#include <sched.h>

#include <algorithm>
#include <array>

#include "haloscope/comm/handles.hpp"
#include "haloscope/comm/window_memory.hpp"
#include "haloscope/extend/agree.hpp"
#include "haloscope/reduce/reducer.hpp"

namespace haloscope {
namespace {

/// A reducer by a chain of windows. Two windows take turns: a rank may then be as far ahead of the next one as the
/// pipeline allows, without waiting until the next one has read the previous number.
class ChainPscw final : public PipelineReducer {
 public:
  explicit ChainPscw(const PipelineContext& context)
      : yield_(context.yield),
        rank_(rank_in(context.comm)),
        size_(ranks_in(context.comm)),
        op_(context.op),
        numbers_(context.numbers),
        result_(context.numbers) {
    MPI_Comm comm = context.comm;
    require_windows_apart(comm);
    if (has_before()) before_ = group_of(comm, std::array{rank_ - 1});
    if (has_next()) next_ = group_of(comm, std::array{rank_ + 1});
    OwnedInfo info;
    CHECK_MPI(MPI_Info_create(info.address()));
    CHECK_MPI(MPI_Info_set(info.get(), "no_locks", "true"));
    const std::size_t bytes = static_cast<std::size_t>(numbers_) * sizeof(double);
    require_window_memory(comm, places_.size() * bytes);
    for (Place& place : places_) {
      allocate_window(comm, bytes, sizeof(double), info.get(), &place.value, place.window.address());
      if (has_before()) CHECK_MPI(MPI_Win_post(before_.get(), 0, place.window.get()));
    }
  }

  void contribute(std::span<const double> mine) override {
    Place& place = places_[turn_];
    turn_ = 1 - turn_;
    result_.assign(mine.begin(), mine.end());
    if (has_before()) {
      wait(place.window.get());
      for (std::size_t i = 0; i < result_.size(); ++i) result_[i] = combined(op_, result_[i], place.value[i]);
      REQUIRE_MPI(MPI_Win_post(before_.get(), 0, place.window.get()));
    }
    if (!has_next()) return;
    REQUIRE_MPI(MPI_Win_start(next_.get(), 0, place.window.get()));
    REQUIRE_MPI(MPI_Put(result_.data(), numbers_, MPI_DOUBLE, rank_ + 1, 0, numbers_, MPI_DOUBLE, place.window.get()));
    REQUIRE_MPI(MPI_Win_complete(place.window.get()));
  }
  void collect(std::span<double> into) override { std::copy(result_.begin(), result_.end(), into.begin()); }

  /// Ends exposures for iterations that do not come, with accesses that transfer nothing.
  void close() override {
    for (int i = 0; i < 2; ++i, turn_ = 1 - turn_) {
      Place& place = places_[turn_];
      if (has_next()) REQUIRE_MPI(MPI_Win_start(next_.get(), 0, place.window.get()));
      if (has_next()) REQUIRE_MPI(MPI_Win_complete(place.window.get()));
      if (has_before()) wait(place.window.get());
    }
  }

 private:
  struct Place {
    OwnedWin window;
    double* value = nullptr;
  };
  bool has_before() const { return rank_ > 0; }
  bool has_next() const { return rank_ + 1 < size_; }
  void wait(MPI_Win window) const {
    if (!yield_) {
      REQUIRE_MPI(MPI_Win_wait(window));
      return;
    }
    int done = 0;
    for (REQUIRE_MPI(MPI_Win_test(window, &done)); !done; REQUIRE_MPI(MPI_Win_test(window, &done))) sched_yield();
  }

  bool yield_;
  int rank_, size_, turn_ = 0;
  OwnedGroup before_, next_;
  std::array<Place, 2> places_;
  ReduceOp op_;
  int numbers_;
  std::vector<double> result_;
};

}  // namespace

std::unique_ptr<PipelineReducer> open_chain_pscw(const PipelineContext& context) {
  return std::make_unique<ChainPscw>(context);
}

}  // namespace haloscope
