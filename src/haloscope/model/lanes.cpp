#include "haloscope/model/lanes.hpp"

#include <algorithm>

namespace haloscope::model {

namespace {

using Ask = Request::Kind;

/// A few requests in a row.
class Few {
 public:
  void add(const Request& request) { requests_[count_++] = request; }
  const Request* begin() const { return requests_.data(); }
  const Request* end() const { return requests_.data() + count_; }

 private:
  std::array<Request, 3> requests_;
  std::size_t count_ = 0;
};

Few perform(const Action& action) {
  Few few;
  if (action.deed == Deed::wait) few.add({Ask::wait, &action});
  if (action.deed == Deed::complete) few.add({Ask::complete, &action});
  if (action.deed == Deed::barrier) few.add({Ask::barrier, &action});
  if (!action.parts.empty()) few.add({Ask::work, &action, action.parts.all()});
  if (action.deed == Deed::send) few.add({Ask::send, &action});
  return few;
}

Few reduce(const Action& action) {
  Few few;
  few.add({Ask::work, &action, action.parts.all()});
  if (action.deed == Deed::reduce) few.add({Ask::reduce, &action});
  if (action.deed == Deed::reduced || action.waits) few.add({Ask::reduced, &action});
  return few;
}

/// A sweep beside which nothing happens. part: lives until the request is answered.
Request computing(const Action& action, Part& part) {
  part = {Term::compute, action.sweep[2]};
  return {Ask::work, &action, {&part, part.seconds > 0 ? 1u : 0u}};
}

Request doing(int key) {
  Request request{Ask::done};
  request.key = key;
  return request;
}

Request awaiting(int round, std::span<const int> keys) {
  Request request{Ask::after};
  request.round = round;
  request.keys = keys;
  return request;
}

bool all_done(const std::vector<char>& done, const std::vector<int>& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](int i) { return done[static_cast<std::size_t>(i)] != 0; });
}

/// A program's place in a list of actions, and those of its comm lane.
struct Stretch {
  const std::vector<Action>* actions;
  std::size_t first, end;
  bool ends_round;
  std::vector<std::size_t> comm;

  Stretch(const std::vector<Action>& all, std::size_t begin, std::size_t stop)
      : actions(&all), first(begin), end(stop), ends_round(false) {
    for (std::size_t i = begin; i < stop; ++i)
      if (all[i].lane == Lane::comm) comm.push_back(i);
  }
};

std::vector<Stretch> stretches_of(const Track& track) {
  std::vector<Stretch> found;
  std::size_t first = 0;
  for (const int end : track.ends) {
    found.emplace_back(track.body, first, static_cast<std::size_t>(end));
    first = static_cast<std::size_t>(end);
  }
  found.back().ends_round = true;
  return found;
}

/// Both lanes on one control thread, as Runner::run_fork_join has it.
Walk one_thread(const Track& track, int rounds) {
  const std::vector<Stretch> body = stretches_of(track);
  const Stretch opening(track.opening, 0, track.opening.size());
  const int programs = rounds * static_cast<int>(body.size());
  std::vector<char> done(std::max(track.body.size(), track.opening.size()));
  Part part;
  for (int p = track.opening.empty() ? 0 : -1; p < programs; ++p) {
    const Stretch& program = p < 0 ? opening : body[static_cast<std::size_t>(p) % body.size()];
    const std::vector<Action>& actions = *program.actions;
    const std::vector<std::size_t>& comm = program.comm;
    std::fill(done.begin() + static_cast<long>(program.first), done.begin() + static_cast<long>(program.end), 0);
    std::size_t place = 0;
    for (std::size_t i = program.first; i < program.end; ++i) {
      const Action& action = actions[i];
      if (action.lane == Lane::comm) continue;
      for (const int before : action.after)
        while (!done[static_cast<std::size_t>(before)]) {
          for (const Request& request : perform(actions[comm[place]])) co_yield request;
          done[comm[place++]] = 1;
        }
      if (action.deed == Deed::progress) {
        co_yield Request{Ask::work, &action, action.parts.all()};
        while (place < comm.size() && all_done(done, actions[comm[place]].after)) {
          const Action& following = actions[comm[place]];
          const bool asks = following.deed == Deed::wait || following.deed == Deed::complete;
          if (following.deed == Deed::barrier) break;
          if (asks && !(co_yield Request{Ask::test, &following})) break;
          for (const Request& request : perform(following)) co_yield request;
          done[comm[place++]] = 1;
        }
      } else if (action.reduction >= 0) {
        for (const Request& request : reduce(action)) co_yield request;
      } else {
        co_yield computing(action, part);
      }
      done[i] = 1;
    }
    for (; place < comm.size(); ++place)
      for (const Request& request : perform(actions[comm[place]])) co_yield request;
    if (program.ends_round) co_yield Request{Ask::round};
  }
}

Walk comm_lane(const Track& track, int rounds) {
  const DoneKeys keys{static_cast<int>(track.body.size())};
  const std::vector<Stretch> body = stretches_of(track);
  for (int round = 0; round < rounds; ++round)
    for (const Stretch& program : body) {
      for (std::size_t i = program.first; i < program.end; ++i) {
        const Action& action = track.body[i];
        if (action.lane != Lane::comm) continue;
        co_yield awaiting(round, action.after);
        for (const Request& request : perform(action)) co_yield request;
        co_yield doing(static_cast<int>(i));
      }
      co_yield doing(keys.of_comm(static_cast<int>(program.first)));
      co_yield Request{Ask::join};
    }
}

Walk main_lane(const Track& track, int rounds) {
  const DoneKeys keys{static_cast<int>(track.body.size())};
  const std::vector<Stretch> body = stretches_of(track);
  for (int round = 0; round < rounds; ++round) {
    for (const Stretch& program : body) {
      const int comm[]{keys.of_comm(static_cast<int>(program.first))};
      for (std::size_t i = program.first; i < program.end; ++i) {
        const Action& action = track.body[i];
        if (action.lane == Lane::comm) continue;
        co_yield awaiting(round, action.after);
        if (action.deed == Deed::sweep) co_yield Request{Ask::sweep, &action};
        if (action.reduction >= 0) {  // by the thread that communicates, once it has done that
          co_yield awaiting(round, comm);
          for (const Request& request : reduce(action)) co_yield request;
        }
        co_yield doing(static_cast<int>(i));
      }
      co_yield Request{Ask::join};
    }
    co_yield Request{Ask::round};
  }
}

/// What is left of a round's lanes.
struct Left {
  std::array<std::vector<int>, lane_count> actions;  // last first
  std::vector<int>& operator[](Lane lane) { return actions[static_cast<std::size_t>(lane)]; }
  bool any() const {
    return std::any_of(actions.begin(), actions.end(), [](const auto& lane) { return !lane.empty(); });
  }
};

Left whole_round(const Track& track) {
  Left left;
  for (std::size_t i = track.body.size(); i-- > 0;) left[track.body[i].lane].push_back(static_cast<int>(i));
  return left;
}

/// The stream whose next operation can be handed over; main: none.
Lane ready_stream(const Track& track, Left& left, const std::vector<char>& done) {
  for (const Lane stream : {Lane::sweep_stream, Lane::halo_stream})
    if (!left[stream].empty() && all_done(done, track.body[static_cast<std::size_t>(left[stream].back())].after))
      return stream;
  return Lane::main;
}

Request choosing(const Track& track, Left& left, const std::vector<char>& done, int round) {
  Request request{Ask::choose};
  request.round = round;
  std::size_t options = 0;
  for (const Lane lane : {Lane::comm, Lane::main})
    if (!left[lane].empty() && all_done(done, track.body[static_cast<std::size_t>(left[lane].back())].after))
      request.options[options++] = left[lane].back();
  return request;
}

/// The host's thread beside a device, as Runner::run_with_device has it.
Walk feeder(const Track& track, int rounds) {
  const DoneKeys keys{static_cast<int>(track.body.size())};
  const auto action = [&](int i) -> const Action& { return track.body[static_cast<std::size_t>(i)]; };
  Part part;
  for (int round = 0; round < rounds; ++round) {
    std::vector<char> done(track.body.size(), 0);  // of the streams' operations: handed over
    Left left = whole_round(track);
    while (left.any()) {
      const Lane stream = ready_stream(track, left, done);
      int i = -1;
      if (on_device(stream)) {
        i = left[stream].back();
        left[stream].pop_back();
        part = {Term::launch, action(i).hand_s};
        co_yield Request{Ask::work, &action(i), {&part, part.seconds > 0 ? 1u : 0u}};
        co_yield doing(keys.of_handing(i));
      } else {
        i = co_yield choosing(track, left, done, round);
        if (action(i).reduction >= 0) {
          for (const Request& request : reduce(action(i))) co_yield request;
        } else {
          for (const Request& request : perform(action(i))) co_yield request;
          co_yield computing(action(i), part);
        }
        co_yield doing(i);
        left[action(i).lane].pop_back();
      }
      done[static_cast<std::size_t>(i)] = 1;
    }
  }
}

/// One stream: its operations in order, each once it has been handed over and those before it on the other are done.
Walk stream_lane(const Track& track, int rounds, Lane stream) {
  const DoneKeys keys{static_cast<int>(track.body.size())};
  std::vector<int> needed;
  Parts parts;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < track.body.size(); ++i) {
      const Action& action = track.body[i];
      if (action.lane != stream) continue;
      needed = {keys.of_handing(static_cast<int>(i))};
      for (const int before : action.after) {
        const Lane other = track.body[static_cast<std::size_t>(before)].lane;
        if (on_device(other) && other != stream) needed.push_back(before);
      }
      co_yield awaiting(round, needed);
      if (action.deed == Deed::sweep && stream == Lane::sweep_stream) {
        co_yield Request{Ask::sweep, &action};
      } else {
        parts = action.parts;
        parts.add(Term::compute, action.sweep[2]);
        co_yield Request{action.copying ? Ask::copying : Ask::work, &action, parts.all()};
      }
      co_yield doing(static_cast<int>(i));
    }
    co_yield Request{Ask::join};
    if (stream == Lane::sweep_stream) co_yield Request{Ask::round};
  }
}

}  // namespace

std::vector<std::pair<Lane, Walk>> walk_lanes(const Track& track, int rounds) {
  std::vector<std::pair<Lane, Walk>> lanes;
  if (track.has_streams()) {
    lanes.emplace_back(Lane::main, feeder(track, rounds));
    for (const Lane stream : {Lane::sweep_stream, Lane::halo_stream})
      lanes.emplace_back(stream, stream_lane(track, rounds, stream));
  } else if (track.comm_thread) {
    lanes.emplace_back(Lane::main, main_lane(track, rounds));
    lanes.emplace_back(Lane::comm, comm_lane(track, rounds));
  } else {
    lanes.emplace_back(Lane::main, one_thread(track, rounds));
  }
  return lanes;
}

}  // namespace haloscope::model
