// Reductions by MPI_Accumulate into 2P slots on the last rank, which steps use in turn.
#include <mpi.h>

#include "haloscope/comm/handles.hpp"
#include "haloscope/comm/window_memory.hpp"
#include "haloscope/core/combine.hpp"
#include "haloscope/extend/agree.hpp"
#include "haloscope/reduce/keys.hpp"
#include "haloscope/reduce/reducer.hpp"

namespace haloscope {
namespace {

/// A reducer by shared sums. A rank's contribution is complete at the last rank before it sends its next line, so
/// once a line of step k + 1 has come down the pipeline, all contributions to step k have arrived. The last rank then
/// reads the slot's numbers and clears the slot. All ranks are fewer than 2P steps ahead of it (2(P - 1) at most), so
/// the slot is empty when it is used again.
class Accumulate final : public PipelineReducer {
 public:
  explicit Accumulate(const PipelineContext& context)
      : comm_(context.comm),
        op_(context.op),
        numbers_(context.numbers),
        last_(ranks_in(comm_) - 1),
        slots_(2 * ranks_in(comm_)),
        empty_(static_cast<std::size_t>(context.numbers), identity_of(context.op)),
        keys_(empty_) {
    to_keys(op_, empty_);
    require_windows_apart(comm_);
    const int rank = rank_in(comm_), all = slots_ * numbers_;
    double* memory = nullptr;
    const std::size_t bytes = rank == last_ ? static_cast<std::size_t>(all) * sizeof(double) : 0;
    require_window_memory(comm_, bytes);
    allocate_window(comm_, bytes, sizeof(double), MPI_INFO_NULL, &memory, window_.address());
    if (rank == last_) {  // stores to the rank's window need an epoch too
      CHECK_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window_.get()));
      for (int s = 0; s < all; ++s) memory[s] = empty_[0];
      CHECK_MPI(MPI_Win_unlock(rank, window_.get()));
    }
    CHECK_MPI(MPI_Barrier(comm_));
    CHECK_MPI(MPI_Win_lock_all(0, window_.get()));
  }
  ~Accumulate() override {
    const WaitInsideMpi end("the end of a pipeline");
    REQUIRE_MPI(MPI_Win_unlock_all(window_.get()));
    require_company(comm_);
  }
  void contribute(std::span<const double> mine) override {
    const MPI_Aint at = contributed_++ % slots_ * numbers_;
    std::copy(mine.begin(), mine.end(), keys_.begin());
    to_keys(op_, keys_);
    REQUIRE_MPI(MPI_Accumulate(keys_.data(), numbers_, mpi_type(op_), last_, at, numbers_, mpi_type(op_), mpi_op(op_),
                               window_.get()));
    REQUIRE_MPI(MPI_Win_flush(last_, window_.get()));
  }
  void collect(std::span<double> into) override {
    const MPI_Aint at = collected_++ % slots_ * numbers_;
    const MPI_Datatype type = mpi_type(op_);
    REQUIRE_MPI(MPI_Get_accumulate(empty_.data(), numbers_, type, into.data(), numbers_, type, last_, at, numbers_,
                                   type, MPI_REPLACE, window_.get()));
    REQUIRE_MPI(MPI_Win_flush(last_, window_.get()));
    from_keys(op_, into);
  }
  bool late() const override { return true; }
  void close() override { REQUIRE_MPI(MPI_Barrier(comm_)); }

 private:
  MPI_Comm comm_;
  ReduceOp op_;
  int numbers_, last_, slots_;
  std::vector<double> empty_, keys_;  // in the form of to_keys()
  OwnedWin window_;
  std::int64_t contributed_ = 0, collected_ = 0;
};

}  // namespace

std::unique_ptr<PipelineReducer> open_accumulate(const PipelineContext& context) {
  return std::make_unique<Accumulate>(context);
}

}  // namespace haloscope
