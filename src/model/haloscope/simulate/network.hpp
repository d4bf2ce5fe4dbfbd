// Costs of messages by the locality of their ends: LogGOPS parameters, contention of shared resources, injection of
// nodes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace haloscope::simulate {

/// Closeness of the ends of a message, closest first.
enum class Locality : std::uint8_t { socket, node, network };
constexpr int places = 3;

/// Parameters of one protocol: messages of `from_bytes` or more, up to the next segment. Seconds.
///
/// LogGOPS: L = latency_s, G = per_byte_s, o = the overheads, g = gap_s, S = from_bytes of the first rendezvous
/// segment. The receiver-side part of a flight, which the receiver must spend in a call in any case (O of
/// LogGOPS: cores that copy), is held_latency of its latency and held_per_byte of its bytes' time, both 0 to 1. Source:
/// Hoefler, Schneider, Lumsdaine, "LogGOPSim", HPDC 2010, section 2.
struct Segment {
  double from_bytes = 0;
  double latency_s = 0, per_byte_s = 0;
  double overhead_send_s = 0, overhead_receive_s = 0;  ///< the thread is busy, per message
  double gap_s = 0;                                    ///< min time between two sends of one rank
  double held_latency = 0, held_per_byte = 0;
  bool rendezvous = false;  ///< travels only once the receiver has posted it and calls into the library
};

/// Messages of one locality. One of t seconds alone occupies its shared resource for t - overlaps_s. Of m concurrent
/// ones the same way each further one takes `shared` of that, opposite ones `duplex` - 1 of it. See model/network.hpp.
struct NetworkClass {
  std::vector<Segment> segments{Segment{}};  ///< rising; the first also serves fewer bytes
  double shared = 0, duplex = 1, overlaps_s = 0;

  double hold(double seconds) const { return shared * std::max(0.0, seconds - overlaps_s); }
};

struct Network {
  std::array<NetworkClass, places> classes;
  double injection_bytes_per_s = 0;  ///< of a node, shared by its ranks (max-rate: Gropp et al. 2016); 0 = no limit
};

/// One message between two ranks of known locality.
struct Flight {
  double seconds = 0, held_s = 0, overhead_send_s = 0, overhead_receive_s = 0, gap_s = 0;
  bool rendezvous = false;
};

/// The flight of `bytes` bytes. change: seconds that a transport adds to it, mostly negative; it stays >= 0.
Flight flight(const NetworkClass& network_class, std::int64_t bytes, double change);

/// @throws UsageError for no segment, segments that do not rise, negative or infinite numbers, parts outside 0 to 1.
void check(const Network& network);

/// Resources that messages queue for, first come, first served: memory of sockets and nodes, the two directions between
/// a node and the others, its injection.
class Wires {
 public:
  /// node, socket: of each rank, numbered from 0; must outlive the object, as must `network`.
  Wires(const Network& network, const std::vector<std::int32_t>& node, const std::vector<std::int32_t>& socket);

  Locality between(int a, int b) const {
    return socket_[a] == socket_[b] ? Locality::socket : node_[a] == node_[b] ? Locality::node : Locality::network;
  }
  /// The arrival time at `to` of a message that leaves `from` at `depart`. Calls must come in about the order of
  /// departures.
  double arrival(int from, int to, Locality where, const Flight& flight, std::int64_t bytes, double depart);
  void clear();

 private:
  double inside(double& own, double& opposite, const NetworkClass& c, double seconds, double depart);
  double outside(int from, int to, const NetworkClass& c, double seconds, double depart);

  const Network& network_;
  const std::vector<std::int32_t>&node_, &socket_;
  std::vector<std::array<double, 2>> sockets_, nodes_, links_;  ///< free from; by way (links: out, in)
  std::vector<double> injection_;
};

}  // namespace haloscope::simulate
