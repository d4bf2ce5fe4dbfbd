#include "haloscope/model/op_costs.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "haloscope/core/stores.hpp"
#include "haloscope/model/device_op_costs.hpp"
#include "haloscope/model/refetch.hpp"
#include "haloscope/share.hpp"

namespace haloscope::model {

namespace {

/// The host's part of one program.
class OpCosts {
 public:
  OpCosts(const StageProgram& of, const StageUnitCosts& prices, const RankLocation& where);
  TimedOp price(const Op& op) const;

 private:
  using Key = std::pair<int, int>;  // step and sweep

  bool is_far(int message) const { return where_.far[static_cast<std::size_t>(message)]; }
  void count_cells();
  void price_messages();
  Ratios mean_corrections() const;
  Parts parts(const Op& op, const std::vector<int>& messages) const;
  TimedOp reduction(const Op& op, TimedOp action) const;
  Part ring(const Op& op) const;
  double reading_s(const std::vector<int>& messages) const;
  double used_s(const std::vector<int>& messages, Cost TransportCost::*cost) const;
  double sum(const std::vector<int>& messages, double MessageUnitCost::*part) const;
  double uneven_s() const;
  double piece_s(const Sweep& sweep) const;
  std::array<double, 3> sweeping(const Sweep& sweep) const;

  const StageProgram& of_;
  const Program& program_;
  const StageUnitCosts& prices_;
  const UnitCosts& common_;
  const RankLocation& where_;
  double slot_bytes_;
  double beyond_;  // part of the block beyond the cache
  bool far_;       // most of it
  bool streams_;   // sweeps store around the cache
  int packers_;
  std::optional<DeviceOpCosts> device_;
  std::vector<MessageUnitCost> messages_;
  std::vector<int> all_messages_;
  std::size_t incoming_ = 0;
  std::map<int, double> blocks_;  // by sweep: cell count of a whole block with its widest halos
  std::map<Key, int> pieces_;
  Ratios corrections_;  // means over the messages
  double overhead_s_ = 0, waiting_s_ = 0;
};

OpCosts::OpCosts(const StageProgram& of, const StageUnitCosts& prices, const RankLocation& where)
    : of_(of),
      program_(*of.program),
      prices_(prices),
      common_(prices.common),
      where_(where),
      slot_bytes_(slot_bytes(*of.plan)),
      beyond_(common_.profile.beyond_cache(slot_bytes_)),
      far_(beyond_ >= 0.5),
      streams_(goes_around_cache(common_.candidate.choice.stores, std::llrint(slot_bytes_))),
      packers_(program_.comm_thread ? 1 : common_.threads) {
  if (common_.device)
    device_.emplace(of, *common_.device, common_.names[static_cast<std::size_t>(prices.number)], where.ranks_on_device);
  count_cells();
  price_messages();
  corrections_ = mean_corrections();
  const StepCost& cost = common_.profile.steps;
  int others = 0, waits = 0;
  for (const Op& op : program_.ops) {
    others += op.kind != OpKind::sweep;
    waits += op.kind == OpKind::wait;
  }
  overhead_s_ =
      (cost.per_program_s + cost.per_operation_s * static_cast<double>(program_.ops.size())) / std::max(1, others);
  std::set<int> peers;
  for (const Message& message : of.plan->messages)
    if (message.out) peers.insert(message.peer);
  if (!program_.device)
    waiting_s_ =
        corrections_.exchange * cost.waiting(static_cast<int>(peers.size()), beyond_, uneven_s()) / std::max(1, waits);
}

void OpCosts::count_cells() {
  std::map<Key, double> amounts;
  for (const Sweep& sweep : program_.sweeps) {
    const Key key{sweep.step, sweep.number};
    amounts[key] += prices_.amount_of(sweep.number, sweep.region) + prices_.amount_of(sweep.number, sweep.twin);
    if (!sweep.region.empty()) ++pieces_[key];
  }
  for (const auto& [key, amount] : amounts) blocks_[key.second] = std::max(blocks_[key.second], amount);
}

void OpCosts::price_messages() {
  messages_.reserve(of_.plan->messages.size());
  all_messages_.reserve(of_.plan->messages.size());
  const Refetch refetch = refetch_of(*of_.plan, of_.traffic, prices_, where_);
  for (std::size_t m = 0; m < of_.plan->messages.size(); ++m) {
    messages_.push_back(prices_.message(of_.traffic[m], where_.flights[m], where_.far[m] != 0, packers_, slot_bytes_));
    if (!prices_.surcharges[is_far(static_cast<int>(m))]->from_fields) messages_.back().refetch = refetch.fields_s(m);
    all_messages_.push_back(static_cast<int>(m));
    incoming_ += !of_.plan->messages[m].out;
  }
}

/// Returns the mean over the messages, which applies to everything that no single message causes: copies of own halos,
/// waits, sweeps. Each of several sweeps in a step leaves another part of the block in the cache, which no measured
/// step resolves.
Ratios OpCosts::mean_corrections() const {
  if (messages_.empty()) return {};
  double exchange = 0, sweeps = 0;
  for (const MessageUnitCost& price : messages_) {
    exchange += std::log(price.corrections.exchange);
    sweeps += std::log(price.corrections.sweeps);
  }
  const auto count = static_cast<double>(messages_.size());
  const bool single = common_.names.size() == 1 && common_.names.front().size() == 1;
  return {std::exp(exchange / count), single ? std::exp(sweeps / count) : 1.0};
}

Deed deed_of(OpKind kind) {
  switch (kind) {
    case OpKind::sweep:
      return Deed::sweep;
    case OpKind::send:
      return Deed::send;
    case OpKind::wait:
      return Deed::wait;
    case OpKind::complete:
      return Deed::complete;
    case OpKind::progress:
      return Deed::progress;
    case OpKind::barrier:
      return Deed::barrier;
    default:
      return Deed::work;
  }
}

bool has_set(OpKind kind) {
  return kind == OpKind::post || kind == OpKind::pack || kind == OpKind::send || kind == OpKind::wait ||
         kind == OpKind::unpack || kind == OpKind::complete;
}

TimedOp OpCosts::price(const Op& op) const {
  if (on_device(op.lane)) return device_->price(op);
  static const std::vector<int> none;
  const std::vector<int>& messages = has_set(op.kind) ? program_.sets[static_cast<std::size_t>(op.target)] : none;
  TimedOp action;
  action.deed = deed_of(op.kind);
  action.lane = op.lane;
  action.after.assign(op.after.begin(), op.after.end());
  action.messages = messages;
  action.parts = parts(op, messages);
  action.parts.add(Term::runner, overhead_s_);
  if (op.kind == OpKind::sweep) action.sweep = sweeping(program_.sweeps[static_cast<std::size_t>(op.target)]);
  if ((op.kind == OpKind::reduce || op.kind == OpKind::reduced) && prices_.meets)
    return reduction(op, std::move(action));
  return action;
}

/// Times an operation that contributes to a reduction or waits for its result.
TimedOp OpCosts::reduction(const Op& op, TimedOp action) const {
  action.deed = op.kind == OpKind::reduce ? Deed::reduce : Deed::reduced;
  action.lane = Lane::main;
  action.reduction = prices_.first_reduction + op.target;
  action.collective_s = common_.reduction_s(action.reduction);
  action.waits = op.kind == OpKind::reduce && prices_.waits[static_cast<std::size_t>(op.target)];
  return action;
}

Parts OpCosts::parts(const Op& op, const std::vector<int>& messages) const {
  Parts parts;
  switch (op.kind) {
    case OpKind::progress:
      parts.add(Term::synchronisation, common_.profile.overlap.call_s);
      break;
    case OpKind::post: {
      const double share = incoming_ > 0 ? static_cast<double>(messages.size()) / static_cast<double>(incoming_) : 1.0;
      parts.add(Term::synchronisation,
                corrections_.exchange * share * used_s(all_messages_, &TransportCost::per_exchange_s));
      break;
    }
    case OpKind::copy:
      for (const Traffic& part : of_.copies[static_cast<std::size_t>(op.target)])
        parts.add(Term::copy, corrections_.exchange * common_.copying(part, packers_, slot_bytes_, true));
      break;
    case OpKind::gather:
    case OpKind::scatter: {
      const Part part = ring(op);
      parts.add(part.term, part.seconds);
      break;
    }
    case OpKind::pack:
      parts.add(Term::pack, sum(messages, &MessageUnitCost::pack));
      parts.add(Term::refetch, sum(messages, &MessageUnitCost::refetch));
      break;
    case OpKind::send:
      parts.add(Term::synchronisation, sum(messages, &MessageUnitCost::synchronisation));
      parts.add(Term::copy, sum(messages, &MessageUnitCost::copy));
      break;
    case OpKind::wait:
      parts.add(Term::synchronisation, corrections_.exchange * used_s(messages, &TransportCost::per_round_s));
      parts.add(Term::wait, waiting_s_);
      break;
    case OpKind::unpack:
      parts.add(Term::unpack, sum(messages, &MessageUnitCost::unpack));
      parts.add(Term::refetch, sum(messages, &MessageUnitCost::refetch));
      parts.add(Term::compute, corrections_.sweeps * reading_s(messages));
      break;
    default:
      break;
  }
  return parts;
}

/// The host's part in passing cells to a device's block, or in fetching them.
Part OpCosts::ring(const Op& op) const {
  const auto [bytes, run_bytes] = device_->ring(op.target);
  const Traffic traffic{std::llrint(bytes), std::max<std::int64_t>(1, std::llrint(run_bytes)), false};
  return {op.kind == OpKind::gather ? Term::pack : Term::unpack, common_.copying(traffic, 1, slot_bytes_)};
}

double OpCosts::sum(const std::vector<int>& messages, double MessageUnitCost::*part) const {
  double seconds = 0;
  for (const int m : messages) seconds += messages_[static_cast<std::size_t>(m)].*part;
  return seconds;
}

/// Additional seconds of sweeping caused by arrived messages: another core wrote the halo, and the interrupts of the
/// network took core time. Data that was written into a block beyond the cache has left the other core's cache when it
/// is read.
double OpCosts::reading_s(const std::vector<int>& messages) const {
  double seconds = 0;
  for (const int m : messages) {
    const TransportCost& cost = *prices_.surcharges[is_far(m)];
    const Traffic& traffic = of_.traffic[static_cast<std::size_t>(m)];
    const auto bytes = static_cast<double>(traffic.bytes);
    if (is_far(m)) seconds += cost.interrupt_per_message_s + cost.interrupt_per_byte_s * bytes;
    if (!far_) seconds += cost.per_touched_byte_s * bytes + cost.per_touched_row_s * short_rows(traffic);
  }
  return seconds;
}

/// Sums a cost over the transports that move some of these messages; without messages, the transport inside nodes.
double OpCosts::used_s(const std::vector<int>& messages, Cost TransportCost::*cost) const {
  const auto [near, between] = prices_.surcharges;
  if (near == between) return near->*cost;
  bool inside = messages.empty(), outside = false;
  for (const int m : messages) (is_far(m) ? outside : inside) = true;
  return (inside ? (near->*cost).value : 0.0) + (outside ? (between->*cost).value : 0.0);
}

/// Seconds of all sweeps of a program, with deep halos and in pieces too: ranks wait for the additional time that any
/// of them takes.
double OpCosts::uneven_s() const {
  double seconds = 0;
  for (const Op& op : program_.ops)
    if (op.kind == OpKind::sweep) seconds += sweeping(program_.sweeps[static_cast<std::size_t>(op.target)])[2];
  return seconds;
}

/// Seconds by which a part of a block takes longer than its share of a sweep of the whole block: for the cells of its
/// lowest plane (2D: row), and the rows that it has in excess of the block's for the same number of cells.
double OpCosts::piece_s(const Sweep& sweep) const {
  if (sweep.region.empty() || pieces_.at({sweep.step, sweep.number}) < 2) return 0;
  const auto extent = [&](int d) { return static_cast<double>(sweep.region.extent(d)); };
  const double lowest = common_.dims == 3 ? extent(0) * extent(1) : extent(0);
  const double whole_rows =
      static_cast<double>(sweep.region.volume()) / static_cast<double>(of_.plan->owned(0).extent(0));
  const double rows = std::max(0.0, extent(1) * extent(2) - whole_rows);
  const StepCost& cost = common_.profile.steps;
  const double per_row = cost.per_piece_row_s + (far_ ? cost.per_far_piece_row_s.value : 0.0);
  return cost.per_piece_s + cost.per_piece_cell_s * lowest + per_row * rows;
}

std::array<double, 3> OpCosts::sweeping(const Sweep& sweep) const {
  const int threads = common_.threads;
  const double amount = prices_.amount_of(sweep.number, sweep.region) * sweep.levels;
  const double piece = piece_s(sweep), ratio = sweep.levels > 1 ? 1.0 : corrections_.sweeps;
  const auto by = [&](int workers, int busy) {
    const double cores = std::min(where_.ranks_on_socket * busy, common_.profile.cores_per_socket);
    return ratio *
           (prices_.sweep(sweep.number, amount, blocks_.at(sweep.number), workers, cores, sweep.levels, streams_) +
            piece / workers);
  };
  if (program_.comm_thread) return {by(threads - 1, threads), by(threads - 1, threads - 1), by(threads, threads)};
  const bool alone = sweep.region.volume() < shared_sweep_cells && !sweep.in_place;
  return {0, 0, alone ? by(1, 1) : by(threads, threads)};
}

}  // namespace

void price_program(const StageProgram& of, const StageUnitCosts& prices, const RankLocation& where,
                   std::vector<TimedOp>& actions) {
  const OpCosts pricing(of, prices, where);
  const int first = static_cast<int>(actions.size());
  actions.reserve(actions.size() + of.program->ops.size());
  for (const Op& op : of.program->ops) {
    TimedOp& action = actions.emplace_back(pricing.price(op));
    for (int& message : action.messages) message += of.first_message;
    for (int& before : action.after) before += first;
  }
}

namespace {

/// Seconds by round in which a rank copies its messages inside the node sequentially: messages that receivers read from
/// senders' fields, and of other messages the part of the buffers that has left the cache.
std::map<int, double> copying_inside(const Plan& plan, std::span<const Traffic> traffic, const StageUnitCosts& prices,
                                     const RankLocation& where) {
  std::map<int, double> seconds;
  const Refetch refetch = refetch_of(plan, traffic, prices, where);
  const bool from_fields = prices.surcharges[0]->from_fields;
  if (refetch.none() && !from_fields) return seconds;
  for (std::size_t m = 0; m < plan.messages.size(); ++m) {
    if (where.far[m] != 0) continue;
    double& of_round = seconds[plan.messages[m].round];
    of_round += from_fields ? refetch.fields_s(m) : refetch.buffers_s(m);
    if (from_fields && plan.messages[m].out)
      of_round += prices.message(traffic[m], 0, false, 1, slot_bytes(plan)).flight;
  }
  return seconds;
}

}  // namespace

std::vector<Flight> price_flights(const Plan& plan, std::span<const Traffic> traffic, const StageUnitCosts& prices,
                                  const RankLocation& where, double eager) {
  std::vector<Flight> found(plan.messages.size());
  const double block = slot_bytes(plan);
  std::map<int, double> copying = copying_inside(plan, traffic, prices, where);
  const auto& device = prices.common.device;
  for (std::size_t m = 0; m < found.size(); ++m) {
    if (!plan.messages[m].out) continue;
    const auto bytes = static_cast<double>(plan.messages[m].bytes);
    const bool far = where.far[m] != 0;
    double seconds = 0;
    if (!prices.surcharges[far]->from_fields)
      seconds = prices.message(traffic[m], where.flights[m], far, prices.common.threads, block).flight;
    if (!far) seconds += copying[plan.messages[m].round];
    if (device && device->in_parts)
      seconds =
          device->flight_of_parts(seconds, bytes, static_cast<double>(traffic[m].run_bytes), where.ranks_on_device);
    found[m] = {seconds, bytes < eager, where.held[m] * seconds};
  }
  return found;
}

}  // namespace haloscope::model
