#include "haloscope/reduce/reducer.hpp"

#include <algorithm>
#include <limits>

#include "haloscope/comm/settle.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"

namespace haloscope {

#define REDUCER(name, word, summary) std::unique_ptr<PipelineReducer> open_##name(const PipelineContext& context);
#include "haloscope/reduce/reducers.def"
#undef REDUCER

double identity_of(ReduceOp op) {
  constexpr double most = std::numeric_limits<double>::infinity();
  return op == ReduceOp::sum ? 0 : op == ReduceOp::max ? -most : most;
}

double combined(ReduceOp op, double a, double b) {
  return op == ReduceOp::sum ? a + b : op == ReduceOp::max ? std::max(a, b) : std::min(a, b);
}

MPI_Op mpi_op(ReduceOp op) { return op == ReduceOp::sum ? MPI_SUM : op == ReduceOp::max ? MPI_MAX : MPI_MIN; }

Partials::Partials(const Reduction& reduction, int threads)
    : op_(reduction.op), stride_((static_cast<std::size_t>(reduction.numbers) + 15) / 16 * 16) {
  reserve(threads);
}

void Partials::reserve(int places) {
  places_ = std::max(places_, places);
  numbers_.resize(stride_ * static_cast<std::size_t>(places_), identity_of(op_));
}

void Partials::take(std::span<double> into) {
  std::fill(into.begin(), into.end(), identity_of(op_));
  for (int place = 0; place < places_; ++place)
    for (std::size_t i = 0; i < into.size(); ++i) {
      double& mine = of(place)[i];
      into[i] = combined(op_, into[i], mine);
      mine = identity_of(op_);
    }
}

Reducer::Reducer(const Reduction& reduction, MPI_Comm comm, int threads, bool yield)
    : op_(reduction.op),
      mode_(reduction.mode),
      collectives_(reduction.collectives),
      comm_(comm),
      yield_(yield),
      partials_(reduction, threads),
      started_(static_cast<std::size_t>(reduction.numbers)),
      done_(started_.size()) {}

void Reducer::start() {
  partials_.take(started_);
  const auto count = static_cast<int>(started_.size());
  if (mode_ != ReduceMode::blocking) {
    MPI_Iallreduce(MPI_IN_PLACE, started_.data(), count, MPI_DOUBLE, mpi_op(op_), comm_, &request_);
    return;
  }
  const int each = count / collectives_;
  for (int first = 0; first < count; first += each)
    MPI_Allreduce(MPI_IN_PLACE, started_.data() + first, each, MPI_DOUBLE, mpi_op(op_), comm_);
  done_ = started_;
  has_numbers_ = true;
}

void Reducer::wait() {
  if (request_ == MPI_REQUEST_NULL) return;
  settle(request_, yield_);
  done_ = started_;
  has_numbers_ = true;
}

void Reducer::drop() {
  if (request_ != MPI_REQUEST_NULL) settle(request_, yield_);
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
