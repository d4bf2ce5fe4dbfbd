// The study's first scheme: every rank sends its residuum to the last one, which becomes the bottleneck.
#include <algorithm>

#include "haloscope/residuum/mail.hpp"
#include "haloscope/residuum/residuum.hpp"

namespace haloscope {
namespace {

class AllToLast final : public PipelineResiduum {
 public:
  AllToLast(MPI_Comm comm, bool yield) : comm_(comm), yield_(yield) {
    MPI_Comm_rank(comm, &rank_);
    MPI_Comm_size(comm, &size_);
    // A rank is at most 2 (P - 1) iterations ahead of the last one.
    if (rank_ + 1 < size_) last_ = std::make_unique<Outbox>(comm, size_ - 1, 0, 2 * size_, yield);
  }
  void contribute(double mine) override {
    mine_ = mine;
    if (last_) last_->send(mine);
  }
  double collect() override {
    double largest = mine_;
    for (int r = 0; r + 1 < size_; ++r) largest = std::max(largest, receive(comm_, r, 0, yield_));
    return largest;
  }
  void close() override {
    if (last_) last_->finish();
  }

 private:
  MPI_Comm comm_;
  bool yield_;
  int rank_ = 0, size_ = 1;
  std::unique_ptr<Outbox> last_;
  double mine_ = 0;
};

}  // namespace

std::unique_ptr<PipelineResiduum> all_to_last_residuum(MPI_Comm comm, bool yield) {
  return std::make_unique<AllToLast>(comm, yield);
}

}  // namespace haloscope
