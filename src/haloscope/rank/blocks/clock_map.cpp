#include "haloscope/rank/blocks/clock_map.hpp"

#include <algorithm>
#include <atomic>

#include "haloscope/core/clock.hpp"
#include "haloscope/core/spin.hpp"
#include "haloscope/error.hpp"

namespace haloscope {

constexpr double patience_s = 5;

ClockReader::ClockReader(device::Device& device, bool yield)
    : device_(device),
      yield_(yield),
      hz_(device.info().clock_hz),
      words_(device, device::Space::mapped, 2 * sizeof(std::uint64_t)),
      stream_(device.stream()) {}

ClockPoint ClockReader::read(int times) {
  ClockPoint best = read_once();
  for (int i = 1; i < times; ++i)
    if (const ClockPoint point = read_once(); point.precision_s < best.precision_s) best = point;
  return best;
}

std::uint64_t ClockReader::answer() {
  auto* words = reinterpret_cast<std::uint64_t*>(words_.data());
  const double since = now_s();
  Spin spin(yield_);
  std::uint64_t ticks = 0;
  while ((ticks = std::atomic_ref(words[0]).load(std::memory_order_acquire)) == 0) {
    spin.again();
    if (now_s() - since < patience_s) continue;
    std::atomic_ref(reinterpret_cast<std::uint32_t&>(words[1])).store(1, std::memory_order_release);
    throw Error(Exit::failed, "the device did not tell its clock within " + std::to_string(patience_s) +
                                  " s; is another process using it?");
  }
  return ticks;
}

ClockPoint ClockReader::read_once() {
  auto* words = reinterpret_cast<std::uint64_t*>(words_.data());
  words[0] = words[1] = 0;
  device_.kernels().blocks.clock(
      *stream_, words, {reinterpret_cast<std::uint32_t*>(words + 1), static_cast<std::uint64_t>(2 * patience_s * hz_)});
  const std::uint64_t first = answer();
  std::atomic_ref(words[0]).store(0, std::memory_order_release);
  const double cpu_s = now_s();
  const std::uint64_t second = answer();
  const double round_trip_s = now_s() - cpu_s;
  stream_->finish();
  const double half = static_cast<double>(second - first) / 2;
  return {cpu_s, static_cast<double>(first) + half, (half + 1) / hz_, round_trip_s};
}

ClockMap::ClockMap(const ClockPoint& first, const ClockPoint& last)
    : origin_(first),
      rate_((last.cpu_s - first.cpu_s) / (last.ticks - first.ticks)),
      precision_s_(std::max(first.precision_s, last.precision_s)) {}

}  // namespace haloscope
