// Reductions by a chain of messages, the scheme that the study adopted: one message per rank and step, to the next
// rank.
#include <algorithm>

#include "haloscope/extend/agree.hpp"
#include "haloscope/reduce/mail.hpp"
#include "haloscope/reduce/reducer.hpp"

namespace haloscope {
namespace {

class Chain final : public PipelineReducer {
 public:
  explicit Chain(const PipelineContext& context)
      : context_(context), rank_(rank_in(context.comm)), result_(context.numbers), before_(result_) {
    if (rank_ + 1 < ranks_in(context.comm))  // it is 2 behind at most
      next_ = std::make_unique<Outbox>(context.comm, rank_ + 1, 0, 4, context.yield, context.numbers);
  }
  void contribute(std::span<const double> mine) override {
    result_.assign(mine.begin(), mine.end());
    if (rank_ > 0) {
      receive(context_.comm, rank_ - 1, 0, context_.yield, before_);
      for (std::size_t i = 0; i < result_.size(); ++i) result_[i] = combined(context_.op, result_[i], before_[i]);
    }
    if (next_) next_->send(result_);
  }
  void collect(std::span<double> into) override { std::copy(result_.begin(), result_.end(), into.begin()); }
  void close() override {
    if (next_) next_->finish();
  }

 private:
  PipelineContext context_;
  int rank_;
  std::unique_ptr<Outbox> next_;
  std::vector<double> result_, before_;
};

}  // namespace

std::unique_ptr<PipelineReducer> open_chain(const PipelineContext& context) { return std::make_unique<Chain>(context); }

}  // namespace haloscope
