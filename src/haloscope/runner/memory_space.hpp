// Where the fields of a library call are, in host memory or on a device, and which strategies are for them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "haloscope/device/device.hpp"
#include "haloscope/plan.hpp"
#include "haloscope/strategy.hpp"
#include "haloscope/view.hpp"

namespace haloscope {

/// A device by name and number, so that it outlives the list of back ends.
struct MemorySpace {
  std::string backend = {};  ///< empty: host memory
  int index = -1;
  bool operator==(const MemorySpace&) const = default;
  /// Null for host memory. @throws UnavailableError, Error as the back end does.
  std::unique_ptr<device::Device> open() const;
};
/// "host memory", "memory of device 0 of back end 'cuda'"
std::string to_string(const MemorySpace& place);

/// Where all slots of all fields are. Local; asks each back end about each address.
/// @throws UsageError where they are not all in one memory, naming two that are not.
MemorySpace place_of_fields(const std::vector<Quantity>& fields, const Views& views);
/// @param first  an address of each field. @throws UsageError naming a field that is elsewhere.
void require_same_place(const MemorySpace& place, const std::vector<Quantity>& fields, std::span<void* const> first);
/// @throws UsageError for host memory: `call` got a stream.
void require_device(const MemorySpace& place, const char* call);

/// The strategy for fields in such memory: the one asked for, and where `auto` is, on a device, the one that it stands
/// for.
/// @throws UsageError for one that does not move such fields, naming those that do.
Strategy strategy_for(const MemorySpace& place, const Strategy& asked);

}  // namespace haloscope
