#include "haloscope/rank/measure/pipeline.hpp"

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/settle.hpp"

namespace haloscope {

Pipeline::Pipeline(Run& run) : run_(run), stage_(run.stage(0)), counted_(run.stage(0)) {
  for (int n = 0; n < 3; ++n) comms_.push_back(duplicate(run.comm_.get()));
}

Pipeline::~Pipeline() {
  if (std::uncaught_exceptions() > run_.exceptions_)  // other ranks may never answer
    for (OwnedComm& comm : comms_) comm.release();
}

void Pipeline::open() { stage_.run(run_.loop_->at.slot, run_.loop_->at.time, Series::opening); }
void Pipeline::enter() { stage_.run(run_.loop_->at.slot, run_.loop_->at.time, Series::entry); }
void Pipeline::step() {
  stage_.run(run_.loop_->at.slot, run_.loop_->at.time, 1, false);
  ++run_.loop_->at.time;
}
void Pipeline::close() { stage_.run(run_.loop_->at.slot, run_.loop_->at.time, Series::closing); }

Progress Pipeline::advance(std::int64_t steps) {
  if (run_.poisons_) run_.poison_->write(stage_.number(), run_.loop_->at.slot);
  if (!run_.ends_early()) {
    counted_.advance(run_.loop_->at, steps);
    return {steps, false};
  }
  const Progress progress = until_enough(steps);
  stage_.divert_reductions(nullptr, nullptr);
  return progress;
}

void Pipeline::contribute(void* context, int reduction) { static_cast<Pipeline*>(context)->take_numbers(reduction); }

void Pipeline::take_numbers(int reduction) {
  stage_.reducer(reduction).take(mine_);
  reducer_->contribute(mine_);
}

/// Rank 0 stops all others; see Termination.
Progress Pipeline::until_enough(std::int64_t steps) {
  const Reduction& reduction = stage_.stage().reductions.front();
  const bool yield = run_.options_.yield;
  mine_.resize(static_cast<std::size_t>(reduction.numbers));
  const auto reducer =
      open_pipeline_reducer(reduction.scheme, {comms_[1].get(), reduction.op, reduction.numbers, yield});
  reducer_ = reducer.get();
  stage_.divert_reductions(&Pipeline::contribute, this);
  Termination termination(comms_[2].get(), steps, yield);
  std::vector<double> last(mine_.size());
  const auto is_enough = [&] { return run_.candidate_.app.finished(run_.candidate_.problem, -1, last, {}); };
  const auto decide = [&] {
    reducer->collect(last);
    termination.decide(is_enough());
  };
  struct Stop {
    Termination& termination;
    std::int64_t done = 0;
  } stop{termination};
  const auto must_stop = [](void* context) {
    const auto& at = *static_cast<Stop*>(context);
    return at.termination.announced(at.done);
  };
  open();
  for (;; ++stop.done) {
    if (termination.first() ? termination.finished(stop.done)
                            : !stage_.enter(run_.loop_->at.slot, run_.loop_->at.time, must_stop, &stop))
      break;
    if (termination.first()) enter();
    if (termination.last() && reducer->late() && stop.done > 0) decide();
    step();
    if (termination.last() && !reducer->late()) decide();
  }
  // Closing sends lines too: no rank may mistake one for the first line of a step that will not come.
  MPI_Request all_know;
  REQUIRE_MPI(MPI_Ibarrier(comms_[0].get(), &all_know));
  settle(all_know, yield);
  close();
  reducer->close();
  if (termination.last() && reducer->late()) decide();
  termination.close(stop.done);
  REQUIRE_MPI(
      MPI_Bcast(last.data(), static_cast<int>(last.size()), MPI_DOUBLE, run_.choice_.ranks - 1, comms_[0].get()));
  stage_.reducer(0).set(last);
  return {stop.done, is_enough()};
}

}  // namespace haloscope
