#include "haloscope/simulate/network.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "haloscope/error.hpp"

namespace haloscope::simulate {

namespace {

std::size_t count_of(const std::vector<std::int32_t>& numbers) {
  return numbers.empty() ? 0 : static_cast<std::size_t>(*std::max_element(numbers.begin(), numbers.end())) + 1;
}

bool possible(double value) { return std::isfinite(value) && value >= 0; }

void check(const Segment& s) {
  for (double value : {s.from_bytes, s.latency_s, s.per_byte_s, s.overhead_send_s, s.overhead_receive_s, s.gap_s})
    if (!possible(value)) throw UsageError("a cost of messages is negative or not a number; correct the profile");
  for (double part : {s.held_latency, s.held_per_byte})
    if (!(part >= 0 && part <= 1)) throw UsageError("the receiver-side part of a flight must be 0 to 1");
}

}  // namespace

Flight flight(const NetworkClass& c, std::int64_t bytes, double change) {
  const auto after = std::find_if(c.segments.begin() + 1, c.segments.end(),
                                  [&](const Segment& s) { return s.from_bytes > static_cast<double>(bytes); });
  const Segment& s = *(after - 1);
  const double moving = s.per_byte_s * static_cast<double>(bytes), whole = s.latency_s + moving;
  Flight result;
  result.seconds = std::max(0.0, whole + change);
  result.held_s = whole > 0 ? (s.held_latency * s.latency_s + s.held_per_byte * moving) * result.seconds / whole : 0.0;
  result.overhead_send_s = s.overhead_send_s;
  result.overhead_receive_s = s.overhead_receive_s;
  result.gap_s = s.gap_s;
  result.rendezvous = s.rendezvous;
  return result;
}

void check(const Network& network) {
  for (const NetworkClass& c : network.classes) {
    if (c.segments.empty()) throw UsageError("a network class has no segment; give its latency and time per byte");
    for (std::size_t i = 0; i < c.segments.size(); ++i) {
      check(c.segments[i]);
      if (i > 0 && c.segments[i].from_bytes <= c.segments[i - 1].from_bytes)
        throw UsageError("the segments of a network class must begin at rising numbers of bytes");
    }
    if (!possible(c.shared) || !std::isfinite(c.duplex) || c.duplex < 1 || !std::isfinite(c.overlaps_s))
      throw UsageError("contention needs shared >= 0 and duplex >= 1");
  }
  if (!possible(network.injection_bytes_per_s)) throw UsageError("a node's injection rate must be positive, or 0");
}

Wires::Wires(const Network& network, const std::vector<std::int32_t>& node, const std::vector<std::int32_t>& socket)
    : network_(network), node_(node), socket_(socket) {
  clear();
}

void Wires::clear() {
  sockets_.assign(count_of(socket_), {});
  nodes_.assign(count_of(node_), {});
  links_.assign(count_of(node_), {});
  injection_.assign(count_of(node_), 0);
}

double Wires::arrival(int from, int to, Locality where, const Flight& flight, std::int64_t bytes, double depart) {
  const NetworkClass& c = network_.classes[static_cast<int>(where)];
  double result = depart + flight.seconds;
  if (c.shared > 0) {
    const int way = to > from;
    if (where == Locality::network) {
      result = outside(from, to, c, flight.seconds, depart);
    } else {
      auto& ways = where == Locality::socket ? sockets_[socket_[from]] : nodes_[node_[from]];
      result = inside(ways[way], ways[1 - way], c, flight.seconds, depart);
    }
  }
  if (where == Locality::network && network_.injection_bytes_per_s > 0) {
    double& free = injection_[node_[from]];
    free = std::max(free, depart) + static_cast<double>(bytes) / network_.injection_bytes_per_s;
    result = std::max(result, free + c.segments.front().latency_s);
  }
  return result;
}

/// Inside a node both directions share the memory: each delays the other to the extent that it is half duplex.
double Wires::inside(double& own, double& opposite, const NetworkClass& c, double seconds, double depart) {
  const double start = std::max(depart, own), hold = c.hold(seconds);
  own = start + hold;
  if (c.duplex > 1) opposite = std::max(opposite, depart) + (c.duplex - 1) * hold;
  return start + seconds;
}

/// Between nodes a message queues at its sender's way out and again at its receiver's way in.
double Wires::outside(int from, int to, const NetworkClass& c, double seconds, double depart) {
  auto &source = links_[node_[from]], &target = links_[node_[to]];
  const double start = std::max(depart, source[0]), hold = c.hold(seconds), extra = (c.duplex - 1) * hold;
  source[0] = start + hold;
  const double arrival = std::max(start + seconds, target[1] + hold);
  target[1] = arrival;
  if (extra > 0) {
    source[1] = std::max(source[1], depart) + extra;
    target[0] = std::max(target[0], depart) + extra;
  }
  return arrival;
}

}  // namespace haloscope::simulate
