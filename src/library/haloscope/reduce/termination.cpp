#include "haloscope/reduce/termination.hpp"

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/extend/agree.hpp"

namespace haloscope {

namespace {
constexpr int answer_tag = 1, announcement_tag = 2;
}

Termination::Termination(MPI_Comm comm, std::int64_t limit, bool yield)
    : comm_(comm), yield_(yield), rank_(rank_in(comm)), size_(ranks_in(comm)), limit_(limit) {
  if (last() && !first()) answer_ = std::make_unique<Outbox>(comm, 0, answer_tag, margin() + 2, yield);
  if (!first()) CHECK_MPI(MPI_Irecv(&announcement_, 1, MPI_DOUBLE, 0, announcement_tag, comm, &incoming_request_));
}

void Termination::decide(bool enough) {
  if (first())
    take_answer(enough);
  else
    answer_->send(enough);
}

void Termination::take_answer(double answer) {
  ++answers_;
  enough_ = enough_ || answer != 0;
}

/// Receives the next answer; without `wait` only if it has arrived already. @return true if one was received.
bool Termination::next_answer(bool wait) {
  if (incoming_request_ == MPI_REQUEST_NULL)
    REQUIRE_MPI(MPI_Irecv(&incoming_, 1, MPI_DOUBLE, size_ - 1, answer_tag, comm_, &incoming_request_));
  int arrived = 1;
  if (wait)
    settle(incoming_request_, yield_);
  else
    REQUIRE_MPI(MPI_Test(&incoming_request_, &arrived, MPI_STATUS_IGNORE));
  if (arrived) take_answer(incoming_);
  return arrived != 0;
}

bool Termination::finished(std::int64_t done) {
  if (!last())
    while (answers_ < done)
      if (!next_answer(answers_ < done - margin())) break;
  if (!enough_ && done < limit_) return false;
  announcement_ = static_cast<double>(done);
  for (int r = 1; r < size_; ++r) REQUIRE_MPI(MPI_Send(&announcement_, 1, MPI_DOUBLE, r, announcement_tag, comm_));
  return true;
}

bool Termination::announced(std::int64_t done) {
  if (incoming_request_ != MPI_REQUEST_NULL) {
    int arrived = 0;
    REQUIRE_MPI(MPI_Test(&incoming_request_, &arrived, MPI_STATUS_IGNORE));
    if (!arrived) return false;
  }
  return announcement_ == static_cast<double>(done);
}

void Termination::close(std::int64_t done) {
  if (first() && !last())
    while (answers_ < done) next_answer(true);
  if (answer_) answer_->finish();
  if (!first()) settle(incoming_request_, yield_);
}

}  // namespace haloscope
