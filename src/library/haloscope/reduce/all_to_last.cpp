// Reductions by messages to the last rank, the study's first scheme: every rank sends its numbers to the last one,
// which becomes the bottleneck.
#include <algorithm>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/reduce/mail.hpp"
#include "haloscope/reduce/reducer.hpp"

namespace haloscope {
namespace {

class AllToLast final : public PipelineReducer {
 public:
  explicit AllToLast(const PipelineContext& context) : context_(context), mine_(context.numbers), other_(mine_) {
    CHECK_MPI(MPI_Comm_rank(context.comm, &rank_));
    CHECK_MPI(MPI_Comm_size(context.comm, &size_));
    // A rank is at most 2 (P - 1) steps ahead of the last one.
    if (rank_ + 1 < size_)
      last_ = std::make_unique<Outbox>(context.comm, size_ - 1, 0, 2 * size_, context.yield, context.numbers);
  }
  void contribute(std::span<const double> mine) override {
    mine_.assign(mine.begin(), mine.end());
    if (last_) last_->send(mine_);
  }
  void collect(std::span<double> into) override {
    std::copy(mine_.begin(), mine_.end(), into.begin());
    for (int r = 0; r + 1 < size_; ++r) {
      receive(context_.comm, r, 0, context_.yield, other_);
      for (std::size_t i = 0; i < into.size(); ++i) into[i] = combined(context_.op, into[i], other_[i]);
    }
  }
  void close() override {
    if (last_) last_->finish();
  }

 private:
  PipelineContext context_;
  int rank_ = 0, size_ = 1;
  std::unique_ptr<Outbox> last_;
  std::vector<double> mine_, other_;
};

}  // namespace

std::unique_ptr<PipelineReducer> open_all_to_last(const PipelineContext& context) {
  return std::make_unique<AllToLast>(context);
}

}  // namespace haloscope
