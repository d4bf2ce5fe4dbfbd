// Reductions by messages to the last rank, the study's first scheme: every rank sends its numbers to the last one,
// which becomes the bottleneck.
#include <algorithm>

#include "haloscope/extend/agree.hpp"
#include "haloscope/reduce/mail.hpp"
#include "haloscope/reduce/reducer.hpp"

namespace haloscope {
namespace {

class AllToLast final : public PipelineReducer {
 public:
  explicit AllToLast(const PipelineContext& context)
      : context_(context), size_(ranks_in(context.comm)), mine_(context.numbers), other_(mine_) {
    // A rank is at most 2 (P - 1) steps ahead of the last one.
    if (rank_in(context.comm) + 1 < size_)
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
  int size_;
  std::unique_ptr<Outbox> last_;
  std::vector<double> mine_, other_;
};

}  // namespace

std::unique_ptr<PipelineReducer> open_all_to_last(const PipelineContext& context) {
  return std::make_unique<AllToLast>(context);
}

}  // namespace haloscope
