#include "haloscope/model/device_op_costs.hpp"

#include <algorithm>

namespace haloscope::model {

namespace {

Term term_of(OpKind kind, bool to_device) {
  switch (kind) {
    case OpKind::pack:
    case OpKind::gather:
      return Term::pack;
    case OpKind::unpack:
    case OpKind::scatter:
      return Term::unpack;
    case OpKind::copy:
      return Term::copy;
    default:
      return to_device ? Term::h2d : Term::d2h;
  }
}

bool is_copy_engine(OpKind kind) { return kind == OpKind::d2h || kind == OpKind::h2d || kind == OpKind::transfer; }

}  // namespace

DeviceOpCosts::DeviceOpCosts(const StageProgram& of, const DeviceUnitCosts& prices,
                             const std::vector<std::string>& kernels, double sharing)
    : of_(of), prices_(prices), kernels_(kernels), sharing_(sharing) {
  int together = 1;  // operations that are enqueued together
  if (prices.capture)
    together = static_cast<int>(
        std::count_if(of.program->ops.begin(), of.program->ops.end(), [](const Op& op) { return on_device(op.lane); }));
  hand_s_ = prices.hand_s / std::max(1, together);
}

TimedOp DeviceOpCosts::price(const Op& op) const {
  const double time = seconds(op);
  TimedOp action;
  action.lane = op.lane;
  action.after.assign(op.after.begin(), op.after.end());
  action.hand_s = hand_s_;
  if (op.kind == OpKind::sweep) {
    action.deed = Deed::sweep;
    action.sweep = {op.lane == Lane::sweep_stream ? time / (1 - prices_.conflict) : time, time, time};
    return action;
  }
  action.copying = is_copy_engine(op.kind);
  action.parts.add(term_of(op.kind, to_device(op)), time);
  return action;
}

double DeviceOpCosts::seconds(const Op& op) const {
  switch (op.kind) {
    case OpKind::sweep:
      return sweep_s(op);
    case OpKind::pack:
      return pack_s(op);
    case OpKind::unpack:
      return unpack_s(op);
    case OpKind::copy:
      return copy_s(op);
    case OpKind::d2h:
    case OpKind::h2d:
      return prices_.copy(to_device(op), moved(op).bytes(), sharing_);
    case OpKind::transfer:
      return prices_.copy(to_device(op), ring(op.target).first, sharing_);
    case OpKind::gather:
    case OpKind::scatter: {
      const auto [bytes, run_bytes] = ring(op.target);
      return prices_.pack(bytes, run_bytes, sharing_);
    }
    default:
      return 0;
  }
}

/// One launch of one or several time steps. A launch that also packs and unpacks faces takes as long as sweeping,
/// packing and unpacking separately, without the additional launches.
double DeviceOpCosts::sweep_s(const Op& op) const {
  const Sweep& sweep = of_.program->sweeps[static_cast<std::size_t>(op.target)];
  const std::string& kernel = kernels_[static_cast<std::size_t>(sweep.number)];
  if (!sweep.faces) return prices_.sweep(kernel, sweep.region, sweep.levels, sharing_);
  const Box& widest = sweep.twin.volume() > sweep.region.volume() ? sweep.twin : sweep.region;
  const auto cells_of = [](const Sweep& s) { return static_cast<double>(s.cells()); };
  const double row = static_cast<double>(widest.extent(0)) * prices_.element_bytes;
  const double cells = touched_bytes(cells_of(sweep) * prices_.element_bytes, row) / prices_.element_bytes;
  double all = 0, bytes = 0;
  for (const Sweep& s : of_.program->sweeps) all += s.faces ? cells_of(s) : 0.0;
  for (const Traffic& t : of_.traffic)
    if (!t.passes_on)
      bytes +=
          static_cast<double>(t.bytes) + touched_bytes(static_cast<double>(t.bytes), static_cast<double>(t.run_bytes));
  return prices_.faces(kernel, cells, cells_of(sweep) / std::max(1.0, all) * bytes, sharing_);
}

/// All messages of a set in one launch; messages that sweeps have packed already cost nothing.
double DeviceOpCosts::pack_s(const Op& op) const {
  if (prices_.in_parts) return prices_.pack_parts(moved(op), sharing_);
  const std::vector<int>& ids = of_.program->sets[static_cast<std::size_t>(op.target)];
  const bool passes_on =
      std::any_of(ids.begin(), ids.end(), [&](int id) { return of_.traffic[static_cast<std::size_t>(id)].passes_on; });
  return of_.program->packs_in_sweeps() && !passes_on ? 0.0 : unpack_s(op);
}

/// All messages of a set in one launch, or by the kernel that has packed.
double DeviceOpCosts::unpack_s(const Op& op) const {
  const Moved messages = moved(op);
  if (prices_.in_parts) return prices_.unpack_parts(messages, sharing_);
  return prices_.pack(messages.bytes(), messages.run_bytes, sharing_);
}

/// Halos from the rank itself: from one side of the block to the other, so strided at both ends.
double DeviceOpCosts::copy_s(const Op& op) const {
  double bytes = 0;
  for (const Traffic& part : of_.copies[static_cast<std::size_t>(op.target)])
    bytes += touched_bytes(static_cast<double>(part.bytes), static_cast<double>(part.run_bytes));
  return prices_.pack(bytes, sector_bytes, sharing_);
}

bool DeviceOpCosts::to_device(const Op& op) const {
  if (op.kind == OpKind::transfer) return of_.program->rings[static_cast<std::size_t>(op.target)].to_device;
  return op.kind == OpKind::h2d;
}

Moved DeviceOpCosts::moved(const Op& op) const {
  Moved found;
  double rows = 0;
  for (const int m : of_.program->sets[static_cast<std::size_t>(op.target)]) {
    const Traffic& t = of_.traffic[static_cast<std::size_t>(m)];
    found.sizes.push_back(static_cast<double>(t.bytes));
    rows += static_cast<double>(t.bytes) / static_cast<double>(t.run_bytes);
  }
  found.run_bytes = found.bytes() / std::max(rows, 1.0);
  return found;
}

std::pair<double, double> DeviceOpCosts::ring(int number) const {
  double cells = 0, rows = 0;
  for (const Box& box : of_.program->rings[static_cast<std::size_t>(number)].boxes)
    if (!box.empty()) {
      cells += static_cast<double>(box.volume());
      rows += static_cast<double>(box.volume() / box.extent(0));
    }
  const double bytes = cells * prices_.element_bytes;
  return {bytes, bytes / std::max(1.0, rows)};
}

}  // namespace haloscope::model
