// haloscope-delay-line: the network of an emulated cluster. A switch in user space that forwards frames between
// interfaces after a set delay and at a set rate, since not every kernel has tc netem.
//
//   haloscope-delay-line switch LATENCY_NS BYTES_PER_S JITTER_NS INTERFACE...   until standard input is closed
//   haloscope-delay-line plain INTERFACE    no offloads: frames as long as the wire has them, with checksums
//
// A line reports that the switch is ready, with or without real-time priority. Exit code 0, or 1 with the reason.
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "cluster/wire.hpp"

namespace {

using haloscope::lab::Link;
using haloscope::lab::Switch;

double number(const char* text) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(value >= 0)) throw std::runtime_error(std::string("not a number >= 0: ") + text);
  return value;
}

/// Switches offloads off, so that frames are on the interface as they would be on a wire.
void switch_offloads_off(const char* interface) {
  const int socket = ::socket(AF_INET, SOCK_DGRAM, 0);
  ifreq request{};
  std::strncpy(request.ifr_name, interface, IFNAMSIZ - 1);
  for (const __u32 command :
       {ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO, ETHTOOL_STXCSUM, ETHTOOL_SRXCSUM, ETHTOOL_SSG}) {
    ethtool_value off{command, 0};
    request.ifr_data = reinterpret_cast<char*>(&off);
    if (ioctl(socket, SIOCETHTOOL, &request) != 0 && errno != EOPNOTSUPP)
      throw std::runtime_error(std::string(interface) + ": " + std::strerror(errno));
  }
  close(socket);
}

/// Requests real-time priority. The ranks leave no core free, and with late frames the network would be slower than
/// requested.
bool hurry() {
  prctl(PR_SET_TIMERSLACK, 1);
  const sched_param priority{50};
  return sched_setscheduler(0, SCHED_FIFO, &priority) == 0;
}

int run(const std::vector<char*>& words) {
  if (words.size() == 3 && std::string(words[1]) == "plain") {
    switch_offloads_off(words[2]);
    return 0;
  }
  if (words.size() < 7 || std::string(words[1]) != "switch")
    throw std::runtime_error("usage: haloscope-delay-line switch LATENCY_NS BYTES_PER_S JITTER_NS INTERFACE...");
  const Link link{number(words[2]), number(words[3]), number(words[4])};
  Switch all(link, {words.begin() + 5, words.end()});
  std::cout << (hurry() ? "real-time" : "normal") << std::endl;
  all.run_until_closed(STDIN_FILENO);
  return 0;
}

}  // namespace

int main(int argc, char** argv) try { return run({argv, argv + argc}); } catch (const std::exception& error) {
  std::cerr << "haloscope-delay-line: " << error.what() << '\n';
  return 1;
}
