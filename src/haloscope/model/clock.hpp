// The clock that carries out tracks: events in order of time, so that at any moment all earlier sends are known.
#pragma once

#include <map>
#include <vector>

#include "haloscope/error.hpp"
#include "haloscope/model/lanes.hpp"

namespace haloscope::model {

/// Every track waits for a message: the tracks describe ranks that take turns and cannot represent one another.
struct Stuck : Error {
  Stuck();
};

struct Interval {
  double begin = 0, end = 0;
  Term term = Term::compute;
};

/// When a track did what.
struct Log {
  std::array<std::vector<Interval>, lane_count> lanes;  ///< by Lane
  struct Received {
    double at = 0, flight = 0;  ///< when, and how long it travelled
  };
  std::vector<Received> flights;
  std::vector<double> ends;  ///< of rounds
};

/// Events in order of time: the actor with the earliest clock goes on.
class Clock {
 public:
  /// The tracks must outlive it.
  Clock(const std::vector<Track>& tracks, int rounds);
  /// Carries out everything, once. @throws Stuck on a deadlock. Cost O(events x log(tracks)).
  std::vector<Log> run();

 private:
  using Key = int;  // of what an actor is blocked on
  enum class Beside : std::uint8_t { busy, idle, helping };

  /// One lane of one track (both lanes, without a communication thread).
  struct Actor {
    int track = 0;
    Lane lane = Lane::main;
    Walk walk;
    const Request* request = nullptr;  // the last one
    bool blocked = false;
    double since = 0;  // when it asked
    int version = 0;   // of its next event; earlier ones are void
  };
  struct Event {
    double time = 0;
    std::uint64_t number = 0;
    int actor = 0, version = 0, answer = 0;
    bool operator>(const Event& other) const { return time != other.time ? time > other.time : number > other.number; }
  };
  /// An incoming message's way from one of its sources: `sender` counts the outgoing messages of all tracks, `place` its
  /// receivers.
  struct Route {
    int sender = 0, place = 0;
    Flight flight;
  };
  struct Sender {
    std::vector<double> departures;
    std::vector<std::pair<int, int>> receivers;  // track and message
    std::vector<std::vector<double>> delivered;  // by receiver: when it has fetched what advances only inside calls
    int completed = 0;
  };
  /// An incoming message of a track.
  struct Receiver {
    std::vector<Route> routes;
    int taken = 0;         // received so far
    int seen_number = -1;  // number of the message ...
    double seen_at = 0;    // ... that a call saw first then
  };
  struct Sweeping {
    int actor = -1;
    std::array<double, 3> seconds{};  // by Beside
    double left = 1, since = 0;
  };
  /// One track's state.
  struct State {
    const Track* track = nullptr;
    int first_message = 0;  // of senders_ and receivers_
    int first_done = 0;     // of keys
    std::array<int, lane_count> actors{-1, -1, -1, -1};
    std::vector<int> finished;    // by DoneKeys: rounds in which it is done
    std::vector<double> done_at;  // ... and when it was last
    std::vector<int> joined;
    std::vector<int> given;  // by reduction: how often it gave its numbers
    Beside beside = Beside::busy;
    Sweeping sweeping;
    Log log;
  };
  struct Meeting {
    std::vector<double> given;
    std::vector<std::pair<int, int>> blocked;
  };
  struct Ready {
    std::vector<Key> missing;
    double when = 0;
  };

  void connect(int track);
  Key sent_key(int sender) const { return sender; }
  Key delivered_key(int sender) const { return static_cast<int>(senders_.size()) + sender; }
  Key done_key(const State& state, int done) const {
    return 2 * static_cast<int>(senders_.size()) + state.first_done + done;
  }
  void at(double time, int actor, int answer = 0);
  void go_on(double now, int actor, int answer);
  void serve(double now, int actor);
  void block(int actor, Key key);
  void wake(double now, Key key);
  void wake_all(double now, std::vector<std::pair<int, int>>& blocked);
  void spend(double now, int actor, const std::array<Interval, 2>& intervals, double end);

  void work(double now, int actor);
  void send(double now, int actor);
  void wait(double now, int actor);
  void complete(double now, int actor);
  void test(double now, int actor);
  void meet_barrier(double now, int actor);
  void give_numbers(double now, int actor);
  void take_numbers(double now, int actor);
  void begin_sweep(double now, int actor);
  void end_sweep(double now, int actor);
  void wait_for_lanes(double now, int actor);
  void finish(double now, int actor);
  void join(double now, int actor);
  void choose(double now, int actor);
  Ready readiness(double now, const State& state, int round, const Action& action, bool ask);
  void change_beside(double now, int actor, Beside to);
  double arrival(const State& state, const Receiver& receiver, const Route& route, double waits_from) const;
  bool is_here(const State& state, int message, double now);
  bool is_fetched(const State& state, const Action& action, double now) const;
  double see(Receiver& receiver, double now);

  Sender& sender(const State& state, int message) {
    return senders_[static_cast<std::size_t>(state.first_message + message)];
  }
  Receiver& receiver(const State& state, int message) {
    return receivers_[static_cast<std::size_t>(state.first_message + message)];
  }
  State& state_of(int actor) {
    return states_[static_cast<std::size_t>(actors_[static_cast<std::size_t>(actor)].track)];
  }

  std::vector<Event> events_;  // a heap
  std::uint64_t count_ = 0;
  std::vector<Actor> actors_;
  std::vector<State> states_;
  std::vector<Sender> senders_;
  std::vector<Receiver> receivers_;
  std::vector<std::vector<std::pair<int, int>>> blocked_;  // by key: actors, with the version that is
  std::vector<int> at_barrier_;
  std::map<std::pair<int, int>, Meeting> meetings_;  // by reduction and number
};

}  // namespace haloscope::model
