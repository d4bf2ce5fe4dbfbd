#include "haloscope/model/op_list.hpp"

#include <algorithm>

namespace haloscope::model {

namespace {

using simulate::OpList;
using simulate::Route;

std::size_t index(int number) { return static_cast<std::size_t>(number); }

/// Routes of one timeline's messages, by message.
struct Routes {
  std::vector<std::vector<std::int32_t>> out, in;
};

simulate::Flight flight_of(const Flight& flight) {
  simulate::Flight found;
  found.seconds = flight.seconds;
  found.held_s = flight.held;
  found.rendezvous = !flight.by_itself;
  return found;
}

/// Adds one end of a message. @return the number of its route.
std::int32_t add_route(OpList& script, bool out, const Flight& flight) {
  Route route;
  route.out = out;
  route.box = out ? script.outgoing++ : script.incoming++;
  route.flights.fill(flight_of(flight));
  script.routes.push_back(route);
  return static_cast<std::int32_t>(script.routes.size()) - 1;
}

/// Adds the routes of all messages to the op lists, from each possible sender to each receiver.
std::vector<Routes> connect(const std::vector<Timeline>& tracks, std::vector<OpList>& scripts) {
  std::vector<Routes> routes(tracks.size());
  for (std::size_t t = 0; t < tracks.size(); ++t) {
    routes[t].out.resize(tracks[t].flights.size());
    routes[t].in.resize(tracks[t].sources.size());
  }
  for (std::size_t t = 0; t < tracks.size(); ++t)
    for (std::size_t m = 0; m < tracks[t].sources.size(); ++m)
      for (const Source& source : tracks[t].sources[m]) {
        const auto from = index(source.from), message = index(source.message);
        const Flight& flight = tracks[from].flights[message];
        const std::int32_t out = add_route(scripts[from], true, flight), in = add_route(scripts[t], false, flight);
        Route &sent = scripts[from].routes[index(out)], &received = scripts[t].routes[index(in)];
        sent.other = {static_cast<std::int32_t>(t), received.box};
        received.other = {source.from, sent.box};
        routes[from].out[message].push_back(out);
        routes[t].in[m].push_back(in);
      }
  return routes;
}

OpKind kind_of(const TimedOp& action) {
  switch (action.deed) {
    case Deed::work:
      return action.copying ? OpKind::transfer : OpKind::copy;
    case Deed::sweep:
      return OpKind::sweep;
    case Deed::send:
      return OpKind::send;
    case Deed::wait:
      return OpKind::wait;
    case Deed::complete:
      return OpKind::complete;
    case Deed::progress:
      return OpKind::progress;
    case Deed::barrier:
      return OpKind::barrier;
    case Deed::reduce:
      return OpKind::reduce;
    case Deed::reduced:
      return OpKind::reduced;
  }
  return OpKind::copy;
}

/// One timeline's op list, as far as its routes.
class Writer {
 public:
  Writer(const Timeline& track, const Routes& routes, OpList& script)
      : routes_(routes), script_(script), streams_(track.has_streams()), comm_thread_(track.comm_thread) {}

  /// Adds a program. number: of its first operation in the op list; first: the number that `after` counts from.
  void add(std::span<const TimedOp> actions, int number, int first) {
    std::vector<simulate::PlacedOp> ops;
    std::vector<std::vector<std::int32_t>> after;
    ops.reserve(actions.size());
    after.reserve(actions.size());
    for (const TimedOp& action : actions) {
      for (std::int32_t& before : after.emplace_back(action.after)) before -= first;
      ops.push_back({action.lane, after.back(), write(action, number++)});
    }
    script_.programs.push_back(simulate::make_lanes(ops, comm_thread_, streams_));
  }

 private:
  simulate::PricedOp write(const TimedOp& action, int number) {
    simulate::PricedOp op{kind_of(action), action.cost()};
    op.number = number;
    op.first = static_cast<std::int32_t>(script_.messages.size());
    for (const int m : action.messages) {
      const auto& routes = (action.deed == Deed::wait ? routes_.in : routes_.out)[index(m)];
      script_.messages.insert(script_.messages.end(), routes.begin(), routes.end());
    }
    op.count = static_cast<std::int32_t>(script_.messages.size()) - op.first;
    if (action.reduction >= 0) reduce(action, op);
    return op;
  }

  void reduce(const TimedOp& action, simulate::PricedOp& op) {
    op.first = action.reduction;
    auto& reductions = script_.reductions;
    reductions.resize(std::max(reductions.size(), index(action.reduction) + 1));
    reductions[index(action.reduction)].seconds = action.collective_s;
    if (action.deed == Deed::reduce) reductions[index(action.reduction)].waits = action.waits;
  }

  const Routes& routes_;
  OpList& script_;
  bool streams_, comm_thread_;
};

}  // namespace

std::vector<OpList> make_op_lists(const std::vector<Timeline>& tracks) {
  std::vector<OpList> scripts(tracks.size());
  const std::vector<Routes> routes = connect(tracks, scripts);
  for (std::size_t t = 0; t < tracks.size(); ++t) {
    const Timeline& track = tracks[t];
    OpList& script = scripts[t];
    Writer writer(track, routes[t], script);
    script.notice_s = track.notice_s;
    script.opening = track.opening.empty() ? 0 : 1;
    script.body = static_cast<int>(track.ends.size());
    const auto opening = static_cast<int>(track.opening.size());
    if (script.opening > 0) writer.add(track.opening, 0, 0);
    int first = 0;
    for (const int end : track.ends) {
      writer.add({track.body.data() + first, index(end - first)}, opening + first, first);
      first = end;
    }
  }
  return scripts;
}

}  // namespace haloscope::model
