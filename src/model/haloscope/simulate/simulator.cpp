#include "haloscope/simulate/simulator.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "haloscope/error.hpp"
#include "haloscope/simulate/engine.hpp"

namespace haloscope::simulate {

namespace {

void check_lengths(const Layout& layout, const std::vector<std::int32_t>& numbers, const char* name) {
  if (static_cast<int>(numbers.size()) != layout.size())
    throw UsageError(std::to_string(numbers.size()) + " numbers of " + name + " for " + std::to_string(layout.size()) +
                     " ranks; give one per rank");
  if (std::any_of(numbers.begin(), numbers.end(), [](std::int32_t n) { return n < 0; }))
    throw UsageError(std::string("a number of ") + name + " is negative; they count from 0");
}

void check(const Options& o) {
  if (o.rounds < 1 || o.counted_from < 0 || o.counted_from >= o.rounds)
    throw UsageError(std::to_string(o.rounds) + " rounds, counted from " + std::to_string(o.counted_from) +
                     "; simulate at least one, and count from one of them");
  if (!(std::isfinite(o.noise_s) && o.noise_s >= 0 && std::isfinite(o.noise_share) && o.noise_share >= 0))
    throw UsageError("noise must not be negative; 0 is none");
  if (!(o.efficiency > 0 && o.efficiency <= 1)) throw UsageError("the efficiency of overlap must be above 0, up to 1");
}

}  // namespace

Simulator::Simulator(const Layout& layout, const Network& network, std::vector<std::int32_t> node,
                     std::vector<std::int32_t> socket, const std::vector<RankClass>& classes,
                     std::vector<std::int32_t> class_of) {
  check(network);
  check_lengths(layout, node, "nodes");
  check_lengths(layout, socket, "sockets");
  check_lengths(layout, class_of, "classes");
  for (const std::int32_t c : class_of)
    if (c >= static_cast<std::int32_t>(classes.size())) throw UsageError("a rank is of a class that does not exist");
  engine_ = std::make_unique<Engine>(layout, network, std::move(node), std::move(socket), classes, std::move(class_of));
}

Simulator::~Simulator() = default;

Result Simulator::run(const Options& options) {
  check(options);
  return engine_->run(options);
}

Engine::Engine(const Layout& layout, const Network& network, std::vector<std::int32_t> node,
               std::vector<std::int32_t> socket, const std::vector<RankClass>& classes,
               std::vector<std::int32_t> class_of)
    : layout_(layout),
      network_(network),
      node_(std::move(node)),
      socket_(std::move(socket)),
      class_of_(std::move(class_of)),
      wires_(network_, node_, socket_) {
  for (const RankClass& ranks : classes) scripts_.push_back(make_op_list(layout, ranks, network_));
  measure_scripts();
  match(classes);
}

/// Computes the room that all ranks need, and the rules that can come into play.
void Engine::measure_scripts() {
  for (const OpList& script : scripts_) {
    incoming_ = std::max(incoming_, script.incoming);
    outgoing_ = std::max(outgoing_, script.outgoing);
    reductions_ = std::max(reductions_, static_cast<int>(script.reductions.size()));
    for (const Lanes& lanes : script.programs) {
      teams_ = teams_ || lanes.comm_thread;
      devices_ = devices_ || lanes.device;
      for (const auto& stream : lanes.streams)
        longest_stream_ = std::max(longest_stream_, static_cast<int>(stream.size()));
    }
    for (const Route& route : script.routes)
      for (const Flight& flight : route.flights) rendezvous_ = rendezvous_ || flight.rendezvous;
  }
}

/// Finds for each message of each kind of ranks (ranks with the same plans) its box at a peer of each kind.
void Engine::match(const std::vector<RankClass>& classes) {
  std::map<std::vector<const Plan*>, std::int32_t> known;
  std::vector<const OpList*> first;
  for (std::size_t c = 0; c < classes.size(); ++c) {
    const auto found = known.try_emplace(classes[c].plans, static_cast<std::int32_t>(known.size()));
    if (found.second) first.push_back(&scripts_[c]);
    kind_of_.push_back(found.first->second);
  }
  kinds_ = static_cast<int>(first.size());
  for (const OpList* from : first) {
    auto& boxes = boxes_.emplace_back();
    for (const Route& route : from->routes)
      for (const OpList* to : first) boxes.push_back(static_cast<std::int16_t>(counterpart(route, *to)));
  }
  for (int r = 0; r < layout_->size(); ++r) {
    const OpList& script = scripts_[class_of_[r]];
    for (std::size_t m = 0; m < script.routes.size(); ++m) {
      const int kind = kind_of_[class_of_[peer(layout_->coords(r), script.routes[m])]];
      if (boxes_[kind_of_[class_of_[r]]][m * kinds_ + kind] < 0)
        throw UsageError("message " + std::to_string(m) + " of rank " + std::to_string(r) +
                         " has no counterpart at its peer; give each rank the class of its own plan");
    }
  }
}

/// The box of a message at its other end, a rank with op list `to`; none where such a peer cannot be.
int Engine::counterpart(const Route& sent, const OpList& to) const {
  for (const Route& other : to.routes) {
    if (other.out == sent.out || other.plan != sent.plan || other.tag != sent.tag || other.round != sent.round ||
        other.bytes != sent.bytes)
      continue;
    bool opposite = true;
    for (int d = 0; d < 3; ++d) opposite = opposite && (other.offset[d] + sent.offset[d]) % layout_->ranks()[d] == 0;
    if (opposite) return other.box;
  }
  return none;
}

void Engine::reset(const Options& options) {
  const std::size_t count = class_of_.size();
  options_ = options;
  posting_ = rendezvous_ && options.by_itself;
  result_ = Result{};
  logs_.clear();
  result_.ends.assign(count * options.rounds, 0);
  ranks_.assign(count, Rank{});
  for (std::size_t r = 0; r < count; ++r) ranks_[r].script = class_of_[r];
  team_.assign(teams_ ? count : 0, Team{});
  device_.assign(devices_ ? count : 0, Device{});
  done_at_.assign(devices_ ? count * stream_count * static_cast<std::size_t>(longest_stream_) : 0, 0.0);
  inboxes_.assign(count * incoming_, Inbox{});
  outboxes_.assign(rendezvous_ ? count * outgoing_ : 0, Outbox{});
  posted_.assign(posting_ ? inboxes_.size() : 0, 0);
  parcels_.clear();
  parcels_.reserve(inboxes_.size());
  free_ = none;
  met_.clear();
  met_.reserve(count);
  meetings_.assign(static_cast<std::size_t>(reductions_), {});
  contributions_.assign(count * static_cast<std::size_t>(reductions_), 0);
  finished_ = 0;
  now_ = 0;
  queue_ = EventQueue{};
  queue_.reserve(2 * count);
  wires_.clear();
}

Result Engine::run(const Options& options) {
  reset(options);
  carry_out();
  return std::move(result_);
}

void Engine::carry_out() {
  const auto count = static_cast<int>(ranks_.size());
  for (int r = 0; r < count; ++r) start(r);
  while (!queue_.empty()) {
    const Event event = queue_.pop();
    if (!queue_.empty()) fetch_ahead(queue_.next());
    dispatch(event);
  }
  if (finished_ != count) stuck();
}

/// Fetches the data of the next event into the cache during this one: ranks come in no order of memory.
void Engine::fetch_ahead(const Event& next) const {
  const int r = next.actor / actors_of_a_rank;
  __builtin_prefetch(&ranks_[r]);
  constexpr int line = 64 / sizeof(Inbox);
  for (int box = 0; box < incoming_; box += line) __builtin_prefetch(&inboxes_[inbox(r, box)]);
}

void Engine::dispatch(const Event& event) {
  now_ = event.time;
  const int r = event.actor / actors_of_a_rank, lane = event.actor % actors_of_a_rank;
  if (devices_ && scripts_[ranks_[r].script].programs.front().device) {
    if (lane == 0) return on_host_event(r, event.time, event.version);
    return on_stream_event(r, lane - 1, event.time, event.version);
  }
  if (lane == 0) return on_event(r);
  if (event.version == team_[r].version) on_main_event(r, event.time);
}

void Engine::stuck() const {
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const Rank& rank = ranks_[r];
    if (rank.blocked == Blocked::no) continue;
    const std::string operation = rank.blocked == Blocked::reduction ? to_string(main_op(rank).kind)
                                  : rank.comm < static_cast<int>(lanes(rank).comm.size())
                                      ? to_string(comm_op(rank).kind)
                                      : "end";
    throw Deadlock("rank " + std::to_string(r) + " waits forever in round " + std::to_string(rank.round) +
                   " at operation '" + operation + "': the programs of these ranks do not fit together");
  }
  throw Deadlock("ranks wait for each other forever: their programs do not fit together");
}

}  // namespace haloscope::simulate
