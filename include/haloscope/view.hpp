// Views: the addresses of the points of a quantity, in the library's fields or in a caller's arrays; streams of devices
// that these may be used on.
#pragma once

#include "haloscope/extend/cxx20.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "haloscope/box.hpp"
#include "haloscope/extend/words.hpp"

namespace haloscope {

/// The memory of fields: private to the process, or accessible to all ranks of its node.
enum class MemoryKind : std::uint8_t { own, shared };
HALOSCOPE_WORDS(MemoryKind, "kind of memory", "own", "shared");

/// One slot of one quantity. Address of point p: origin + p[0]*stride[0] + p[1]*stride[1] + p[2]*stride[2].
struct SlotView {
  std::byte* origin = nullptr;                  ///< point (0, 0, 0), the first owned one
  std::array<std::int64_t, 3> stride{8, 0, 0};  ///< bytes between neighbours in x, y, z, of any sign
  std::int64_t element = 0;                     ///< bytes of a point; 0: stride[0], points follow each other in x
  std::int64_t element_bytes() const { return element > 0 ? element : stride[0]; }
  std::byte* at(const Index& p) const { return origin + p[0] * stride[0] + p[1] * stride[1] + p[2] * stride[2]; }
};

/// Quantity -> slot -> view. All slots of one quantity have the same strides.
using Views = std::vector<std::vector<SlotView>>;
/// The first ones of some views.
using FieldViews = std::span<const std::vector<SlotView>>;

/// A caller's stream on a device, as the handle of the device's driver: a cudaStream_t or hipStream_t, or one of
/// imitated.hpp. Null: the driver's default stream, whose work comes after all work enqueued before it on streams made
/// without cudaStreamNonBlocking (or its equivalent), and before all work enqueued there later.
struct DeviceStream {
  void* native = nullptr;
};

}  // namespace haloscope
