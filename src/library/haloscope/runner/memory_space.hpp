// Memory spaces of a library call's fields, host memory or a device, and the strategies for them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "haloscope/device/device.hpp"
#include "haloscope/extend/plan.hpp"
#include "haloscope/strategy.hpp"
#include "haloscope/view.hpp"

namespace haloscope {

/// A device by name and number, so that it outlives the list of back ends.
struct MemorySpace {
  std::string backend = {};  ///< empty: host memory
  int index = -1;
  bool operator==(const MemorySpace&) const = default;
  /// Opens the device; null for host memory. @throws UnavailableError, Error as the back end does.
  std::unique_ptr<device::Device> open() const;
};
/// Returns "host memory", or "memory of device 0 of back end 'cuda'".
std::string to_string(const MemorySpace& place);

/// Returns the memory space of all slots of all fields. Local; queries each back end for each address.
/// @throws UsageError where they are not all in one memory, naming two that differ.
MemorySpace place_of_fields(const std::vector<Quantity>& fields, const Views& views);
/// Checks addresses. @param first an address of each field. @throws UsageError naming a field in another memory
/// space.
void require_same_place(const MemorySpace& place, const std::vector<Quantity>& fields, std::span<void* const> first);
/// Checks a call with a stream. @throws UsageError for host memory: `call` got a stream.
void require_device(const MemorySpace& place, const char* call);

/// Returns the strategy for fields in such memory: the requested one or, for `auto` on a device, the one that it
/// represents.
/// @throws UsageError for a strategy that does not move such fields, naming the ones that do.
Strategy strategy_for(const MemorySpace& place, const Strategy& requested);

}  // namespace haloscope
