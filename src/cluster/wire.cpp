#include "cluster/wire.hpp"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>
#include <span>
#include <stdexcept>

namespace haloscope::lab {

namespace {

constexpr std::size_t longest_frame = 16384;
constexpr int max_at_once = 64;            // max frames from one port before the others have a turn
constexpr std::size_t max_waiting = 8192;  // of a port; a switch with no room drops, and TCP sends again
constexpr std::int64_t never = INT64_MAX;

std::int64_t ns_of(const timespec& t) { return std::int64_t{1'000'000'000} * t.tv_sec + t.tv_nsec; }

/// The time by the clock that the kernel stamps frames with.
std::int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return ns_of(t);
}

[[noreturn]] void fail(const std::string& message) { throw std::runtime_error(message + ": " + std::strerror(errno)); }

/// Receives a frame and its arrival time, which may be long before the switch had a core. @return its size, < 0: none.
ssize_t receive(int socket, std::span<std::uint8_t> room, std::int64_t& came) {
  iovec part{room.data(), room.size()};
  alignas(cmsghdr) char notes[CMSG_SPACE(sizeof(timespec))];
  msghdr message{};
  message.msg_iov = &part, message.msg_iovlen = 1;
  message.msg_control = notes, message.msg_controllen = sizeof notes;
  const ssize_t size = recvmsg(socket, &message, 0);
  for (cmsghdr* note = size < 0 ? nullptr : CMSG_FIRSTHDR(&message); note; note = CMSG_NXTHDR(&message, note)) {
    if (note->cmsg_level != SOL_SOCKET || note->cmsg_type != SO_TIMESTAMPNS) continue;
    timespec stamp;
    std::memcpy(&stamp, CMSG_DATA(note), sizeof stamp);
    came = ns_of(stamp);
  }
  return size;
}

}  // namespace

Timetable::Timetable(const Link& link, std::size_t ports)
    : ns_per_byte_(link.bytes_per_s > 0 ? 1e9 / link.bytes_per_s : 0),
      latency_(std::llround(link.latency_ns)),
      jitter_(link.jitter_ns),
      in_free_(ports),
      out_free_(ports) {}

std::int64_t Timetable::departure(std::size_t from, std::size_t to, std::size_t bytes, std::int64_t now) {
  const auto length = static_cast<std::int64_t>(std::llround(ns_per_byte_ * static_cast<double>(bytes)));
  const std::int64_t in = in_free_[from] = std::max(in_free_[from], now) + length;
  std::int64_t arrival = in + latency_;
  if (jitter_ > 0) arrival += static_cast<std::int64_t>(std::exponential_distribution<>(1 / jitter_)(random_));
  return out_free_[to] = std::max(arrival, out_free_[to] + length);  // after earlier frames to the same port
}

Switch::Switch(const Link& link, const std::vector<std::string>& interfaces)
    : timetable_(link, interfaces.size()), leaving_(interfaces.size()) {
  for (const std::string& interface : interfaces) open(interface);
}

Switch::~Switch() {
  for (const int socket : sockets_) close(socket);
}

void Switch::open(const std::string& interface) {
  const int socket = ::socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(ETH_P_ALL));
  if (socket < 0) fail("cannot open a raw socket");
  sockets_.push_back(socket);
  const int yes = 1, room = 64 << 20;
  setsockopt(socket, SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof yes);
  setsockopt(socket, SOL_PACKET, PACKET_QDISC_BYPASS, &yes, sizeof yes);
  setsockopt(socket, SOL_SOCKET, SO_TIMESTAMPNS, &yes, sizeof yes);
  setsockopt(socket, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
  setsockopt(socket, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = static_cast<int>(if_nametoindex(interface.c_str()));
  if (address.sll_ifindex == 0) fail("no interface " + interface);
  if (bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fail("cannot listen on " + interface);
}

void Switch::run_until_closed(int input) {
  const int timer = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
  if (timer < 0) fail("cannot make a timer");
  std::vector<pollfd> awaited;
  for (const int socket : sockets_) awaited.push_back({socket, POLLIN, 0});
  awaited.push_back({timer, POLLIN, 0});
  awaited.push_back({input, POLLIN, 0});
  while ((awaited.back().revents & (POLLIN | POLLHUP | POLLERR)) == 0) {
    const std::int64_t next = let_out(now_ns());
    itimerspec alarm{};
    if (next != never)
      alarm.it_value = {static_cast<time_t>(next / 1'000'000'000), static_cast<long>(next % 1'000'000'000)};
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &alarm, nullptr);
    if (poll(awaited.data(), awaited.size(), -1) < 0 && errno != EINTR) fail("cannot wait for frames");
    const std::int64_t now = now_ns();
    for (std::size_t port = 0; port < sockets_.size(); ++port)
      if (awaited[port].revents & POLLIN) take_in(port, now);
  }
  close(timer);
}

void Switch::take_in(std::size_t port, std::int64_t now) {
  std::uint8_t bytes[longest_frame];
  for (int i = 0; i < max_at_once; ++i) {
    std::int64_t came = now;
    const ssize_t size = receive(sockets_[port], bytes, came);
    if (size < static_cast<ssize_t>(sizeof(ethhdr))) return;
    Address to, from;
    std::copy_n(bytes, to.size(), to.begin());
    std::copy_n(bytes + to.size(), from.size(), from.begin());
    port_of_[from] = port;
    if (const auto known = port_of_.find(to); known != port_of_.end()) {
      if (known->second != port) hand_on(port, known->second, bytes, static_cast<std::size_t>(size), came);
      continue;
    }
    for (std::size_t other = 0; other < sockets_.size(); ++other)
      if (other != port) hand_on(port, other, bytes, static_cast<std::size_t>(size), came);
  }
}

void Switch::hand_on(std::size_t from, std::size_t to, const std::uint8_t* bytes, std::size_t size, std::int64_t now) {
  if (leaving_[to].size() >= max_waiting) return;
  std::vector<std::uint8_t> room;
  if (!spare_.empty()) room = std::move(spare_.back()), spare_.pop_back();
  room.assign(bytes, bytes + size);
  leaving_[to].push_back({timetable_.departure(from, to, size, now), std::move(room)});
}

/// Sends the frames that are due; returns the time of the next one.
std::int64_t Switch::let_out(std::int64_t now) {
  std::int64_t next = never;
  for (std::size_t port = 0; port < sockets_.size(); ++port) {
    std::deque<Frame>& queue = leaving_[port];
    for (; !queue.empty() && queue.front().departure <= now; queue.pop_front()) {
      const std::vector<std::uint8_t>& bytes = queue.front().bytes;
      if (send(sockets_[port], bytes.data(), bytes.size(), 0) < 0 && errno == EAGAIN) break;
      spare_.push_back(std::move(queue.front().bytes));
    }
    if (!queue.empty()) next = std::min(next, std::max(queue.front().departure, now + 1000));
  }
  return next;
}

}  // namespace haloscope::lab
