#include "haloscope/core/check_order.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "haloscope/core/text.hpp"

namespace haloscope {

namespace {

/// Memory accessed from the start of one operation to the end of another.
struct Touched {
  int first, last;
  int quantity, slot;
  Box box;
  bool write;
  bool device;  ///< in the memory of a device
};

/// before[a][b]: operation a has finished when b starts, in every legal interleaving; or begun, with Until::begun.
using Order = std::vector<std::vector<char>>;

/// The state of an operation's predecessors when it starts.
enum class Until : std::uint8_t { begun, finished };

/// Returns the direct predecessors of every operation: `after` plus the order of the comm lane and of each stream.
std::vector<std::vector<int>> predecessors(const Program& program, Until until = Until::begun) {
  std::vector<std::vector<int>> result(program.ops.size());
  std::map<Lane, int> last;
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    for (std::int32_t before : program.ops[i].after)
      if (until == Until::begun || !program.starts_within(program.ops[i], program.ops[before]))
        result[i].push_back(before);
    const Lane lane = program.ops[i].lane;
    if (lane == Lane::main) continue;
    if (last.count(lane)) result[i].push_back(last[lane]);
    last[lane] = static_cast<int>(i);
  }
  return result;
}

Order happens_before(const Program& program, const std::vector<int>& sorted, Until until) {
  const auto direct = predecessors(program, until);
  Order before(direct.size(), std::vector<char>(direct.size(), 0));
  for (int b : sorted)
    for (int a : direct[b]) {
      before[a][b] = 1;
      for (std::size_t c = 0; c < direct.size(); ++c)
        if (before[c][a]) before[c][b] = 1;
    }
  return before;
}

/// Returns the first and last operations that handle a message, e.g. post..unpack, one pair for each time it is sent.
/// The second is -1 where it is missing.
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

/// Returns the points of a quantity that are read for a box of written points: the points that touch them, and layers
/// around.
Box touched(const Box& written, Centring of_written, Centring of_read, int layers, int dims) {
  Box box = written;
  for (int d = 0; d < dims; ++d) {
    box.lo[d] -= layers + (staggered(of_written, d) > staggered(of_read, d));
    box.hi[d] += layers + (staggered(of_read, d) > staggered(of_written, d));
  }
  return box;
}

/// Returns the last operation before `end` that packs messages of a round, or `end`: a kernel that signals unpacks
/// from that operation on.
int kernel_of(const Plan& plan, const Program& program, int round, int end) {
  for (int i = end; program.signals && i >= 0; --i)
    if (program.ops[i].kind == OpKind::pack)
      for (int m : program.sets[program.ops[i].target])
        if (plan.messages[m].round == round) return i;
  return end;
}

/// Collects memory accessed by messages: from post to unpack, and from pack to complete; on a device, where messages
/// have separate buffers, only by unpack and pack; never by messages that sweeps read from their buffers. Returns the
/// name of a message that is not handled.
std::string message_accesses(const Step& step, const std::vector<int>& exchanged, const Plan& plan,
                             const Program& program, std::vector<Touched>& list) {
  for (std::size_t m = 0; m < plan.messages.size(); ++m) {
    const Message& message = plan.messages[m];
    const auto id = static_cast<int>(m);
    auto spans = message.out ? spans_of(program, id, OpKind::pack, OpKind::complete)
                             : spans_of(program, id, OpKind::post, OpKind::unpack);
    const bool read_there = !message.out && program.packs_in_sweeps() && (spans.empty() || spans.back().second < 0);
    if (read_there) spans = spans_of(program, id, OpKind::post, OpKind::wait);
    if (spans.empty() || spans.back().second < 0)
      return "message " + std::to_string(m) +
             (message.out ? " is not both packed and completed"
                          : std::string(" is not both posted and ") + (read_there ? "awaited" : "unpacked"));
    if (read_there) continue;
    for (const auto& span : spans) {
      const bool device = on_device(program.ops[message.out ? span.first : span.second].lane);
      const int first = device && !message.out ? kernel_of(plan, program, message.round, span.second) : span.first;
      const int last = device && message.out ? span.first : span.second;
      for (const Region& region : message.regions) {
        const int q = exchanged[region.quantity];
        list.push_back({first, last, q, slot_of(step, q, program.ops[first].slot), region.box, !message.out, device});
      }
    }
  }
  return "";
}

/// Checks that each message goes through its stages in this order; an operation of another lane must wait for the one
/// before. A sweep of faces is the last stage of all arriving messages.
std::string check_stages(const Plan& plan, const Program& program, const Order& before) {
  constexpr OpKind outwards[]{OpKind::pack, OpKind::d2h, OpKind::send};
  constexpr OpKind inwards[]{OpKind::wait, OpKind::h2d, OpKind::unpack};
  std::vector<int> previous(plan.messages.size(), -1), arrived(plan.messages.size(), -1);
  for (int i = 0; i < static_cast<int>(program.ops.size()); ++i) {
    const OpKind kind = program.ops[i].kind;
    const bool out = std::find(std::begin(outwards), std::end(outwards), kind) != std::end(outwards);
    if (!out && std::find(std::begin(inwards), std::end(inwards), kind) == std::end(inwards)) continue;
    for (int m : program.sets[program.ops[i].target]) {
      const int last = previous[m];
      previous[m] = kind == OpKind::send || kind == OpKind::unpack ? -1 : i;
      if (!out) arrived[m] = i;
      if (last >= 0 && !before[last][i])
        return describe(program, i) + " does not wait for " + describe(program, last) + " of the same message";
    }
  }
  for (int i = 0; i < static_cast<int>(program.ops.size()); ++i) {
    if (program.ops[i].kind != OpKind::sweep || !program.sweeps[program.ops[i].target].faces) continue;
    for (std::size_t m = 0; m < plan.messages.size(); ++m)
      if (const int last = arrived[m]; !plan.messages[m].out && (last < 0 || !before[last][i]))
        return describe(program, i) + " does not wait for message " + std::to_string(m);
  }
  return "";
}

/// Checks kernels that signal: each ends once its round's messages have been sent and have arrived, so neither may
/// wait for its end.
std::string check_signals(const Plan& plan, const Program& program, const Order& before) {
  const auto rounds = [&](const Op& op) {
    std::set<int> found;
    for (int m : program.sets[op.target]) found.insert(plan.messages[m].round);
    return found;
  };
  for (int a = 0; program.signals && a < static_cast<int>(program.ops.size()); ++a) {
    if (program.ops[a].kind != OpKind::pack) continue;
    for (int b = 0; b < static_cast<int>(program.ops.size()); ++b) {
      const OpKind kind = program.ops[b].kind;
      if ((kind == OpKind::send || kind == OpKind::wait) && before[a][b] &&
          rounds(program.ops[a]) == rounds(program.ops[b]))
        return describe(program, b) + " waits for the end of " + describe(program, a) + ", which waits for it";
    }
  }
  return "";
}

/// Checks that the cells of each ring are gathered, transferred and scattered; each stage must wait for the one
/// before.
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

/// Returns the operations of one kind on a reduction, in the order of the list.
std::vector<int> ops_on(const Program& program, OpKind kind, int reduction) {
  std::vector<int> found;
  for (int i = 0; i < static_cast<int>(program.ops.size()); ++i)
    if (program.ops[i].kind == kind && program.ops[i].target == reduction) found.push_back(i);
  return found;
}

/// Checks that a rank's messages have completed before it waits for the numbers of all others: during that wait it
/// moves no messages. Ranks of a pipeline do not wait for each other.
std::string check_waits_moved_all(const std::string& name, const std::vector<int>& waits, const Program& program,
                                  const Order& before) {
  for (int wait : waits)
    for (int i = 0; i < static_cast<int>(program.ops.size()); ++i)
      if (program.ops[i].kind == OpKind::complete && !before[i][wait])
        return describe(program, wait) + " of " + name + " does not wait for " + describe(program, i);
  return "";
}

/// Checks that the numbers of a reduction are combined after all sweeps that gather them, for sweeps in place step by
/// step, else once, and that every begin and every wait of one reduction are ordered.
std::string check_reduction(const Reduction& reduction, int number, bool in_place, const Program& program,
                            const Order& before) {
  const std::string name = "reduction '" + reduction.name + "'";
  std::vector<int> sweeps;
  for (int i = 0; i < static_cast<int>(program.ops.size()); ++i)
    if (program.ops[i].kind == OpKind::sweep && program.sweeps[program.ops[i].target].number == reduction.sweep)
      sweeps.push_back(i);
  const auto begun = ops_on(program, OpKind::reduce, number), awaited = ops_on(program, OpKind::reduced, number);
  if (begun.empty() && !sweeps.empty() && !reduction.last_only) return name + " is never begun";
  const bool ends_here = reduction.mode != ReduceMode::blocking && reduction.until.empty();
  if (awaited.empty() && !begun.empty() && ends_here && !in_place) return name + " is begun and never awaited";
  for (std::size_t k = 0; k < begun.size(); ++k)
    for (int s : sweeps) {
      const Sweep& sweep = program.sweeps[program.ops[s].target];
      const int done = program.steps - static_cast<int>(begun.size() - 1 - k);
      if (sweep.step + sweep.levels <= done && !before[s][begun[k]])
        return describe(program, begun[k]) + " of " + name + " does not wait for " + describe(program, s) +
               ", which gathers its numbers";
    }
  for (int a : begun)
    for (int b : awaited)
      if (!before[a][b] && !before[b][a])
        return describe(program, a) + " and " + describe(program, b) + " touch the numbers of " + name +
               " and nothing orders them";
  const auto& waits = reduction.mode == ReduceMode::blocking ? begun : awaited;
  return in_place ? "" : check_waits_moved_all(name, waits, program, before);
}

/// Checks that a reduction of an earlier stage ends in this stage's program.
std::string check_end(int number, const Program& program, const Order& before) {
  const std::string name = "reduction " + std::to_string(number) + " of an earlier stage";
  const auto awaited = ops_on(program, OpKind::reduced, number);
  return awaited.empty() ? name + " is never awaited" : check_waits_moved_all(name, awaited, program, before);
}

std::string check_reductions(const Stage& stage, const Program& program, const Order& before) {
  for (std::size_t r = 0; r < stage.reductions.size(); ++r) {
    const Reduction& reduction = stage.reductions[r];
    const bool in_place = stage.sweeps[reduction.sweep].in_place;
    if (auto fault = check_reduction(reduction, static_cast<int>(r), in_place, program, before); !fault.empty())
      return fault;
  }
  for (int number : stage.awaited)
    if (auto fault = check_end(number, program, before); !fault.empty()) return fault;
  return "";
}

/// Collects the points that copies, rings and sweeps access.
void field_accesses(const Step& step, const Stage& stage, const std::vector<int>& exchanged, const Plan& plan,
                    const Program& program, std::vector<Touched>& list) {
  const auto centring = [&](int q) { return step.quantities[q].centring; };
  for (int i = 0; i < static_cast<int>(program.ops.size()); ++i) {
    const Op& op = program.ops[i];
    const bool device = on_device(op.lane);
    if (op.kind == OpKind::gather || op.kind == OpKind::scatter)
      for (const Box& box : program.rings[op.target].boxes)
        list.push_back({i, i, 0, op.slot, box, op.kind == OpKind::scatter, device});
    if (op.kind == OpKind::copy)
      for (const Copy& c : program.copy_sets[op.target]) {
        const int q = exchanged[c.quantity], slot = slot_of(step, q, op.slot);
        list.push_back({i, i, q, slot, c.to, true, device});
        list.push_back({i, i, q, slot, c.from(), false, device});
      }
    if (op.kind != OpKind::sweep) continue;
    const Sweep& s = program.sweeps[op.target];
    const SweepSpec& spec = stage.sweeps[s.number];
    for (const Box& box : s.boxes()) {
      if (box.empty()) continue;
      const Box& whole = s.whole.empty() ? box : s.whole;
      for (int w : spec.writes)
        list.push_back(
            {i, i, w, slot_of(step, w, s.into), points_of(box, whole, centring(w), plan.dims), true, device});
      for (const Centring at : swept_centrings(spec, step.quantities))
        for (const Access& access : spec.reads) {
          if (!access.concerns(at)) continue;
          const int q = access.quantity;
          const Box points = points_of(box, whole, at, plan.dims);
          const Box read =
              program.wraps ? plan.allocated(0) : touched(points, at, centring(q), access.layers * s.levels, plan.dims);
          list.push_back({i, i, q, slot_read(step, stage, s.number, q, op.slot, s.into), read, false, device});
        }
    }
  }
}

}  // namespace

std::string describe(const Program& program, int op) {
  const Op& o = program.ops[op];
  TextStream text;
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

int slot_of(const Step& step, int quantity, int slot) { return step.quantities[quantity].slots == 1 ? 0 : slot; }

int slot_read(const Step& step, const Stage& stage, int sweep, int quantity, int slot, int into) {
  for (int s = 0; s < sweep; ++s)
    for (int w : stage.sweeps[s].writes)
      if (w == quantity) return slot_of(step, quantity, into);
  return slot_of(step, quantity, slot);
}

std::string check_order(const Step& step, const Stage& stage, const std::vector<int>& exchanged, const Plan& plan,
                        const Program& program) {
  const auto sorted = sorted_ops(program);
  if (sorted.size() != program.ops.size()) return "the dependencies have a cycle";
  const Order begun = happens_before(program, sorted, Until::begun);
  const Order before = program.signals ? happens_before(program, sorted, Until::finished) : begun;
  std::vector<Touched> list;
  if (auto fault = message_accesses(step, exchanged, plan, program, list); !fault.empty()) return fault;
  if (auto fault = check_stages(plan, program, begun); !fault.empty()) return fault;
  if (auto fault = check_signals(plan, program, before); !fault.empty()) return fault;
  if (auto fault = check_rings(program, before); !fault.empty()) return fault;
  if (auto fault = check_reductions(stage, program, before); !fault.empty()) return fault;
  field_accesses(step, stage, exchanged, plan, program, list);
  for (const Touched& a : list)
    for (const Touched& b : list) {
      if (&a >= &b || a.device != b.device || a.quantity != b.quantity || a.slot != b.slot || !(a.write || b.write))
        continue;
      if (a.first == b.first && a.last == b.last) continue;  // parts of one operation run in list order
      if (before[a.last][b.first] || before[b.last][a.first] || intersect(a.box, b.box).empty()) continue;
      return describe(program, a.first) + " and " + describe(program, b.first) + " touch the same points of '" +
             step.quantities[a.quantity].name + "' in slot " + std::to_string(a.slot) + " and nothing orders them";
    }
  return "";
}

}  // namespace haloscope
