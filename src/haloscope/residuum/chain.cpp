// The adopted scheme of the study: one message per rank and iteration, to the next rank.
#include <algorithm>

#include "haloscope/residuum/mail.hpp"
#include "haloscope/residuum/residuum.hpp"

namespace haloscope {
namespace {

class Chain final : public PipelineResiduum {
 public:
  Chain(MPI_Comm comm, bool yield) : comm_(comm), yield_(yield) {
    MPI_Comm_rank(comm, &rank_);
    MPI_Comm_size(comm, &size_);
    if (rank_ + 1 < size_) next_ = std::make_unique<Outbox>(comm, rank_ + 1, 0, 4, yield);  // it is 2 behind at most
  }
  void contribute(double mine) override {
    largest_ = rank_ > 0 ? std::max(mine, receive(comm_, rank_ - 1, 0, yield_)) : mine;
    if (next_) next_->send(largest_);
  }
  double collect() override { return largest_; }
  void close() override {
    if (next_) next_->finish();
  }

 private:
  MPI_Comm comm_;
  bool yield_;
  int rank_ = 0, size_ = 1;
  std::unique_ptr<Outbox> next_;
  double largest_ = 0;
};

}  // namespace

std::unique_ptr<PipelineResiduum> chain_residuum(MPI_Comm comm, bool yield) {
  return std::make_unique<Chain>(comm, yield);
}

}  // namespace haloscope
