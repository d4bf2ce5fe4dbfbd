// The device that the tests run on, and imitated ones.
#pragma once

#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "faulty_device.hpp"
#include "haloscope/device/device.hpp"
#include "texts.hpp"

namespace haloscope::device::test {

using haloscope::test::error_of;

/// The first device of the best back end here: the kernels of a GPU are tested where there is one.
inline Device& here() {
  static const std::unique_ptr<Device> device = find_backend("auto").open(0);
  device->use();
  return *device;
}

/// Imitated devices that this test requests, as long as this lives.
class Imitated : public haloscope::test::Imitated {
 public:
  using haloscope::test::Imitated::Imitated;
  static std::unique_ptr<Device> open(int index = 0) { return find_backend("host").open(index); }
};

/// All tests, where the environment requests it.
inline const bool imitated = (haloscope::test::imitate_from_environment(), true);

#if defined(__SANITIZE_THREAD__)
inline constexpr bool races_are_reported = true;
#elif defined(__has_feature)
inline constexpr bool races_are_reported = __has_feature(thread_sanitizer);
#else
inline constexpr bool races_are_reported = false;
#endif

/// Races by intent: ThreadSanitizer is to see them only on request, by tests that set HALOSCOPE_RUN_THE_RACE and search
/// for the reports.
inline bool may_race() { return !races_are_reported || std::getenv("HALOSCOPE_RUN_THE_RACE") != nullptr; }

/// start, start + 1, ...
inline std::vector<int> counted(int size, int start = 0) {
  std::vector<int> values(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) values[i] = start + i;
  return values;
}

/// A number from 0 up to, not including, n.
inline std::int64_t below(std::int64_t n, std::mt19937_64& rng) {
  return static_cast<std::int64_t>(rng() % static_cast<std::uint64_t>(n));
}

/// Device memory that holds a copy of `values`.
template <class T>
Buffer on_device(Device& device, const std::vector<T>& values) {
  return copied_to(device, values.data(), values.size() * sizeof(T));
}

/// The contents of device memory.
template <class T>
std::vector<T> from_device(Device& device, const Buffer& buffer) {
  std::vector<T> values(buffer.size() / sizeof(T));
  const auto stream = device.stream();
  stream->copy(values.data(), buffer.data(), buffer.size());
  stream->finish();
  return values;
}

/// Runs a list of copies in one launch, and waits for its end.
/// @param stores  it adds or clears numbers.
inline void run_copies(Device& device, const std::vector<BlockCopy>& copies, bool stores = false) {
  const PieceList pieces(device, cut_copies(copies));
  CopyLaunch launch = pieces.all();
  launch.stores = stores;
  const auto stream = device.stream();
  device.kernels().copy(*stream, launch);
  stream->finish();
}

}  // namespace haloscope::device::test
