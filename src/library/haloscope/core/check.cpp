#include "haloscope/core/check.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <string>
#include <tuple>

#include "haloscope/core/check_order.hpp"
#include "haloscope/error.hpp"

namespace haloscope {

namespace {

// One interleaving, executed on (global point, version).

constexpr std::int64_t unspecified = -1;

struct Value {
  std::int64_t point = unspecified;
  int version = -1;
  bool negated = false;
  bool operator==(const Value&) const = default;
};

std::string text(const Index& p) {
  return "(" + std::to_string(p[0]) + "," + std::to_string(p[1]) + "," + std::to_string(p[2]) + ")";
}

/// The points of one quantity of one rank, all slots.
class Points {
 public:
  Points(const Layout& layout, int rank, const Quantity& quantity, const Widths& halo)
      : grid_(layout.grid()), centring_(quantity.centring), edges_(quantity.edges), first_(layout.owned(rank).lo) {
    const Index cells = layout.local_cells(rank);
    for (int d = 0; d < 3; ++d) {
      owned_.hi[d] = cells[d] + (d < layout.dims() ? staggered(centring_, d) : 0);
      box_.lo[d] = -halo[d];
      box_.hi[d] = owned_.hi[d] + halo[d];
    }
    data_.assign(static_cast<std::size_t>(quantity.slots), std::vector<Value>(static_cast<std::size_t>(box_.volume())));
  }
  /// Returns the value of local point p in a version: the number of its global point, or of the point that it mirrors
  /// beyond an edge; point -2 beyond a fixed edge, where any value is correct.
  Value value_of(const Index& p, int version) const {
    Value value{0, version};
    for (int d = 2; d >= 0; --d) {
      const bool periodic = grid_.periodic[d];
      const int on_edge = !periodic && d < grid_.dims ? staggered(centring_, d) : 0;
      const std::int64_t n = grid_.cells[d] + on_edge;
      std::int64_t g = first_[d] + p[d];
      if (periodic) {
        g = (g % n + n) % n;
      } else if (g < 0 || g >= n) {
        const Edge edge = edges_[d].of(g < 0 ? 0 : 1);
        if (edge == Edge::fixed) return {-2, version};
        if (edge == Edge::nearest)
          g = g < 0 ? 0 : n - 1;
        else
          g = g < 0 ? -g - 1 + on_edge : 2 * n - 1 - on_edge - g;
        value.negated = value.negated != (edge == Edge::odd);
      }
      value.point = value.point * n + g;
    }
    return value;
  }
  bool right(const Index& p, int slot, int version) const {
    const Value value = value_of(p, version);
    return value.point == -2 || (box_.contains(p) && at(p, slot) == value);
  }
  const Value& at(const Index& p, int slot) const { return data_[slot][place(p)]; }
  Value& at(const Index& p, int slot) { return data_[slot][place(p)]; }
  const Box& box() const { return box_; }
  const Box& owned() const { return owned_; }

 private:
  /// Returns the index of a point. @throws UsageError for a point without memory, which a plan or a program of
  /// another layout may access.
  std::size_t place(const Index& p) const {
    if (!box_.contains(p)) throw UsageError("a plan or a program reaches point " + text(p) + ", which its field lacks");
    return static_cast<std::size_t>((p[0] - box_.lo[0]) +
                                    box_.extent(0) * ((p[1] - box_.lo[1]) + box_.extent(1) * (p[2] - box_.lo[2])));
  }
  GridSpec grid_;
  Centring centring_;
  std::array<Edges, 3> edges_;
  Index first_;
  Box owned_, box_;
  std::vector<std::vector<Value>> data_;
};

template <class F>
void for_each(const Box& box, F f) {
  for (std::int64_t z = box.lo[2]; z < box.hi[2]; ++z)
    for (std::int64_t y = box.lo[1]; y < box.hi[1]; ++y)
      for (std::int64_t x = box.lo[0]; x < box.hi[0]; ++x) f(Index{x, y, z});
}

/// One rank's state through all stages: the points of every quantity, on the host and on an additional device, with
/// slots and versions.
struct RankState {
  std::array<std::vector<Points>, 2> memories;  // of the host, or of the only memory; of an additional device
  std::vector<int> versions;                    // by quantity
  int slot = 0;
};

using Channel = std::map<std::tuple<int, int, int>, std::deque<std::vector<Value>>>;  // (from, to, tag), in order

/// One rank's execution of one stage's program. `advance` does all work that does not need to wait.
class StageRun {
 public:
  StageRun(const Step& step, const StagePrograms& stage, std::size_t rank, RankState& state)
      : step_(step),
        stage_(*stage.stage),
        exchanged_(stage.exchanged),
        plan_(stage.plans[rank]),
        program_(stage.programs[rank]),
        state_(state),
        order_(sorted_ops(program_)),
        buffers_(plan_.messages.size()) {}

  bool finished() const { return next_ == order_.size(); }
  std::string position() const { return describe(program_, order_[next_]); }

  /// Runs until a wait cannot be satisfied. Returns true if anything was done; faults go to `fault`.
  bool advance(Channel& channel, std::string& fault) {
    bool moved = false;
    while (!finished() && fault.empty()) {
      if (!execute(program_.ops[order_[next_]], channel, fault)) break;
      ++next_;
      moved = true;
    }
    return moved;
  }

  /// Ends the program: advances slots and versions for the next one.
  void end() {
    state_.slot = (state_.slot + program_.final_slot) % step_.slots();
    for (std::size_t q = 0; q < state_.versions.size(); ++q)
      state_.versions[q] += program_.steps * writes_before(static_cast<int>(q), static_cast<int>(stage_.sweeps.size()));
  }

 private:
  /// Returns the memory that owns a cell where a device has a block; elsewhere the only memory.
  std::vector<Points>& memory(const Op& op) { return state_.memories[!program_.block.empty() && on_device(op.lane)]; }
  const Quantity& quantity(int q) const { return step_.quantities[q]; }
  int absolute(int q, int slot) const { return quantity(q).slots == 1 ? 0 : (state_.slot + slot) % 2; }
  int field_of(int region_quantity) const { return exchanged_[region_quantity]; }

  /// Returns the number of writes of a quantity in a step before its sweep number `sweep`.
  int writes_before(int q, int sweep) const {
    int count = 0;
    for (int s = 0; s < sweep; ++s) count += writes(stage_.sweeps[s], q);
    return count;
  }
  int version_before(int q, const Sweep& s) const {
    const int per_step = writes_before(q, static_cast<int>(stage_.sweeps.size()));
    return state_.versions[q] + s.step * per_step + writes_before(q, s.number);
  }

  bool execute(const Op& op, Channel& channel, std::string& fault) {
    std::vector<Points>& fields = memory(op);
    switch (op.kind) {
      case OpKind::copy:
        for (const Copy& c : program_.copy_sets[op.target]) {
          const int q = field_of(c.quantity), slot = absolute(q, op.slot);
          Points& points = fields[q];
          for_each(c.to, [&](const Index& p) {
            Value value = points.at({p[0] + c.shift[0], p[1] + c.shift[1], p[2] + c.shift[2]}, slot);
            value.negated = value.negated != c.negate;
            points.at(p, slot) = value;
          });
        }
        return true;
      case OpKind::pack:
        for (int m : program_.sets[op.target]) buffers_[m] = gather(m, fields, op.slot);
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
        for (int m : program_.sets[op.target]) scatter(m, fields, op.slot, fault);
        return true;
      case OpKind::gather:
        rings_[op.target].clear();
        for (const Box& box : program_.rings[op.target].boxes)
          for_each(box, [&](const Index& p) { rings_[op.target].push_back(fields[0].at(p, absolute(0, op.slot))); });
        return true;
      case OpKind::scatter: {
        std::size_t i = 0;
        for (const Box& box : program_.rings[op.target].boxes)
          for_each(box, [&](const Index& p) { fields[0].at(p, absolute(0, op.slot)) = rings_[op.target].at(i++); });
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

  std::vector<Value> gather(int m, const std::vector<Points>& fields, int slot) const {
    std::vector<Value> buffer;
    for (const Region& r : plan_.messages[m].regions) {
      const int q = field_of(r.quantity);
      for_each(r.box, [&](const Index& p) { buffer.push_back(fields[q].at(p, absolute(q, slot))); });
    }
    return buffer;
  }

  void scatter(int m, std::vector<Points>& fields, int slot, std::string& fault) const {
    std::size_t i = 0;
    for (const Region& r : plan_.messages[m].regions) {
      const int q = field_of(r.quantity);
      for_each(r.box, [&](const Index& p) {
        if (i < buffers_[m].size()) fields[q].at(p, absolute(q, slot)) = buffers_[m][i];
        ++i;
      });
    }
    if (i != buffers_[m].size())
      fault = "message " + std::to_string(m) + " holds " + std::to_string(buffers_[m].size()) + " points, its halo " +
              std::to_string(i);
  }

  /// Returns true if every value that a sweep reads through one access for a written point is correct.
  bool access_right(const std::vector<Points>& fields, const Access& access, const Op& op, const Sweep& s,
                    Centring written, const Index& p) const {
    const int q = access.quantity, slot = absolute(q, slot_read(step_, stage_, s.number, q, op.slot, s.into));
    const Points& points = fields[q];
    const int layers = access.layers * s.levels, version = version_before(q, s);
    const bool box = stage_.sweeps[s.number].box_stencil;
    Box touching, all;  // the points that touch the written one, and the points around them
    for (int d = 0; d < 3; ++d) {
      const bool in = d < plan_.dims;
      const int of_read = in ? staggered(quantity(q).centring, d) : 0, of_written = in ? staggered(written, d) : 0;
      touching.lo[d] = p[d] - (of_written > of_read);
      touching.hi[d] = p[d] + 1 + (of_read > of_written);
      all.lo[d] = touching.lo[d] - (in ? layers : 0);
      all.hi[d] = touching.hi[d] + (in ? layers : 0);
    }
    bool right = true;
    for_each(all, [&](const Index& at) {
      int away = 0, moves = 0;
      for (int d = 0; d < 3; ++d) {
        const std::int64_t beyond = std::max<std::int64_t>({touching.lo[d] - at[d], at[d] - touching.hi[d] + 1, 0});
        away += static_cast<int>(beyond);
        moves += beyond > 0;
      }
      const bool in_star = s.levels == 1 ? moves <= 1 : away <= layers;
      if (box || in_star) right = right && points.right(reached(at), slot, version);
    });
    return right;
  }

  /// Returns the point that a sweep reads for `p`: sweeps that wrap around take own-neighbour cells from the other
  /// side.
  Index reached(Index p) const {
    for (int d = 0; d < plan_.dims && program_.wraps; ++d)
      if (plan_.own_neighbour[d]) p[d] = (p[d] % plan_.cells[d] + plan_.cells[d]) % plan_.cells[d];
    return p;
  }

  /// In place, cells before p in the order of the sweep already hold the new version, cells after it the old one.
  bool right_in_place(const Points& points, const Index& p, int version) const {
    bool right = points.right(p, 0, version);
    for (int d = 0; d < plan_.dims; ++d) {
      Index before = p, behind = p;
      --before[d];
      ++behind[d];
      right = right && points.right(before, 0, version + 1) && points.right(behind, 0, version);
    }
    return right;
  }

  void sweep_in_place(const Op& op, const Sweep& s, std::string& fault) {
    const int q = stage_.sweeps[s.number].writes.front();
    Points& points = memory(op)[q];
    for (int level = 0; level < s.levels; ++level)
      for_each(s.region, [&](const Index& p) {
        if (!fault.empty()) return;
        const int version = version_before(q, s) + level;
        if (!points.box().contains(p) || !right_in_place(points, p, version))
          fault = position() + " computes cell " + text(p) + " in place, out of the sequential order";
        else
          points.at(p, 0).version = version + 1;
      });
  }

  /// A face kernel reads from messages the values that others read from halos. It waits for all messages.
  void take_messages(std::vector<Points>& fields, int slot, std::string& fault) const {
    for (std::size_t m = 0; m < plan_.messages.size(); ++m)
      if (!plan_.messages[m].out) scatter(static_cast<int>(m), fields, slot, fault);
  }

  void sweep(const Op& op, const Sweep& s, std::string& fault) {
    if (s.in_place) return sweep_in_place(op, s, fault);
    std::vector<Points>& fields = memory(op);
    if (s.faces) take_messages(fields, op.slot, fault);
    std::vector<std::tuple<int, Index, Value>> results;  // written together, after all reads
    const SweepSpec& spec = stage_.sweeps[s.number];
    for (const Box& box : s.boxes()) {
      for (int w : spec.writes) compute(op, s, box, w, fields, results, fault);
      if (spec.writes.empty()) gather(op, s, box, fields, fault);
    }
    for (const auto& [w, p, value] : results) fields[w].at(p, absolute(w, s.into)) = value;
  }

  bool reads_right(const Op& op, const Sweep& s, const std::vector<Points>& fields, Centring centring,
                   const Index& p) const {
    const std::vector<Access>& reads = stage_.sweeps[s.number].reads;
    return std::all_of(reads.begin(), reads.end(), [&](const Access& access) {
      return !access.concerns(centring) || access_right(fields, access, op, s, centring, p);
    });
  }

  /// Gathers the numbers of each cell, in a sweep that writes nothing.
  void gather(const Op& op, const Sweep& s, const Box& box, const std::vector<Points>& fields,
              std::string& fault) const {
    for_each(box, [&](const Index& p) {
      if (fault.empty() && s.valid.contains(p) && !reads_right(op, s, fields, Centring::cell, p))
        fault = position() + " gathers numbers of cell " + text(p) + " from values that are not there yet";
    });
  }

  void compute(const Op& op, const Sweep& s, const Box& box, int w, const std::vector<Points>& fields,
               std::vector<std::tuple<int, Index, Value>>& results, std::string& fault) const {
    const Points& points = fields[w];
    const Centring centring = quantity(w).centring;
    const Box whole = s.whole.empty() ? box : s.whole, valid = points_of(s.valid, s.valid, centring, plan_.dims);
    for_each(points_of(box, whole, centring, plan_.dims), [&](const Index& p) {
      if (!fault.empty()) return;
      const bool good = reads_right(op, s, fields, centring, p);
      if (!good && valid.contains(p))
        fault = position() + " computes point " + text(p) + " of '" + quantity(w).name +
                "' from values that are not there yet";
      else if (!points.box().contains(p))
        fault = position() + " writes point " + text(p) + " outside the field '" + quantity(w).name + "'";
      else
        results.emplace_back(w, p, good ? points.value_of(p, version_before(w, s) + s.levels) : Value{});
    });
  }

  const Step& step_;
  const Stage& stage_;
  const std::vector<int>& exchanged_;
  const Plan& plan_;
  const Program& program_;
  RankState& state_;
  std::vector<int> order_;
  std::vector<std::vector<Value>> buffers_;
  std::map<int, std::vector<Value>> rings_;
  std::size_t next_ = 0;
};

/// Returns the widest halo of each quantity in any stage, as a run allocates fields.
std::vector<Widths> widest(const Step& step, const std::vector<StagePrograms>& stages, std::size_t rank) {
  std::vector<Widths> halos(step.quantities.size());
  for (const StagePrograms& stage : stages) {
    const int depth = stage.depth > 0 ? stage.depth : std::max(stage.programs[rank].steps, 1);
    const auto room = room_of(step, *stage.stage, depth);
    for (std::size_t q = 0; q < room.size(); ++q)
      for (int d = 0; d < 3; ++d) halos[q][d] = std::max(halos[q][d], room[q][d]);
    const ExchangeSpec& spec = stage.plans[rank].spec;
    for (std::size_t i = 0; i < stage.exchanged.size(); ++i)
      for (int d = 0; d < 3; ++d) {
        int& width = halos[stage.exchanged[i]][d];
        width = std::max({width, spec.low_of(static_cast<int>(i))[d], spec.high_of(static_cast<int>(i))[d]});
      }
  }
  return halos;
}

bool in_block(const Program& program, const Index& p) { return !program.block.empty() && program.block.contains(p); }

RankState start(const Layout& layout, const Step& step, const std::vector<StagePrograms>& stages, std::size_t rank) {
  RankState state;
  const auto halos = widest(step, stages, rank);
  for (auto& memory : state.memories)
    for (std::size_t q = 0; q < halos.size(); ++q)
      memory.emplace_back(layout, static_cast<int>(rank), step.quantities[q], halos[q]);
  for (std::size_t q = 0; q < halos.size(); ++q)
    for_each(state.memories[0][q].owned(), [&](const Index& p) {
      Points& home = state.memories[in_block(stages.front().programs[rank], p)][q];
      home.at(p, 0) = home.value_of(p, 0);
    });
  state.versions.assign(step.quantities.size(), 0);
  return state;
}

std::string check_result(const Step& step, const Program& program, const RankState& state) {
  std::string fault;
  for (std::size_t q = 0; q < step.quantities.size(); ++q) {
    const int slot = step.quantities[q].slots == 1 ? 0 : state.slot;
    for_each(state.memories[0][q].owned(), [&](const Index& p) {
      const Points& points = state.memories[in_block(program, p)][q];
      if (fault.empty() && !points.right(p, slot, state.versions[q]))
        fault = "owned point " + text(p) + " of '" + step.quantities[q].name + "' does not hold version " +
                std::to_string(state.versions[q]) + " at the end";
    });
  }
  return fault;
}

std::string at_rank(std::size_t r, const std::string& fault) { return "rank " + std::to_string(r) + ": " + fault; }

/// Runs one stage on all ranks, which take turns.
std::string check_stage(const Step& step, const StagePrograms& stage, std::vector<RankState>& states) {
  std::vector<StageRun> runs;
  runs.reserve(states.size());
  for (std::size_t r = 0; r < states.size(); ++r) runs.emplace_back(step, stage, r, states[r]);
  Channel channel;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t r = 0; r < runs.size(); ++r) {
      std::string fault;
      moved = runs[r].advance(channel, fault) || moved;
      if (!fault.empty()) return at_rank(r, fault);
    }
  }
  for (std::size_t r = 0; r < runs.size(); ++r) {
    if (!runs[r].finished()) return at_rank(r, "deadlock, waits forever at " + runs[r].position());
    runs[r].end();
  }
  return "";
}

}  // namespace

std::string check_step(const Layout& layout, const Step& step, const std::vector<StagePrograms>& stages) {
  const std::size_t ranks = stages.front().plans.size();
  for (const StagePrograms& stage : stages)
    for (std::size_t r = 0; r < ranks; ++r)
      if (auto fault = check_order(step, *stage.stage, stage.exchanged, stage.plans[r], stage.programs[r]);
          !fault.empty())
        return at_rank(r, fault);
  std::vector<RankState> states;
  for (std::size_t r = 0; r < ranks; ++r) states.push_back(start(layout, step, stages, r));
  for (const StagePrograms& stage : stages)
    if (auto fault = check_stage(step, stage, states); !fault.empty()) return fault;
  for (std::size_t r = 0; r < ranks; ++r)
    if (auto fault = check_result(step, stages.back().programs[r], states[r]); !fault.empty()) return at_rank(r, fault);
  return "";
}

std::string check_programs(const Layout& layout, const Step& step, const std::vector<Plan>& plans,
                           const std::vector<Program>& programs) {
  std::vector<int> exchanged;
  for (int q = 0; q < static_cast<int>(step.quantities.size()); ++q) exchanged.push_back(q);
  return check_step(layout, step, {{&step.stages.front(), exchanged, plans, programs}});
}

}  // namespace haloscope
