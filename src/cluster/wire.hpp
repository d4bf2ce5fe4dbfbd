// An emulated network between network interfaces: a switch with one line of set latency and bandwidth to each host.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace haloscope::lab {

/// The link that every message between two hosts passes.
struct Link {
  double latency_ns = 0;   ///< added to each frame, >= 0
  double bytes_per_s = 0;  ///< of the line of a host, each way; 0: as fast as the machine copies
  double jitter_ns = 0;    ///< mean of the random delay added, exponentially distributed; frames stay in order
};

/// Departure times of frames by their arrival times: lines that carry one frame at a time, and a delay between them.
/// Times in ns.
class Timetable {
 public:
  Timetable(const Link& link, std::size_t ports);
  /// The time at which a frame of `bytes` that came into port `from` at `now` has wholly gone out of port `to`.
  std::int64_t departure(std::size_t from, std::size_t to, std::size_t bytes, std::int64_t now);

 private:
  double ns_per_byte_;
  std::int64_t latency_;
  double jitter_;
  std::vector<std::int64_t> in_free_, out_free_;  ///< time at which the line of a port is free again, each way
  std::mt19937_64 random_{1};
};

/// A switch of frames between interfaces of this network namespace, forwarded by their destination's address.
class Switch {
 public:
  /// @throws std::runtime_error when an interface does not exist or raw sockets are not allowed.
  Switch(const Link& link, const std::vector<std::string>& interfaces);
  ~Switch();
  Switch(const Switch&) = delete;
  /// Runs until the other end of descriptor `input` is closed.
  void run_until_closed(int input);

 private:
  using Address = std::array<std::uint8_t, 6>;
  struct Frame {
    std::int64_t departure;
    std::vector<std::uint8_t> bytes;
  };

  void open(const std::string& interface);
  void take_in(std::size_t port, std::int64_t now);
  void hand_on(std::size_t from, std::size_t to, const std::uint8_t* bytes, std::size_t size, std::int64_t now);
  std::int64_t let_out(std::int64_t now);

  Timetable timetable_;
  std::vector<int> sockets_;
  std::vector<std::deque<Frame>> leaving_;        ///< by port, in order of departure
  std::vector<std::vector<std::uint8_t>> spare_;  ///< buffers for future frames
  std::map<Address, std::size_t> port_of_;
};

}  // namespace haloscope::lab
