// Residua accumulated (maximum) into 2P slots on the last rank, one per iteration in turn.
#include <mpi.h>

#include "haloscope/residuum/residuum.hpp"

namespace haloscope {
namespace {

/// A rank's contribution is complete at the last rank before it sends its next line, so once a line of iteration k + 1
/// has come down the pipeline, all contributions to iteration k are there. The last rank then takes the slot's value
/// and leaves 0. Nobody is 2P iterations ahead of it (2(P - 1) at most), so the slot is empty when its turn comes
/// again.
class Accumulate final : public PipelineResiduum {
 public:
  Accumulate(MPI_Comm comm, bool) : comm_(comm) {
    int rank = 0, size = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    last_ = size - 1;
    slots_ = 2 * size;
    double* memory = nullptr;
    MPI_Win_allocate(rank == last_ ? static_cast<MPI_Aint>(slots_ * sizeof(double)) : 0, sizeof(double), MPI_INFO_NULL,
                     comm, &memory, &window_);
    if (rank == last_) {  // stores to the own window need an epoch too
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window_);
      for (int s = 0; s < slots_; ++s) memory[s] = 0;
      MPI_Win_unlock(rank, window_);
    }
    MPI_Barrier(comm);
    MPI_Win_lock_all(0, window_);
  }
  ~Accumulate() override {
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
  }
  void contribute(double mine) override {
    MPI_Accumulate(&mine, 1, MPI_DOUBLE, last_, contributed_++ % slots_, 1, MPI_DOUBLE, MPI_MAX, window_);
    MPI_Win_flush(last_, window_);
  }
  double collect() override {
    const double empty = 0;
    double value = 0;
    MPI_Fetch_and_op(&empty, &value, MPI_DOUBLE, last_, collected_++ % slots_, MPI_REPLACE, window_);
    MPI_Win_flush(last_, window_);
    return value;
  }
  bool late() const override { return true; }
  void close() override { MPI_Barrier(comm_); }

 private:
  MPI_Comm comm_;
  MPI_Win window_ = MPI_WIN_NULL;
  int last_ = 0, slots_ = 2;
  std::int64_t contributed_ = 0, collected_ = 0;
};

}  // namespace

std::unique_ptr<PipelineResiduum> accumulate_residuum(MPI_Comm comm, bool yield) {
  return std::make_unique<Accumulate>(comm, yield);
}

}  // namespace haloscope
