// The chain carried by one-sided communication with general active target synchronisation: no message of its own.
#include <sched.h>

#include <algorithm>
#include <array>

#include "haloscope/residuum/residuum.hpp"

namespace haloscope {
namespace {

/// Two windows take turns: a rank may then be as far ahead of the next one as the pipeline lets it be, and is not held
/// up until the next one has taken the number before.
class ChainPscw final : public PipelineResiduum {
 public:
  ChainPscw(MPI_Comm comm, bool yield) : yield_(yield) {
    MPI_Comm_rank(comm, &rank_);
    MPI_Comm_size(comm, &size_);
    MPI_Group all;
    MPI_Comm_group(comm, &all);
    const int before = rank_ - 1, next = rank_ + 1;
    if (has_before()) MPI_Group_incl(all, 1, &before, &before_);
    if (has_next()) MPI_Group_incl(all, 1, &next, &next_);
    MPI_Group_free(&all);
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "no_locks", "true");
    for (Place& place : places_) {
      MPI_Win_allocate(sizeof(double), sizeof(double), info, comm, &place.value, &place.window);
      if (has_before()) MPI_Win_post(before_, 0, place.window);
    }
    MPI_Info_free(&info);
  }
  ~ChainPscw() override {
    for (Place& place : places_) MPI_Win_free(&place.window);
    if (has_before()) MPI_Group_free(&before_);
    if (has_next()) MPI_Group_free(&next_);
  }

  void contribute(double mine) override {
    Place& place = places_[turn_];
    turn_ = 1 - turn_;
    largest_ = mine;
    if (has_before()) {
      wait(place.window);
      largest_ = std::max(mine, *place.value);
      MPI_Win_post(before_, 0, place.window);
    }
    if (!has_next()) return;
    MPI_Win_start(next_, 0, place.window);
    MPI_Put(&largest_, 1, MPI_DOUBLE, rank_ + 1, 0, 1, MPI_DOUBLE, place.window);
    MPI_Win_complete(place.window);
  }
  double collect() override { return largest_; }

  /// Exposures for iterations that do not come end with accesses that transfer nothing.
  void close() override {
    for (int i = 0; i < 2; ++i, turn_ = 1 - turn_) {
      Place& place = places_[turn_];
      if (has_next()) MPI_Win_start(next_, 0, place.window);
      if (has_next()) MPI_Win_complete(place.window);
      if (has_before()) wait(place.window);
    }
  }

 private:
  struct Place {
    MPI_Win window = MPI_WIN_NULL;
    double* value = nullptr;
  };
  bool has_before() const { return rank_ > 0; }
  bool has_next() const { return rank_ + 1 < size_; }
  void wait(MPI_Win window) const {
    if (!yield_) {
      MPI_Win_wait(window);
      return;
    }
    int done = 0;
    for (MPI_Win_test(window, &done); !done; MPI_Win_test(window, &done)) sched_yield();
  }

  bool yield_;
  int rank_ = 0, size_ = 1, turn_ = 0;
  MPI_Group before_ = MPI_GROUP_NULL, next_ = MPI_GROUP_NULL;
  std::array<Place, 2> places_;
  double largest_ = 0;
};

}  // namespace

std::unique_ptr<PipelineResiduum> chain_pscw_residuum(MPI_Comm comm, bool yield) {
  return std::make_unique<ChainPscw>(comm, yield);
}

}  // namespace haloscope
