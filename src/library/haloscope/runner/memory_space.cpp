#include "haloscope/runner/memory_space.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/transport_traits.hpp"

namespace haloscope {
namespace {

/// Returns the meaning of `auto` on devices: the pattern with one round, since each round costs launches and copies,
/// and one message to each peer.
Strategy auto_on_devices(const Strategy& requested) {
  Strategy strategy("direct:merged/auto-device");
  strategy.transport_options = requested.transport_options;
  return strategy;
}

MemorySpace place_of(const void* address) {
  const device::Place place = device::place_of(address);
  return place.backend == nullptr ? MemorySpace{} : MemorySpace{place.backend->name, place.index};
}

}  // namespace

std::unique_ptr<device::Device> MemorySpace::open() const {
  return backend.empty() ? nullptr : device::find_backend(backend).open(index);
}

std::string to_string(const MemorySpace& place) {
  if (place.backend.empty()) return "host memory";
  return "memory of device " + std::to_string(place.index) + " of back end '" + place.backend + "'";
}

MemorySpace place_of_fields(const std::vector<Quantity>& fields, const Views& views) {
  if (views.empty() || views.front().empty()) return {};     // refused later, with the fault
  std::optional<std::pair<MemorySpace, std::size_t>> first;  // and its field; null addresses are in no memory
  const auto name = [&](std::size_t q) { return "field '" + fields[q % fields.size()].name + "'"; };  // of any block
  for (std::size_t q = 0; q < views.size() && !fields.empty(); ++q)
    for (std::size_t s = 0; s < views[q].size(); ++s) {
      if (views[q][s].origin == nullptr) continue;
      const MemorySpace one = place_of(views[q][s].origin);
      if (!first) first.emplace(one, q);
      if (one != first->first)
        throw UsageError(name(q) + " is in " + to_string(one) + " (slot " + std::to_string(s) + "), and " +
                         name(first->second) + " in " + to_string(first->first) +
                         "; exchange fields of different memories by an Exchange each");
    }
  return first ? first->first : MemorySpace{};
}

void require_same_place(const MemorySpace& place, const std::vector<Quantity>& fields, std::span<void* const> first) {
  for (std::size_t q = 0; q < first.size(); ++q)
    if (const MemorySpace now = place_of(first[q]); now != place)
      throw UsageError("rebind() got memory for field '" + fields[q % fields.size()].name + "' in " + to_string(now) +
                       ", and the exchange is for " + to_string(place) + "; open another one");
}

void require_device(const MemorySpace& place, const char* call) {
  if (place.backend.empty())
    throw UsageError(std::string(call) +
                     "() got a stream, and these fields are in host memory, which no device works on; leave it out");
}

Strategy strategy_for(const MemorySpace& place, const Strategy& requested) {
  if (place.backend.empty() || moves_device_memory(requested)) return requested;
  if (requested.transport == "auto") return auto_on_devices(requested);
  std::vector<std::string> transports;
  for (const TransportTraits* traits : transport_traits())
    if (traits->device) transports.push_back(traits->name);
  throw UsageError("strategy '" + to_string(requested) + "' moves fields in host memory, and these are in " +
                   to_string(place) + "; use 'auto', or 'ordered/' or 'direct/' with one of " + join(transports, ", "));
}

}  // namespace haloscope
