// The event engine that runs op lists, for simulations and predictions alike: the state of a run and its rules. Used by
// simulator.cpp, small_simulator.cpp, engine.cpp, team.cpp and streams.cpp only.
//
// By the rules of the runner:
//  - one control thread drives both lanes; operations of the comm lane run where an operation of the main lane needs
//    them, in order, and at `progress` as far as they need no waiting; or, with a communication thread, both lanes run
//    side by side and that thread helps to sweep once its lane is done;
//  - a message leaves when its `send` is through; the receiver has it after its flight, or later where the message
//    advances only inside calls (rendezvous), slower while the receiver computes (`efficiency` < 1), or not to its end
//    (`held_s` > 0);
//  - with a device the control thread enqueues operations on its two streams as soon as the host's part before them is
//    done, and otherwise advances its lanes; the streams work in order, concurrently with the host, and synchronise at
//    the end of a program.
//
// A rank advances alone through operations that no other rank sees (its clock runs ahead of the queue). It becomes an
// event where it sends, waits, enters a barrier, polls or, if messages need it, posts: these happen in order of time
// over all ranks. A wait whose messages have all left ends at a known time and needs no further event.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "haloscope/simulate/event_queue.hpp"
#include "haloscope/simulate/log.hpp"
#include "haloscope/simulate/simulator.hpp"

namespace haloscope::simulate {

class Engine {
 public:
  Engine(const Layout& layout, const Network& network, std::vector<std::int32_t> node, std::vector<std::int32_t> socket,
         const std::vector<RankClass>& classes, std::vector<std::int32_t> class_of);
  /// One rank for each op list, whose routes contain their other ends. Nothing delays a message in addition to its
  /// flight.
  explicit Engine(std::vector<OpList> scripts);
  Result run(const Options& options);
  /// The same, with a log of each rank.
  std::vector<Log> run_logged(const Options& options);

 private:
  enum class Blocked : std::uint8_t { no, wait, complete, barrier, main_lane, choice, reduction };
  /// The activity of a communication thread, as far as it affects concurrent sweeps.
  enum class CommState : std::uint8_t { busy, idle, helping };
  /// The phases of one operation of the comm lane concurrent with a team: to begin, its seconds to spend once its wait
  /// has ended, to finish.
  enum class Phase : std::uint8_t { begin, spend, finish };

  struct Rank {
    double clock = 0, next_send = 0;
    std::uint32_t drawn = 0;  ///< random numbers
    std::int32_t script = 0, round = 0, missing = 0;
    std::int32_t program = 0, main = 0, comm = 0;  ///< operations of the program that have finished, per lane
    std::int32_t target = 0;                       ///< finished operations of the comm lane that the main lane needs
    Blocked blocked = Blocked::no;
    Phase phase = Phase::begin;
    bool asking = false, charged = false;
    bool reducing = false;  ///< the next event is the main lane's reduction
  };
  /// A sweep whose speed (seconds for all of it) changes whenever the concurrent work changes.
  struct SharedRateWork {
    double since = 0, left = 0;  ///< the part that was left then; a delay makes it more than 1
    void begin(double now, double late, double seconds) {
      since = now, left = 1 + (seconds > 0 ? late / seconds : 0.0);
    }
    void go_on(double now, double pace) {
      left = pace > 0 ? std::max(0.0, left - (now - since) / pace) : 0.0;
      since = now;
    }
    double end(double pace) const { return since + left * pace; }
  };
  /// The main lane of a rank with a communication thread.
  struct Team {
    SharedRateWork sweep;
    double begun = 0;  ///< The activity of the host's thread of a rank with a device.
    std::uint32_t version = 0;
    CommState beside = CommState::busy;
    bool sweeping = false, reducing = false, blocked = false, done = false, comm_done = false;
  };
  /// The current work of the host's thread that drives a device.
  enum class HostState : std::uint8_t { nothing, handing_over, paying, comm, main };
  /// The two streams of a rank's device, and the host's thread that enqueues their work.
  struct Device {
    struct Stream {
      double begun = 0;
      std::int32_t enqueued = 0, done = 0;  ///< operations: enqueued of the host's program, finished of the streams'
      std::uint32_t version = 0;
      bool working = false;
    };
    std::array<Stream, stream_count> streams;
    SharedRateWork sweep;           ///< on the sweep stream
    std::int32_t fed = 0, met = 0;  ///< programs: fully enqueued, finished on both streams
    std::uint32_t version = 0;      ///< of the host's next event
    HostState feeding = HostState::nothing;
    std::uint8_t stream = 0;  ///< the stream on which the host enqueues an operation
    bool beside = false;      ///< a kernel of the halo stream runs
  };
  struct InFlight {
    double sent = 0, arrival = 0;  ///< arrival < 0: has not started to travel
    std::int32_t next = none;
    Locality where = Locality::socket;
  };
  /// One execution of a reduction: the number of ranks that have contributed, the time of the last one, the waiting
  /// ranks.
  struct ReductionState {
    std::int32_t contributed = 0;
    double last = 0;
    std::vector<std::int32_t> waiting;
  };
  /// The end of an operation's wait: in flight from `late` on, complete at `end`.
  struct Until {
    double late = 0, end = 0;
  };
  static constexpr std::int32_t none = -1, awaited = -2;
  static constexpr int actors_of_a_rank = 3;
  struct Inbox {
    std::int32_t head = none, tail = none;  ///< parcels; tail is `awaited` where the rank waits and the box is empty
  };
  struct Outbox {
    std::int32_t unfetched = 0;  ///< rendezvous messages that have not been received
    double last = 0;
  };

  void measure_scripts();
  void match(const std::vector<RankClass>& classes);
  int counterpart(const Route& sent, const OpList& to) const;
  void reset(const Options& options);
  void carry_out();
  [[noreturn]] void stuck() const;

  // The order of operations: engine.cpp with one control thread, team.cpp with a communication thread.
  void start(int r);
  bool next_program(int r);
  void advance(int r);
  void ask(int r);
  void on_event(int r);
  bool perform(int r, const PricedOp& op);
  void performed(int r, const PricedOp& op);
  void release(int r, const PricedOp& step, const Until& until);
  void resume(int r, const Until& until);
  void start_team(int r);
  void begin_comm(int r);
  void on_comm_event(int r);
  void finish_comm(int r);
  void begin_main(int r, double now);
  void on_main_event(int r, double now);
  void beside(int r, double now, CommState state);
  void join(int r, double now);
  double pace(int r) const;

  void feed(int r);
  bool hand_over(int r);
  void choose(int r);
  bool next_fed(int r);
  bool may_begin(int r, const Needs& needs) const;
  double known_ready(int r, const PricedOp& step, const Needs& needs, bool ask);
  double known_arrival(int r, const PricedOp& op);
  void stop_asking(int r);
  void begin_on_host(int r, Lane lane);
  void pay(int r);
  void on_host_event(int r, double now, std::uint32_t version);
  void host_looks(int r, double time);
  void begin_on_stream(int r, int s, double now);
  void on_stream_event(int r, int s, double now, std::uint32_t version);
  void kernel_beside(int r, double now, bool at_work);
  double sweep_pace(int r) const;
  void meet_streams(int r, double now);
  const Lanes& streamed(int r) const;
  double& done_at(int r, int s, int place) {
    return done_at_[(static_cast<std::size_t>(r) * stream_count + s) * longest_stream_ + place];
  }

  // Operations.
  void send(int r, const PricedOp& op);
  void post(int r, const PricedOp& op);
  bool wait(int r, const PricedOp& op);
  Until received(int r, const PricedOp& op);
  bool complete(int r, const PricedOp& op);
  double all_fetched(int r, const PricedOp& op) const;
  bool test(int r, const PricedOp& op);
  bool meet(int r);
  bool reduce(int r, const PricedOp& op);
  bool reduced(int r, const PricedOp& op);
  Until combined(int r, const ReductionState& meeting, const RankReduction& reduction) const;
  bool perform_main(int r, const PricedOp& op);
  void resume_main(int r, const Until& until);
  void deliver(int from, const End& to, const Route& route, const Flight& flight, Locality where, double depart);
  void start_flight(int r, std::int32_t message, InFlight& parcel, double time);
  double arrival(int r, const Flight& flight, const InFlight& parcel) const;
  void fetched(const End& from, double time);

  const Lanes& lanes(const Rank& rank) const { return scripts_[rank.script].programs[rank.program]; }
  const PricedOp& comm_op(const Rank& rank) const { return lanes(rank).comm[rank.comm]; }
  const PricedOp& main_op(const Rank& rank) const { return lanes(rank).main[rank.main]; }
  /// True if an operation of the comm lane must happen in order of time over all ranks.
  bool interacts(const PricedOp& s) const {
    return s.kind == OpKind::send || s.kind == OpKind::wait || s.kind == OpKind::barrier ||
           (s.kind == OpKind::complete && rendezvous_) || (s.kind == OpKind::post && posting_);
  }
  static bool reduces(const PricedOp& s) { return s.kind == OpKind::reduce || s.kind == OpKind::reduced; }
  /// True if its seconds pass before others see it; the seconds of waits pass afterwards.
  static bool pays_first(const PricedOp& s) { return s.kind == OpKind::send || s.kind == OpKind::post; }
  /// The position of a rank in the process grid; ranks whose messages contain their other ends need none.
  std::array<int, 3> place_of(int r) const { return layout_ ? layout_->coords(r) : std::array<int, 3>{}; }
  /// The other end of a message of rank r, which is at `place`. route: of the message.
  End other_end(int r, const std::array<int, 3>& place, const Route& route, std::int32_t message) const {
    if (!layout_) return route.other;
    const int rank = peer(place, route);
    return {rank, boxes_[kind_of_[ranks_[r].script]][message * kinds_ + kind_of_[ranks_[rank].script]]};
  }
  /// The rank at the other end of a message of the rank at `place` in the process grid.
  int peer(const std::array<int, 3>& place, const Route& route) const {
    const ProcessGrid& n = layout_->ranks();
    std::array<int, 3> at;
    for (int d = 0; d < 3; ++d) {
      at[d] = place[d] + route.offset[d];
      if (at[d] >= n[d]) at[d] -= n[d];
    }
    return layout_->rank_at(at);
  }
  std::size_t inbox(int r, int box) const { return static_cast<std::size_t>(r) * incoming_ + box; }
  std::size_t outbox(int r, int box) const { return static_cast<std::size_t>(r) * outgoing_ + box; }
  double spend(int r, const PricedOp& op);
  void work(int r, const PricedOp& op);
  Lane lane_of(int r, const PricedOp& op) const;
  /// Logs the activity of a lane, if logs were requested.
  void note(int r, Lane lane, double begin, double end, const PricedOp& op, Activity doing) {
    if (!logs_.empty() && end > begin)
      logs_[r].lanes[static_cast<std::size_t>(lane)].push_back({begin, end, op.number, doing});
  }
  /// The same for the thread that an operation of the host runs on.
  void note(int r, double begin, double end, const PricedOp& op, Activity doing) {
    if (!logs_.empty()) note(r, lane_of(r, op), begin, end, op, doing);
  }
  double delay(int r, double seconds);
  void count(int r, OpKind kind, double seconds) {
    if (ranks_[r].round >= options_.counted_from) result_.seconds[static_cast<int>(kind)] += seconds;
  }
  /// lane: 0 the rank's own thread, 1 the main lane of a team or a device's sweep stream, 2 its halo stream.
  void push(double time, int r, int lane = 0, std::uint32_t version = 0) {
    queue_.push({time, actors_of_a_rank * r + lane, version});
  }
  void fetch_ahead(const Event& next) const;
  void dispatch(const Event& event);
  std::int32_t new_parcel(const InFlight& parcel);

  const std::optional<Layout> layout_;
  const Network network_;
  const std::vector<std::int32_t> node_, socket_, class_of_;
  std::vector<OpList> scripts_;
  std::vector<std::int32_t> kind_of_;             ///< per script: number of its plan
  std::vector<std::vector<std::int16_t>> boxes_;  ///< per plan, message x plan of the peer: its box there
  int kinds_ = 0, incoming_ = 0, outgoing_ = 0;   ///< max boxes of a rank
  int longest_stream_ = 0;
  bool rendezvous_ = false, posting_ = false, teams_ = false, devices_ = false;
  Wires wires_;
  Options options_;
  Result result_;
  std::vector<Log> logs_;  ///< by rank; empty: not requested
  std::vector<Rank> ranks_;
  std::vector<Team> team_;
  std::vector<Device> device_;
  std::vector<double> done_at_;  ///< by rank, stream and position: of the streams' program
  std::vector<Inbox> inboxes_;
  std::vector<Outbox> outboxes_;      ///< only with rendezvous
  std::vector<std::uint8_t> posted_;  ///< per inbox, only where posting is an event
  std::vector<InFlight> parcels_;
  std::int32_t free_ = none;
  std::vector<std::int32_t> met_;                      ///< at the barrier
  int reductions_ = 0;                                 ///< max of a rank
  std::vector<std::vector<ReductionState>> meetings_;  ///< by reduction: its executions so far
  std::vector<std::int32_t> contributions_;            ///< by rank and reduction: the number of its contributions
  int finished_ = 0;
  double now_ = 0;  ///< time of the current event
  EventQueue queue_;
};

}  // namespace haloscope::simulate
