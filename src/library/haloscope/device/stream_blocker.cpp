#include "haloscope/device/stream_blocker.hpp"

#include <cstring>

namespace haloscope::device {

/// Makes the kernel of an exchange whose one message never comes: it stays for the max time.
StreamBlocker::StreamBlocker(Device& device, double seconds)
    : device_(device),
      words_(device, Space::mapped, 2 * signal_words * sizeof(std::uint64_t)),
      relayed_(device, Space::device, sizeof(std::uint64_t)) {
  std::memset(words_.data(), 0, words_.size());
  auto* const words = reinterpret_cast<std::uint64_t*>(words_.data());
  launch_.received = 1;
  launch_.exchange = 1;
  launch_.arrived = words;
  launch_.progress = words + signal_words;
  launch_.relayed = reinterpret_cast<std::uint64_t*>(relayed_.data());
  launch_.stay.ticks = static_cast<std::uint64_t>(seconds * device.info().clock_hz);
}

void StreamBlocker::on(Stream& stream) const { device_.kernels().exchange.run(stream, launch_); }

}  // namespace haloscope::device
