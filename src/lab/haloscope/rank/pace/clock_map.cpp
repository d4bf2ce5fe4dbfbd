#include "haloscope/rank/pace/clock_map.hpp"

#include <algorithm>
#include <atomic>

#include "haloscope/core/clock.hpp"
#include "haloscope/core/spin.hpp"
#include "haloscope/error.hpp"

namespace haloscope {

ClockReader::ClockReader(device::Device& device, bool yield)
    : device_(device),
      yield_(yield),
      hz_(device.info().clock_hz),
      stay_(device.info().stay(nullptr)),
      word_(device, device::Space::mapped, sizeof(std::uint64_t)),
      stream_(device.stream()),
      end_(device.event(false)) {}

ClockPoint ClockReader::read(int times) {
  ClockPoint best = read_once();
  for (int i = 1; i < times; ++i)
    if (const ClockPoint point = read_once(); point.precision_s < best.precision_s) best = point;
  return best;
}

/// Waits for the kernel's answer. A query for its end would disturb an immediate answer, so it comes later.
std::uint64_t ClockReader::answer() {
  constexpr double at_once_s = 1e-3;
  const std::atomic_ref word(*reinterpret_cast<std::uint64_t*>(word_.data()));
  const double since = now_s();
  bool ended = false;
  for (Spin spin(yield_);; spin.again()) {
    if (const std::uint64_t ticks = word.load(std::memory_order_acquire); ticks != 0 || ended) return ticks;
    ended = now_s() - since > at_once_s && end_->reached();
  }
}

/// A kernel leaves before it has answered twice where this thread did something else meanwhile, or was made to wait for
/// it.
ClockPoint ClockReader::read_once() {
  const std::atomic_ref word(*reinterpret_cast<std::uint64_t*>(word_.data()));
  constexpr int max_tries = 10;
  for (int tries = 0; tries < max_tries; ++tries) {
    word = 0;
    device_.kernels().clock(*stream_, reinterpret_cast<std::uint64_t*>(word_.data()), stay_);
    stream_->record(*end_);
    const std::uint64_t first = answer();
    word.store(0, std::memory_order_release);
    const double cpu_s = now_s();
    const std::uint64_t second = answer();
    const double round_trip_s = now_s() - cpu_s;
    stream_->finish();
    const double half = static_cast<double>(second - first) / 2;
    if (first != 0 && second != 0) return {cpu_s, static_cast<double>(first) + half, (half + 1) / hz_, round_trip_s};
  }
  throw Error(Exit::failed, "kernels that read the device's clock have left " + std::to_string(max_tries) +
                                " times before this process read them again; unset variables that make launches wait "
                                "for their kernels, as CUDA_LAUNCH_BLOCKING");
}

ClockMap::ClockMap(const ClockPoint& first, const ClockPoint& last)
    : origin_(first),
      rate_((last.cpu_s - first.cpu_s) / (last.ticks - first.ticks)),
      precision_s_(std::max(first.precision_s, last.precision_s)) {}

}  // namespace haloscope
