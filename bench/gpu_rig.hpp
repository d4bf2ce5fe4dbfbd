// Common parts of the cases of bench_gpu: a device, its clock, and fields in its memory.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "haloscope/device/device.hpp"
#include "haloscope/field/arrangement.hpp"

namespace haloscope::bench {

struct Rig {
  const device::Backend* backend = nullptr;
  std::unique_ptr<device::Device> device;
  std::unique_ptr<device::Stream> stream;
  std::unique_ptr<device::Event> begin, end;
  double least_s = 0.02;  ///< a sample lasts at least this long
  int samples = 9;

  /// @throws UsageError, UnavailableError  as find_backend().
  explicit Rig(const std::string& name)
      : backend(&device::find_backend(name)),
        device(backend->open(0)),
        stream(device->stream()),
        begin(device->event()),
        end(device->event()) {}

  /// Returns the mean seconds of one of `repeats` launches.
  template <class F>
  double time(int repeats, F launch) const {
    stream->record(*begin);
    for (int i = 0; i < repeats; ++i) launch();
    stream->record(*end);
    end->wait();
    return device->seconds(*begin, *end) / repeats;
  }
  /// Returns the number of calls per sample, for calls of some seconds each.
  int calls(double seconds) const { return std::clamp(static_cast<int>(least_s / std::max(seconds, 1e-7)), 1, 10000); }
  template <class F>
  int repeats(F launch) const {
    time(1, launch);
    return calls(time(1, launch));
  }
  /// Takes samples of a launch and of its counterpart, in turn.
  template <class F, class G>
  std::pair<std::vector<double>, std::vector<double>> pairs(F one, G other) const {
    const int n = repeats(one), m = repeats(other);
    std::pair<std::vector<double>, std::vector<double>> result;
    for (int s = 0; s < samples; ++s) {
      result.first.push_back(time(n, one));
      result.second.push_back(time(m, other));
    }
    return result;
  }
};

/// Slots of fields of one grid in device memory, in the layout of the library, filled with numbers around 1.
struct Fields {
  Plan plan;
  Arrangement arrangement;
  device::Buffer image;
  Views views;  ///< of the device's memory

  Fields(const Rig& rig, const GridSpec& grid, int halo, int element_bytes, int quantities = 1, int slots = 2)
      : plan(make(grid, halo, element_bytes, quantities)),
        arrangement(plan, std::vector<int>(static_cast<std::size_t>(quantities), slots), true),
        image(*rig.device, device::Space::device, arrangement.bytes()),
        views(arrangement.views(image.data())) {
    fill(*rig.stream, element_bytes);
  }

 private:
  static Plan make(const GridSpec& grid, int halo, int element_bytes, int quantities) {
    ExchangeSpec spec;
    spec.quantities.assign(static_cast<std::size_t>(quantities),
                           {"u", element_bytes, ScalarType::real, Centring::cell});
    for (int d = 0; d < 3; ++d) spec.low[d] = spec.high[d] = d < grid.dims ? halo : 0;
    return make_plan(Layout(grid, {1, 1, 1}), 0, spec);
  }
  /// Fills the memory: the host generates the first MiB, the device replicates it.
  void fill(device::Stream& stream, int element_bytes) {
    const auto numbers = numbers_around_one(std::min(image.size(), std::size_t{1} << 20), element_bytes);
    stream.copy(image.data(), numbers.data(), numbers.size());
    for (std::size_t done = numbers.size(); done < image.size(); done *= 2)
      stream.copy(image.data() + done, image.data(), std::min(done, image.size() - done));
    stream.finish();
  }
  static std::vector<std::byte> numbers_around_one(std::size_t bytes, int element_bytes) {
    std::vector<std::byte> numbers(bytes);
    std::uint64_t state = 1;
    for (std::size_t at = 0; at + element_bytes <= bytes; at += element_bytes) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      const double value = 0.5 + static_cast<double>(state >> 11) * 0x1p-53;
      const float single = static_cast<float>(value);
      std::memcpy(&numbers[at], element_bytes == 8 ? static_cast<const void*>(&value) : &single, element_bytes);
    }
    return numbers;
  }
};

}  // namespace haloscope::bench
