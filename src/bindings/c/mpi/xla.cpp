// Handlers of XLA: an exchange of arrays that a compiled program passes, and its transpose.
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "bindings/c/mpi/bridge.hpp"
#include "bindings/c/mpi/xla_ffi.hpp"

namespace haloscope::c {
namespace {

/// Fills in the version of the interface, where XLA requests that in place of an exchange. @return false elsewhere.
bool answers_metadata(const xla::Call& call) {
  if (call.extensions == nullptr || call.extensions->type != xla::extension_of_metadata) return false;
  xla::Metadata& metadata = *reinterpret_cast<xla::MetadataExtension*>(call.extensions)->metadata;
  metadata.version.major_version = xla::major_version;
  metadata.version.minor_version = xla::minor_version;
  metadata.traits = 0;
  return true;
}

/// The handle of the exchange, and for each array the bytes before its first owned point.
struct Request {
  hs_exchange* exchange;
  std::span<const std::int64_t> before;
};

Request request_of(const xla::Attributes& attributes) {
  const bool two = attributes.size == 2 && attributes.types[0] == xla::array_attribute &&
                   attributes.types[1] == xla::scalar_attribute;
  const auto* before = two ? static_cast<const xla::Array*>(attributes.values[0]) : nullptr;
  const auto* number = two ? static_cast<const xla::Scalar*>(attributes.values[1]) : nullptr;
  if (!two || before->type != xla::int64_type || number->type != xla::int64_type)
    throw UsageError(
        "a call of XLA has other attributes than 'before', an array, and 'exchange', a number, of 64-bit integers; "
        "make it by the module haloscope.jax of this version");
  return {reinterpret_cast<hs_exchange*>(*static_cast<const std::int64_t*>(number->value)),
          {static_cast<const std::int64_t*>(before->data), before->size}};
}

bool is_empty(const xla::Buffer& buffer) {
  const std::span extents(buffer.extents, static_cast<std::size_t>(buffer.rank));
  return std::find(extents.begin(), extents.end(), 0) != extents.end();
}

/// Returns the addresses of the first owned points. Arguments and results begin with a token.
/// @throws UsageError for another number of arrays, and for results in other memory than their arguments.
std::span<void* const> first_points(const xla::Call& call, std::span<const std::int64_t> before) {
  static thread_local std::vector<void*> first;
  const auto count = static_cast<std::int64_t>(before.size());
  if (call.arguments.size != count + 1 || call.results.size != count + 1)
    throw UsageError("a call of XLA has " + std::to_string(call.arguments.size) + " arguments and " +
                     std::to_string(call.results.size) + " results for an exchange of " + std::to_string(count) +
                     " arrays; pass a token and all arrays");
  first.clear();
  for (std::int64_t n = 0; n < count; ++n) {
    const xla::Buffer& result = *call.results.buffers[n + 1];
    if (result.data != call.arguments.buffers[n + 1]->data && !is_empty(result))
      throw UsageError("XLA passes result " + std::to_string(n) +
                       " in other memory than its argument, and an exchange works in place; alias the two");
    first.push_back(static_cast<std::byte*>(result.data) + before[static_cast<std::size_t>(n)]);
  }
  return first;
}

int error_code(hs_status status) {
  if (status == HS_USAGE) return xla::invalid_argument;
  return status == HS_UNAVAILABLE ? xla::unimplemented : xla::internal;
}

/// Runs `body` on the exchange and the first owned points of its arrays. @return null, or the error that XLA raises.
template <class Body>
void* serve(void* from, const Body& body) {
  const xla::Call& call = *static_cast<const xla::Call*>(from);
  if (answers_metadata(call)) return nullptr;
  const hs_status status = guarded([&] {
    const Request request = request_of(call.attributes);
    body(needed(request.exchange, "exchange").exchange, first_points(call, request.before));
  });
  if (status == HS_OK) return nullptr;
  xla::NewError error{sizeof error, nullptr, hs_last_error(), error_code(status)};
  return call.api->create_error(&error);
}

}  // namespace
}  // namespace haloscope::c

using namespace haloscope;
using namespace haloscope::c;

void* hs_exchange_xla(void* call) {
  return serve(call, [](Exchange& exchange, std::span<void* const> first) { exchange.exchange_at(first); });
}

void* hs_exchange_accumulate_xla(void* call) {
  return serve(call, [](Exchange& exchange, std::span<void* const> first) {
    exchange.rebind(first);
    exchange.accumulate();
  });
}
