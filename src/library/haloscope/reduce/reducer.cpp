#include "haloscope/reduce/reducer.hpp"

#include <algorithm>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/patience.hpp"
#include "haloscope/comm/settle.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"
#include "haloscope/reduce/keys.hpp"

namespace haloscope {

#define REDUCER(name, word, summary) std::unique_ptr<PipelineReducer> open_##name(const PipelineContext& context);
#include "haloscope/reduce/reducers.def"
#undef REDUCER

constexpr const char* in_reduction = "a reduction of the step";

std::size_t Partials::add(const Reduction& reduction) {
  const std::size_t first = ops_.size();
  ops_.insert(ops_.end(), static_cast<std::size_t>(reduction.numbers), reduction.op);
  begin_anew();
  return first;
}

void Partials::reserve(int places) {
  places_ = std::max(places_, places);
  begin_anew();
}

void Partials::begin_anew() {
  numbers_.assign(stride() * static_cast<std::size_t>(places_), 0);
  for (int place = 0; place < places_; ++place) std::transform(ops_.begin(), ops_.end(), of(place), identity_of);
}

void Partials::take(std::size_t first, std::span<double> into) {
  for (std::size_t i = 0; i < into.size(); ++i) {
    const ReduceOp op = ops_[first + i];
    into[i] = identity_of(op);
    for (int place = 0; place < places_; ++place) {
      double& mine = of(place)[first + i];
      into[i] = combined(op, into[i], mine);
      mine = identity_of(op);
    }
  }
}

Reducer::Reducer(const Reduction& reduction, Partials& partials, MPI_Comm comm, bool yield)
    : op_(reduction.op),
      mode_(reduction.mode),
      collectives_(reduction.collectives),
      comm_(comm),
      yield_(yield),
      partials_(partials),
      first_(partials.add(reduction)),
      started_(static_cast<std::size_t>(reduction.numbers)),
      done_(started_.size()) {
  if (reduction.by != ReduceBy::reduce) gatherer_.emplace(reduction, comm);
}

void Reducer::start() {
  drop();  // MPI still writes the numbers of a reduction that was not waited for
  take(started_);
  if (!gatherer_) to_keys(op_, started_);
  if (mode_ != ReduceMode::blocking) {
    if (gatherer_)
      gatherer_->start(started_, &request_);
    else
      REQUIRE_MPI(MPI_Iallreduce(MPI_IN_PLACE, started_.data(), static_cast<int>(started_.size()), mpi_type(op_),
                                 mpi_op(op_), comm_, &request_));
    return;
  }
  const WaitInsideMpi waiting(in_reduction);
  if (gatherer_) {
    if (waits_are_watched()) meet(comm_, yield_);  // gathers wait inside MPI
    gatherer_->gather(started_);
  } else {
    reduce();
  }
  done_ = started_;
  has_numbers_ = true;
}

void Reducer::reduce() {
  const auto count = static_cast<int>(started_.size()), each = count / collectives_;
  for (int first = 0; first < count; first += each) {
    double* const numbers = started_.data() + first;
    if (waits_are_watched()) {
      MPI_Request request;
      REQUIRE_MPI(MPI_Iallreduce(MPI_IN_PLACE, numbers, each, mpi_type(op_), mpi_op(op_), comm_, &request));
      settle(request, yield_);
    } else {
      REQUIRE_MPI(MPI_Allreduce(MPI_IN_PLACE, numbers, each, mpi_type(op_), mpi_op(op_), comm_));
    }
  }
  from_keys(op_, started_);
}

void Reducer::settle_started() {
  const WaitInsideMpi waiting(in_reduction);
  settle(request_, yield_);
  gatherer_ ? gatherer_->finish(started_) : from_keys(op_, started_);
}

void Reducer::wait() {
  if (request_ == MPI_REQUEST_NULL) return;
  settle_started();
  done_ = started_;
  has_numbers_ = true;
}

void Reducer::drop() {
  if (request_ != MPI_REQUEST_NULL) settle_started();
}

void Reducer::set(std::span<const double> numbers) {
  std::copy(numbers.begin(), numbers.end(), done_.begin());
  has_numbers_ = true;
}

std::unique_ptr<PipelineReducer> open_pipeline_reducer(const std::string& scheme, const PipelineContext& context) {
  std::vector<std::string> valid;
#define REDUCER(name, word, summary)                                 \
  if (scheme.empty() || scheme == word) return open_##name(context); \
  valid.push_back(word);
#include "haloscope/reduce/reducers.def"
#undef REDUCER
  throw UsageError(unknown_name("reduction scheme of a pipeline", scheme, valid));
}

}  // namespace haloscope
