#include "haloscope/core/check_order.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <sstream>
#include <utility>

namespace haloscope {

namespace {

/// Memory touched from the start of one operation to the end of another.
struct Access {
  int first, last;
  int slot;
  Box box;
  bool write;
  bool device;  ///< in the memory of a device
};

/// before[a][b]: operation a has finished when b starts, in every legal interleaving.
using Order = std::vector<std::vector<char>>;

/// Direct predecessors of every operation: `after` plus the order of the comm lane and of each stream.
std::vector<std::vector<int>> predecessors(const Program& program) {
  std::vector<std::vector<int>> result(program.ops.size());
  std::map<Lane, int> last;
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    result[i].assign(program.ops[i].after.begin(), program.ops[i].after.end());
    const Lane lane = program.ops[i].lane;
    if (lane == Lane::main) continue;
    if (last.count(lane)) result[i].push_back(last[lane]);
    last[lane] = static_cast<int>(i);
  }
  return result;
}

Order happens_before(const Program& program, const std::vector<int>& sorted) {
  const auto direct = predecessors(program);
  Order before(direct.size(), std::vector<char>(direct.size(), 0));
  for (int b : sorted)
    for (int a : direct[b]) {
      before[a][b] = 1;
      for (std::size_t c = 0; c < direct.size(); ++c)
        if (before[c][a]) before[c][b] = 1;
    }
  return before;
}

/// First and last operations that handle a message, e.g. post..unpack, one pair per time it travels. The second is -1
/// where one is missing.
std::vector<std::pair<int, int>> spans_of(const Program& program, int message, OpKind from, OpKind to) {
  std::vector<std::pair<int, int>> spans;
  std::size_t closed = 0;
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    if (op.kind != from && op.kind != to) continue;
    for (int m : program.sets[op.target]) {
      if (m != message) continue;
      if (op.kind == from)
        spans.emplace_back(static_cast<int>(i), -1);
      else if (closed < spans.size())
        spans[closed++].second = static_cast<int>(i);
      else
        return {};  // the end comes before the beginning
    }
  }
  return spans;
}

Box reach(const Box& box, const Stage& stage, int levels, int dims) {
  Widths w{0, 0, 0};
  for (int d = 0; d < dims; ++d) w[d] = levels * stage.radius;
  return grown(box, w, w);
}

/// Memory touched by messages: from post to unpack, and from pack to complete; on a device, where messages have buffers
/// of their own, by unpack and pack alone; not at all by those that sweeps read where they have arrived. Says which
/// message is not handled.
std::string message_accesses(const Plan& plan, const Program& program, std::vector<Access>& list) {
  const OpKind taken = program.packs_in_sweeps() ? OpKind::wait : OpKind::unpack;
  for (std::size_t m = 0; m < plan.messages.size(); ++m) {
    const Message& message = plan.messages[m];
    const auto spans = message.out ? spans_of(program, static_cast<int>(m), OpKind::pack, OpKind::complete)
                                   : spans_of(program, static_cast<int>(m), OpKind::post, taken);
    if (spans.empty() || spans.back().second < 0)
      return "message " + std::to_string(m) +
             (message.out ? " is not both packed and completed"
                          : std::string(" is not both posted and ") + (taken == OpKind::wait ? "awaited" : "unpacked"));
    if (!message.out && taken == OpKind::wait) continue;
    for (const auto& span : spans) {
      const bool device = on_device(program.ops[message.out ? span.first : span.second].lane);
      const int first = device && !message.out ? span.second : span.first;
      const int last = device && message.out ? span.first : span.second;
      for (const Region& region : message.regions)
        if (region.quantity == 0)
          list.push_back({first, last, program.ops[first].slot, region.box, !message.out, device});
    }
  }
  return "";
}

/// Each message goes through its stages in this order; an operation of another lane must wait for the one before. A
/// sweep of faces is the last stage of all that arrive.
std::string check_stages(const Plan& plan, const Program& program, const Order& before) {
  constexpr OpKind outwards[]{OpKind::pack, OpKind::d2h, OpKind::send};
  constexpr OpKind inwards[]{OpKind::wait, OpKind::h2d, OpKind::unpack};
  std::vector<int> previous(plan.messages.size(), -1);
  for (int i = 0; i < static_cast<int>(program.ops.size()); ++i) {
    const OpKind kind = program.ops[i].kind;
    const bool out = std::find(std::begin(outwards), std::end(outwards), kind) != std::end(outwards);
    if (!out && std::find(std::begin(inwards), std::end(inwards), kind) == std::end(inwards)) continue;
    for (int m : program.sets[program.ops[i].target]) {
      const int last = previous[m];
      previous[m] = kind == OpKind::send || kind == OpKind::unpack ? -1 : i;
      if (last >= 0 && !before[last][i])
        return describe(program, i) + " does not wait for " + describe(program, last) + " of the same message";
    }
  }
  for (int i = 0; i < static_cast<int>(program.ops.size()); ++i) {
    if (program.ops[i].kind != OpKind::sweep || !program.sweeps[program.ops[i].target].faces) continue;
    for (std::size_t m = 0; m < plan.messages.size(); ++m)
      if (const int last = previous[m]; !plan.messages[m].out && (last < 0 || !before[last][i]))
        return describe(program, i) + " does not wait for message " + std::to_string(m);
  }
  return "";
}

/// The cells of each ring are gathered, brought over and put in their places; each stage must wait for the one before.
std::string check_rings(const Program& program, const Order& before) {
  for (int ring = 0; ring < static_cast<int>(program.rings.size()); ++ring) {
    int last = -1;
    for (OpKind stage : {OpKind::gather, OpKind::transfer, OpKind::scatter}) {
      const auto op = std::find_if(program.ops.begin(), program.ops.end(),
                                   [&](const Op& o) { return o.kind == stage && o.target == ring; });
      if (op == program.ops.end()) return "ring " + std::to_string(ring) + " has no " + to_string(stage);
      const int i = static_cast<int>(op - program.ops.begin());
      if (last >= 0 && !before[last][i])
        return describe(program, i) + " does not wait for " + describe(program, last) + " of the same ring";
      last = i;
    }
  }
  return "";
}

}  // namespace

std::string describe(const Program& program, int op) {
  const Op& o = program.ops[op];
  std::ostringstream text;
  text << "operation " << op << " (" << to_string(o.kind);
  if (o.kind == OpKind::sweep) {
    const Sweep& s = program.sweeps[o.target];
    text << " of step " << s.step << " on [" << s.region.lo[0] << "," << s.region.hi[0] << ")x[" << s.region.lo[1]
         << "," << s.region.hi[1] << ")x[" << s.region.lo[2] << "," << s.region.hi[2] << ")";
  }
  text << ")";
  return text.str();
}

std::vector<int> sorted_ops(const Program& program) {
  const auto before = predecessors(program);
  std::vector<int> order;
  std::vector<char> done(before.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (done[i]) continue;
      bool ready = true;
      for (int p : before[i]) ready = ready && done[p];
      if (!ready) continue;
      done[i] = 1;
      order.push_back(static_cast<int>(i));
      moved = true;
    }
  }
  return order;
}

std::string check_order(const Stage& stage, const Plan& plan, const Program& program) {
  const auto sorted = sorted_ops(program);
  if (sorted.size() != program.ops.size()) return "the dependencies have a cycle";
  const Order before = happens_before(program, sorted);
  std::vector<Access> list;
  if (auto fault = message_accesses(plan, program, list); !fault.empty()) return fault;
  if (auto fault = check_stages(plan, program, before); !fault.empty()) return fault;
  if (auto fault = check_rings(program, before); !fault.empty()) return fault;
  for (int i = 0; i < static_cast<int>(program.ops.size()); ++i) {
    const Op& op = program.ops[i];
    const bool device = on_device(op.lane);
    if (op.kind == OpKind::gather || op.kind == OpKind::scatter)
      for (const Box& box : program.rings[op.target].boxes)
        list.push_back({i, i, op.slot, box, op.kind == OpKind::scatter, device});
    if (op.kind == OpKind::copy)
      for (const Copy& c : program.copy_sets[op.target]) {
        if (c.quantity != 0) continue;
        list.push_back({i, i, op.slot, c.to, true, device});
        list.push_back({i, i, op.slot, c.from(), false, device});
      }
    if (op.kind == OpKind::sweep) {
      const Sweep& s = program.sweeps[op.target];
      for (const Box& box : s.boxes()) {
        if (box.empty()) continue;
        const Box read = program.wraps ? plan.allocated(0) : reach(box, stage, s.levels, plan.dims);
        list.push_back({i, i, op.slot, read, false, device});
        list.push_back({i, i, s.into, box, true, device});
      }
    }
  }
  for (const Access& a : list)
    for (const Access& b : list) {
      if (&a >= &b || a.device != b.device || a.slot != b.slot || !(a.write || b.write)) continue;
      if (a.first == b.first && a.last == b.last) continue;  // parts of one operation run in list order
      if (before[a.last][b.first] || before[b.last][a.first] || intersect(a.box, b.box).empty()) continue;
      return describe(program, a.first) + " and " + describe(program, b.first) + " touch the same cells of slot " +
             std::to_string(a.slot) + " and nothing orders them";
    }
  return "";
}

}  // namespace haloscope
