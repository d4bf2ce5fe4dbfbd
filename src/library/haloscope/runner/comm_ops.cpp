#include "haloscope/runner/comm_ops.hpp"

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/patience.hpp"
#include "haloscope/comm/settle.hpp"
#include "haloscope/extend/agree.hpp"
#include "haloscope/pack/region_copy.hpp"
#include "haloscope/runner/threads.hpp"

namespace haloscope {

namespace {

/// Minimum cache lines per thread for which calling the team pays. A call costs about 2 us (4 us with a stage in
/// between); one thread copies about 300 lines per us. Measured with 2 threads against one: half this number of lines
/// takes 0.9 to 1.7 times as long, this number 0.6 times, four times this number 0.4 to 0.5 times.
constexpr std::int64_t worth_sharing = 512;

int team(std::int64_t lines, int threads) { return lines >= worth_sharing * threads ? threads : 1; }

}  // namespace

/// The wait for the messages of one operation.
class CommOps::Waiting final : public ReportedWait {
 public:
  Waiting(const CommOps& ops, const Op& op, int slot) : ops_(ops), op_(op), slot_(slot) {}

 private:
  std::string describe() const override {
    const int peer = ops_.blocks(op_) ? -1 : ops_.awaited(op_, slot_);
    return (peer < 0 ? "other ranks have" : name_rank(ops_.comm_, peer) + " has") + " not answered in " +
           (ops_.number_ > 0 ? "exchange " + std::to_string(ops_.number_) + " of " : "the exchange of ") + ops_.name_;
  }

  const CommOps& ops_;
  const Op& op_;
  int slot_;
};

CommOps::CommOps(const Program& program, const Views& views, Link& link, MPI_Comm comm, bool yield, std::string name)
    : program_(program), link_(link), comm_(comm), blocks_(link.blocks()), yield_(yield), name_(std::move(name)) {
  const int slots = views.empty() ? 0 : static_cast<int>(views.front().size());
  for (const auto& set : program.copy_sets) {
    copies_.emplace_back();
    for (int slot = 0; slot < slots; ++slot) copies_.back().push_back(make_copies(views, slot, set));
  }
}

void CommOps::follow(int slot, SlotOffsets moved) {
  for (auto& slots : copies_) slots[slot].follow(moved);
}

/// Runs a list of dependent stages, by the team.
void CommOps::copy(const CopyList& list, int threads) const {
  threads = team(list.lines(), threads);
  if (threads == 1) return list.run();
  for (int stage = 0; stage < list.stages(); ++stage)
    on_threads(threads, [&](int part) { list.run_stage(stage, {part, threads}); });
}

/// Runs every share of packing or unpacking: by the team or, for few bytes, by one thread.
template <class Move>
void CommOps::move(const Op& op, int slot, int threads, Move part) const {
  if (threads > 1) threads = team(link_.packing_lines(ids(op), slot), threads);  // a link may change its choice
  if (threads == 1) return part(Share{});
  on_threads(threads, [&](int thread) { part(Share{thread, threads}); });
}

/// Runs a wait, which is reported if it lasts.
template <class Wait>
void CommOps::watch(const Op& op, int slot, Wait wait) const {
  Waiting waiting(*this, op, slot);
  if (!blocks(op)) return wait();
  const Overseen overseen(waiting);
  wait();
}

void CommOps::run(const Op& op, int slot, int threads) {
  switch (op.kind) {
    case OpKind::barrier:
      watch(op, slot, [&] { meet(comm_, yield_); });
      break;
    case OpKind::post:
      link_.post(ids(op), slot);
      break;
    case OpKind::copy:
      copy(copies_[op.target][slot], threads);
      break;
    case OpKind::pack:
      move(op, slot, threads, [&](Share share) { link_.pack(ids(op), slot, share); });
      break;
    case OpKind::send:
      blocks(op) ? watch(op, slot, [&] { link_.send(ids(op), slot); }) : link_.send(ids(op), slot);
      break;
    case OpKind::wait:
      watch(op, slot, [&] { link_.wait(ids(op), slot); });
      break;
    case OpKind::unpack:
      move(op, slot, threads, [&](Share share) { link_.unpack(ids(op), slot, share); });
      break;
    case OpKind::complete:
      watch(op, slot, [&] { link_.complete(ids(op), slot); });
      break;
    case OpKind::sweep:
    case OpKind::progress:
    case OpKind::d2h:
    case OpKind::h2d:
    case OpKind::gather:
    case OpKind::transfer:
    case OpKind::scatter:
    case OpKind::reduce:
    case OpKind::reduced:
      break;  // main lane, streams
  }
}

bool CommOps::try_run(const Op& op, int slot, int threads) {
  if (op.kind == OpKind::barrier) return false;
  if (op.kind == OpKind::wait) return link_.test(ids(op), slot);
  if (op.kind == OpKind::complete) return link_.test_complete(ids(op), slot);
  run(op, slot, threads);
  return true;
}

int CommOps::awaited(const Op& op, int slot) const {
  if (op.kind != OpKind::wait && op.kind != OpKind::complete) return -1;
  return link_.waiting_for(ids(op), slot);
}

}  // namespace haloscope
