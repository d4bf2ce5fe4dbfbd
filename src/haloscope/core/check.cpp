#include "haloscope/core/check.hpp"

#include <array>
#include <deque>
#include <map>
#include <tuple>

#include "haloscope/core/check_order.hpp"

namespace haloscope {

namespace {

// One interleaving, executed on (global cell, time).

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
        memories_{Cells(layout, plan, program.slots), Cells(layout, plan, program.slots)},
        order_(sorted_ops(program)),
        buffers_(plan.messages.size()) {
    for_each(plan.owned(0), [&](const Index& p) {
      Cells& home = memories_[in_block(p)];
      home.at(p, 0) = {home.identity(p), 0};
    });
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
      if (fault.empty() && !memories_[in_block(p)].right(p, program_.final_slot, program_.steps))
        fault = "owned cell " + text(p) + " does not hold time " + std::to_string(program_.steps) + " at the end";
    });
    return fault;
  }

 private:
  static std::string text(const Index& p) {
    return "(" + std::to_string(p[0]) + "," + std::to_string(p[1]) + "," + std::to_string(p[2]) + ")";
  }

  /// Whose a cell is where a device has a block of its own; elsewhere one memory holds all.
  bool in_block(const Index& p) const { return program_.block.contains(p) && !program_.block.empty(); }
  /// The cells that an operation works on: without a block there is one memory, wherever that is.
  Cells& memory(const Op& op) { return memories_[!program_.block.empty() && on_device(op.lane)]; }
  const Cells& memory(const Op& op) const { return memories_[!program_.block.empty() && on_device(op.lane)]; }

  bool execute(const Op& op, Channel& channel, std::string& fault) {
    Cells& cells = memory(op);
    switch (op.kind) {
      case OpKind::copy:
        for (const Copy& c : program_.copy_sets[op.target])
          if (c.quantity == 0)
            for_each(c.to, [&](const Index& p) {
              cells.at(p, op.slot) = cells.at({p[0] + c.shift[0], p[1] + c.shift[1], p[2] + c.shift[2]}, op.slot);
            });
        return true;
      case OpKind::pack:
        for (int m : program_.sets[op.target]) buffers_[m] = gather(m, cells, op.slot);
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
        for (int m : program_.sets[op.target]) scatter(m, cells, op.slot, fault);
        return true;
      case OpKind::gather:
        rings_[op.target].clear();
        for (const Box& box : program_.rings[op.target].boxes)
          for_each(box, [&](const Index& p) { rings_[op.target].push_back(cells.at(p, op.slot)); });
        return true;
      case OpKind::scatter: {
        std::size_t i = 0;
        for (const Box& box : program_.rings[op.target].boxes)
          for_each(box, [&](const Index& p) { cells.at(p, op.slot) = rings_[op.target].at(i++); });
        return true;
      }
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

  std::vector<Value> gather(int m, const Cells& cells, int slot) {
    std::vector<Value> buffer;
    for (const Region& r : plan_.messages[m].regions)
      if (r.quantity == 0) for_each(r.box, [&](const Index& p) { buffer.push_back(cells.at(p, slot)); });
    return buffer;
  }

  void scatter(int m, Cells& cells, int slot, std::string& fault) {
    std::size_t i = 0;
    for (const Region& r : plan_.messages[m].regions)
      if (r.quantity == 0)
        for_each(r.box, [&](const Index& p) {
          if (i < buffers_[m].size()) cells.at(p, slot) = buffers_[m][i];
          ++i;
        });
    if (i != buffers_[m].size())
      fault = "message " + std::to_string(m) + " holds " + std::to_string(buffers_[m].size()) + " cells, its halo " +
              std::to_string(i);
  }

  bool inputs_right(const Cells& cells, const Index& p, int slot, const Sweep& s) const {
    const int r = stage_.radius * s.levels;
    const int ry = plan_.dims > 1 ? r : 0, rz = plan_.dims > 2 ? r : 0;
    for (int z = -rz; z <= rz; ++z)
      for (int y = -ry; y <= ry; ++y)
        for (int x = -r; x <= r; ++x) {
          const int moves = (x != 0) + (y != 0) + (z != 0);
          const bool in_star = s.levels == 1 ? moves <= 1 : std::abs(x) + std::abs(y) + std::abs(z) <= r;
          if (!stage_.box_stencil && !in_star) continue;
          if (!cells.right(reached({p[0] + x, p[1] + y, p[2] + z}), slot, s.step)) return false;
        }
    return true;
  }

  /// Where a sweep finds cell `p`: sweeps that wrap around take own-neighbour cells from the other side.
  Index reached(Index p) const {
    for (int d = 0; d < plan_.dims && program_.wraps; ++d)
      if (plan_.own_neighbour[d]) p[d] = (p[d] % plan_.cells[d] + plan_.cells[d]) % plan_.cells[d];
    return p;
  }

  /// In place, cells before p in the order of the sweep hold the new time already, those behind it the old one.
  bool inputs_right_in_place(const Cells& cells, const Index& p, int slot, int time) const {
    bool right = cells.right(p, slot, time);
    for (int d = 0; d < plan_.dims; ++d) {
      Index before = p, behind = p;
      --before[d];
      ++behind[d];
      right = right && cells.right(before, slot, time + 1) && cells.right(behind, slot, time);
    }
    return right;
  }

  void sweep_in_place(const Op& op, const Sweep& s, std::string& fault) {
    Cells& cells = memory(op);
    for (int time = s.step; time < s.step + s.levels; ++time)
      for_each(s.region, [&](const Index& p) {
        if (!fault.empty()) return;
        if (!cells.box().contains(p) || !inputs_right_in_place(cells, p, op.slot, time))
          fault = describe(program_, order_[next_]) + " computes cell " + text(p) +
                  " in place, out of the sequential order";
        else
          cells.at(p, op.slot).time = time + 1;
      });
  }

  void sweep(const Op& op, const Sweep& s, std::string& fault) {
    if (s.into == op.slot) return sweep_in_place(op, s, fault);
    Cells& cells = memory(op);
    if (s.faces) take_messages(cells, op.slot, fault);
    for (const Box& box : s.boxes()) sweep(op, s, box, cells, fault);
  }

  /// A kernel of faces finds in messages what others find in halos. It waits for all of them.
  void take_messages(Cells& cells, int slot, std::string& fault) {
    for (std::size_t m = 0; m < plan_.messages.size(); ++m)
      if (!plan_.messages[m].out) scatter(static_cast<int>(m), cells, slot, fault);
  }

  void sweep(const Op& op, const Sweep& s, const Box& box, Cells& cells, std::string& fault) {
    for_each(box, [&](const Index& p) {
      if (!fault.empty()) return;
      const bool good = inputs_right(cells, p, op.slot, s);
      if (!good && s.valid.contains(p))
        fault = describe(program_, order_[next_]) + " computes cell " + text(p) + " from values that are not there yet";
      else if (!cells.box().contains(p))
        fault = describe(program_, order_[next_]) + " writes cell " + text(p) + " outside the field";
      else
        cells.at(p, s.into) = good ? Value{cells.identity(p), s.step + s.levels} : Value{};
    });
  }

  const Stage& stage_;
  const Plan& plan_;
  const Program& program_;
  std::array<Cells, 2> memories_;  // of the host, or whoever has all; of a device beside it
  std::vector<int> order_;
  std::vector<std::vector<Value>> buffers_;
  std::map<int, std::vector<Value>> rings_;
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
