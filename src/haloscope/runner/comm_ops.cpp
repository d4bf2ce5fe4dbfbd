#include "haloscope/runner/comm_ops.hpp"

#include <sched.h>

#include "haloscope/pack/region_copy.hpp"

namespace haloscope {

CommOps::CommOps(const Program& program, const Views& views, Link& link, MPI_Comm comm, bool yield)
    : program_(program), link_(link), comm_(comm), yield_(yield) {
  const int slots = views.empty() ? 0 : static_cast<int>(views.front().size());
  for (const auto& set : program.copy_sets) {
    copies_.emplace_back();
    for (int slot = 0; slot < slots; ++slot) copies_.back().push_back(make_copies(views, slot, set));
  }
}

void CommOps::run(const Op& op, int slot) {
  switch (op.kind) {
    case OpKind::barrier: {
      if (!yield_) {
        MPI_Barrier(comm_);
        break;
      }
      MPI_Request request;
      MPI_Ibarrier(comm_, &request);
      for (int done = 0; !done; sched_yield()) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      break;
    }
    case OpKind::post: link_.post(ids(op), slot); break;
    case OpKind::copy: copies_[op.target][slot].run(); break;
    case OpKind::pack: link_.pack(ids(op), slot, {}); break;
    case OpKind::send: link_.send(ids(op), slot); break;
    case OpKind::wait: link_.wait(ids(op), slot); break;
    case OpKind::unpack: link_.unpack(ids(op), slot, {}); break;
    case OpKind::complete: link_.complete(ids(op), slot); break;
    case OpKind::sweep:
    case OpKind::progress: break;  // main lane
  }
}

bool CommOps::try_run(const Op& op, int slot) {
  if (op.kind == OpKind::barrier) return false;
  if (op.kind == OpKind::wait) return link_.test(ids(op), slot);
  if (op.kind == OpKind::complete) return link_.test_complete(ids(op), slot);
  run(op, slot);
  return true;
}

int CommOps::awaited(const Op& op, int slot) const {
  if (op.kind != OpKind::wait && op.kind != OpKind::complete) return -1;
  return link_.waiting_for(ids(op), slot);
}

}  // namespace haloscope
