#include "haloscope/core/check.hpp"

#include <deque>
#include <map>
#include <sstream>
#include <tuple>

namespace haloscope {

namespace {

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

// ---- order: everything that touches the same memory is ordered ------------------------------------------------------

/// Memory touched from the start of one operation to the end of another.
struct Access {
  int first, last;
  int slot;
  Box box;
  bool write;
};

/// before[a][b]: operation a has finished when b starts, in every legal interleaving.
using Order = std::vector<std::vector<char>>;

/// Direct predecessors of every operation: `after` plus the comm lane's order.
std::vector<std::vector<int>> predecessors(const Program& program) {
  std::vector<std::vector<int>> result(program.ops.size());
  int last_comm = -1;
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    result[i].assign(program.ops[i].after.begin(), program.ops[i].after.end());
    if (program.ops[i].lane != Lane::comm) continue;
    if (last_comm >= 0) result[i].push_back(last_comm);
    last_comm = static_cast<int>(i);
  }
  return result;
}

/// A topological order, shorter than the program if the dependencies have a cycle.
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

/// Memory touched by messages: from post to unpack, and from pack to complete. Says which message is not handled.
std::string message_accesses(const Plan& plan, const Program& program, std::vector<Access>& list) {
  for (std::size_t m = 0; m < plan.messages.size(); ++m) {
    const Message& message = plan.messages[m];
    const auto spans = message.out ? spans_of(program, static_cast<int>(m), OpKind::pack, OpKind::complete)
                                   : spans_of(program, static_cast<int>(m), OpKind::post, OpKind::unpack);
    if (spans.empty() || spans.back().second < 0)
      return "message " + std::to_string(m) +
             (message.out ? " is not both packed and completed" : " is not both posted and unpacked");
    for (const auto& span : spans)
      for (const Region& region : message.regions)
        if (region.quantity == 0)
          list.push_back({span.first, span.second, program.ops[span.first].slot, region.box, !message.out});
  }
  return "";
}

std::string check_order(const Stage& stage, const Plan& plan, const Program& program) {
  const auto sorted = sorted_ops(program);
  if (sorted.size() != program.ops.size()) return "the dependencies have a cycle";
  const Order before = happens_before(program, sorted);
  std::vector<Access> list;
  if (auto fault = message_accesses(plan, program, list); !fault.empty()) return fault;
  for (int i = 0; i < static_cast<int>(program.ops.size()); ++i) {
    const Op& op = program.ops[i];
    if (op.kind == OpKind::copy)
      for (const Copy& c : program.copy_sets[op.target]) {
        if (c.quantity != 0) continue;
        list.push_back({i, i, op.slot, c.to, true});
        list.push_back({i, i, op.slot, c.from(), false});
      }
    if (op.kind == OpKind::sweep) {
      const Sweep& s = program.sweeps[op.target];
      list.push_back({i, i, op.slot, reach(s.region, stage, s.levels, plan.dims), false});
      list.push_back({i, i, s.into, s.region, true});
    }
  }
  for (const Access& a : list)
    for (const Access& b : list) {
      if (&a >= &b || a.slot != b.slot || !(a.write || b.write)) continue;
      if (a.first == b.first && a.last == b.last) continue;  // parts of one operation run in list order
      if (before[a.last][b.first] || before[b.last][a.first] || intersect(a.box, b.box).empty()) continue;
      return describe(program, a.first) + " and " + describe(program, b.first) + " touch the same cells of slot " +
             std::to_string(a.slot) + " and nothing orders them";
    }
  return "";
}

// ---- values: one interleaving, executed on (global cell, time)
// -------------------------------------------------------

constexpr std::int64_t rubbish = -1;

struct Value {
  std::int64_t cell = rubbish;
  int time = -1;
  bool operator==(const Value&) const = default;
};

/// The cells of one rank, all slots.
class Cells {
 public:
  Cells(const Layout& layout, const Plan& plan, int slots)
      : layout_(layout), owned_(layout.owned(plan.rank)), box_(plan.allocated(0)), data_(slots) {
    for (auto& slot : data_) slot.assign(static_cast<std::size_t>(box_.volume()), Value{});
  }
  /// Number of the global cell at local p; -2 outside a non-periodic grid (fixed boundary values, always right).
  std::int64_t identity(const Index& p) const {
    std::int64_t id = 0;
    for (int d = 2; d >= 0; --d) {
      const std::int64_t n = layout_.grid().cells[d];
      std::int64_t g = owned_.lo[d] + p[d];
      if (g < 0 || g >= n) {
        if (!layout_.grid().periodic[d]) return -2;
        g = (g % n + n) % n;
      }
      id = id * n + g;
    }
    return id;
  }
  bool right(const Index& p, int slot, int time) const {
    const std::int64_t id = identity(p);
    return id == -2 || (box_.contains(p) && at(p, slot) == Value{id, time});
  }
  const Value& at(const Index& p, int slot) const { return data_[slot][place(p)]; }
  Value& at(const Index& p, int slot) { return data_[slot][place(p)]; }
  const Box& box() const { return box_; }

 private:
  std::size_t place(const Index& p) const {
    return static_cast<std::size_t>((p[0] - box_.lo[0]) +
                                    box_.extent(0) * ((p[1] - box_.lo[1]) + box_.extent(1) * (p[2] - box_.lo[2])));
  }
  const Layout& layout_;
  Box owned_, box_;
  std::vector<std::vector<Value>> data_;
};

template <class F>
void for_each(const Box& box, F f) {
  for (std::int64_t z = box.lo[2]; z < box.hi[2]; ++z)
    for (std::int64_t y = box.lo[1]; y < box.hi[1]; ++y)
      for (std::int64_t x = box.lo[0]; x < box.hi[0]; ++x) f(Index{x, y, z});
}

using Channel = std::map<std::tuple<int, int, int>, std::deque<std::vector<Value>>>;  // (from, to, tag), in order

/// One rank's execution. `step` does what can be done without waiting.
class RankRun {
 public:
  RankRun(const Layout& layout, const Stage& stage, const Plan& plan, const Program& program)
      : stage_(stage),
        plan_(plan),
        program_(program),
        cells_(layout, plan, program.slots),
        order_(sorted_ops(program)),
        buffers_(plan.messages.size()) {
    for_each(plan.owned(0), [&](const Index& p) { cells_.at(p, 0) = {cells_.identity(p), 0}; });
  }
  bool finished() const { return next_ == order_.size(); }
  std::string position() const { return describe(program_, order_[next_]); }

  /// Runs until a wait cannot be served. Returns true if anything was done; faults go to `fault`.
  bool step(Channel& channel, std::string& fault) {
    bool moved = false;
    while (!finished() && fault.empty()) {
      if (!execute(program_.ops[order_[next_]], channel, fault)) break;
      ++next_;
      moved = true;
    }
    return moved;
  }

  std::string check_result() const {
    std::string fault;
    for_each(plan_.owned(0), [&](const Index& p) {
      if (fault.empty() && !cells_.right(p, program_.final_slot, program_.steps))
        fault = "owned cell " + text(p) + " does not hold time " + std::to_string(program_.steps) + " at the end";
    });
    return fault;
  }

 private:
  static std::string text(const Index& p) {
    return "(" + std::to_string(p[0]) + "," + std::to_string(p[1]) + "," + std::to_string(p[2]) + ")";
  }

  bool execute(const Op& op, Channel& channel, std::string& fault) {
    switch (op.kind) {
      case OpKind::copy:
        for (const Copy& c : program_.copy_sets[op.target])
          if (c.quantity == 0)
            for_each(c.to, [&](const Index& p) {
              cells_.at(p, op.slot) = cells_.at({p[0] + c.shift[0], p[1] + c.shift[1], p[2] + c.shift[2]}, op.slot);
            });
        return true;
      case OpKind::pack:
        for (int m : program_.sets[op.target]) buffers_[m] = gather(m, op.slot);
        return true;
      case OpKind::send:
        for (int m : program_.sets[op.target])
          channel[{plan_.rank, plan_.messages[m].peer, plan_.messages[m].tag}].push_back(buffers_[m]);
        return true;
      case OpKind::wait:
        for (int m : program_.sets[op.target])
          if (arrivals(channel, m).empty()) return false;
        for (int m : program_.sets[op.target]) {
          buffers_[m] = arrivals(channel, m).front();
          arrivals(channel, m).pop_front();
        }
        return true;
      case OpKind::unpack:
        for (int m : program_.sets[op.target]) scatter(m, op.slot, fault);
        return true;
      case OpKind::sweep:
        sweep(op, program_.sweeps[op.target], fault);
        return true;
      default:
        return true;
    }
  }

  std::deque<std::vector<Value>>& arrivals(Channel& channel, int m) const {
    return channel[{plan_.messages[m].peer, plan_.rank, plan_.messages[m].tag}];
  }

  std::vector<Value> gather(int m, int slot) {
    std::vector<Value> buffer;
    for (const Region& r : plan_.messages[m].regions)
      if (r.quantity == 0) for_each(r.box, [&](const Index& p) { buffer.push_back(cells_.at(p, slot)); });
    return buffer;
  }

  void scatter(int m, int slot, std::string& fault) {
    std::size_t i = 0;
    for (const Region& r : plan_.messages[m].regions)
      if (r.quantity == 0)
        for_each(r.box, [&](const Index& p) {
          if (i < buffers_[m].size()) cells_.at(p, slot) = buffers_[m][i];
          ++i;
        });
    if (i != buffers_[m].size())
      fault = "message " + std::to_string(m) + " holds " + std::to_string(buffers_[m].size()) + " cells, its halo " +
              std::to_string(i);
  }

  bool inputs_right(const Index& p, int slot, const Sweep& s) const {
    const int r = stage_.radius * s.levels;
    const int ry = plan_.dims > 1 ? r : 0, rz = plan_.dims > 2 ? r : 0;
    for (int z = -rz; z <= rz; ++z)
      for (int y = -ry; y <= ry; ++y)
        for (int x = -r; x <= r; ++x) {
          const int moves = (x != 0) + (y != 0) + (z != 0);
          const bool in_star = s.levels == 1 ? moves <= 1 : std::abs(x) + std::abs(y) + std::abs(z) <= r;
          if (!stage_.box_stencil && !in_star) continue;
          if (!cells_.right({p[0] + x, p[1] + y, p[2] + z}, slot, s.step)) return false;
        }
    return true;
  }

  /// In place, cells before p in the order of the sweep hold the new time already, those behind it the old one.
  bool inputs_right_in_place(const Index& p, int slot, int time) const {
    bool right = cells_.right(p, slot, time);
    for (int d = 0; d < plan_.dims; ++d) {
      Index before = p, behind = p;
      --before[d];
      ++behind[d];
      right = right && cells_.right(before, slot, time + 1) && cells_.right(behind, slot, time);
    }
    return right;
  }

  void sweep_in_place(const Op& op, const Sweep& s, std::string& fault) {
    for (int time = s.step; time < s.step + s.levels; ++time)
      for_each(s.region, [&](const Index& p) {
        if (!fault.empty()) return;
        if (!cells_.box().contains(p) || !inputs_right_in_place(p, op.slot, time))
          fault = describe(program_, order_[next_]) + " computes cell " + text(p) +
                  " in place, out of the sequential order";
        else
          cells_.at(p, op.slot).time = time + 1;
      });
  }

  void sweep(const Op& op, const Sweep& s, std::string& fault) {
    if (s.into == op.slot) return sweep_in_place(op, s, fault);
    for_each(s.region, [&](const Index& p) {
      if (!fault.empty()) return;
      const bool good = inputs_right(p, op.slot, s);
      if (!good && s.valid.contains(p))
        fault = describe(program_, order_[next_]) + " computes cell " + text(p) + " from values that are not there yet";
      else if (!cells_.box().contains(p))
        fault = describe(program_, order_[next_]) + " writes cell " + text(p) + " outside the field";
      else
        cells_.at(p, s.into) = good ? Value{cells_.identity(p), s.step + s.levels} : Value{};
    });
  }

  const Stage& stage_;
  const Plan& plan_;
  const Program& program_;
  Cells cells_;
  std::vector<int> order_;
  std::vector<std::vector<Value>> buffers_;
  std::size_t next_ = 0;
};

}  // namespace

std::string check_programs(const Layout& layout, const Stage& stage, const std::vector<Plan>& plans,
                           const std::vector<Program>& programs) {
  const auto at_rank = [](std::size_t r, const std::string& fault) {
    return "rank " + std::to_string(r) + ": " + fault;
  };
  std::vector<RankRun> runs;
  runs.reserve(plans.size());
  for (std::size_t r = 0; r < plans.size(); ++r) {
    if (auto fault = check_order(stage, plans[r], programs[r]); !fault.empty()) return at_rank(r, fault);
    runs.emplace_back(layout, stage, plans[r], programs[r]);
  }
  Channel channel;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t r = 0; r < runs.size(); ++r) {
      std::string fault;
      moved = runs[r].step(channel, fault) || moved;
      if (!fault.empty()) return at_rank(r, fault);
    }
  }
  for (std::size_t r = 0; r < runs.size(); ++r) {
    if (!runs[r].finished()) return at_rank(r, "deadlock, waits for ever at " + runs[r].position());
    if (auto fault = runs[r].check_result(); !fault.empty()) return at_rank(r, fault);
  }
  return "";
}

}  // namespace haloscope
