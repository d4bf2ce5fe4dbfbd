// Exchanges of the C interface.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <optional>

#include "bindings/c/mpi/bridge.hpp"
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/running.hpp"
#include "haloscope/extend/agree.hpp"
#include "haloscope/extend/topology.hpp"
#include "haloscope/runner/exchange_request.hpp"

static_assert(HS_CALL_ACCUMULATE == static_cast<int>(haloscope::Exchange::Shared::accumulate) &&
              HS_CALL_CHECK_CLEAN == static_cast<int>(haloscope::Exchange::Shared::check_clean) &&
              HS_CALL_REBIND == static_cast<int>(haloscope::Exchange::Shared::rebind) &&
              HS_CALL_SHARE == static_cast<int>(haloscope::Exchange::Shared::share) &&
              HS_CALL_RUN_AT == static_cast<int>(haloscope::Exchange::Shared::run_at));

namespace haloscope::c {

static_assert(HS_TYPE_INTEGER == int(ScalarType::integer));
static_assert(HS_CENTRING_NODE == int(Centring::node) && HS_CENTRING_FACE_Z == int(Centring::face_z));
static_assert(HS_EDGE_EVEN == int(Edge::even) && HS_EDGE_ODD == int(Edge::odd) &&
              HS_EDGE_NEAREST == int(Edge::nearest));

namespace {

/// Returns a field of C. @param number  from 0, for its name.
FieldRef field_of(const hs_field& from, int number, int slots) {
  const std::string name = from.name ? from.name : "field " + std::to_string(number + 1);
  FieldRef field;
  field.quantity = {name, from.element_bytes, enumerator<ScalarType>(from.type, 2, "scalar type"),
                    enumerator<Centring>(from.centring, 5, "centring")};
  field.quantity.number_bytes = from.number_bytes;
  for (std::size_t d = 0; d < 3; ++d)
    field.quantity.edges[d] = {enumerator<Edge>(from.edges[d][0], 4, "edge"),
                               enumerator<Edge>(from.edges[d][1], 4, "edge")};
  for (std::size_t d = 0; d < 3; ++d) field.quantity.on_high_face[d] = from.on_high_face[d] != 0;
  field.quantity.vector = from.vector;
  field.quantity.along = enumerator<int>(from.along, 3, "direction of a component");
  if (from.element_bytes < 1)
    throw UsageError("field '" + name + "' has points of " + std::to_string(from.element_bytes) +
                     " bytes; a point has at least 1");
  copy3(from.low, field.low);
  copy3(from.high, field.high);
  needed(from.first, "first");
  for (int s = 0; s < slots; ++s) {
    field.slots.push_back({static_cast<std::byte*>(from.first[s]), {}, from.element_bytes});
    copy3(from.stride, field.slots.back().stride);
  }
  return field;
}

}  // namespace

std::vector<FieldRef> fields_of(const hs_field* fields, int count, int slots, const char* name, int number) {
  std::vector<FieldRef> list;
  hs_field defaults;
  hs_field_init(&defaults);
  needed(fields, name);
  for (int f = 0; f < count; ++f)
    list.push_back(field_of(versioned_element(fields, f, defaults, name, offsetof(hs_field, name)), number + f, slots));
  return list;
}

std::vector<FieldRef> field_of_blocks(const hs_grid& on, const hs_field* blocks, int number, const char* name) {
  return fields_of(blocks, blocks_moved(on.layout, on.rank), 1, name, number);
}

hs_exchange_options options_of(const hs_exchange_options* passed) {
  hs_exchange_options options;
  hs_exchange_init(&options);
  if (passed != nullptr) options = versioned(passed, options, "options");
  if (options.slots < 1)
    throw UsageError("fields of " + std::to_string(options.slots) + " slots; they need at least one");
  return options;
}

namespace {

/// Returns the place for the part that a call of this thread requests.
ExchangePart& latest_part() {
  static thread_local ExchangePart part;
  return part;
}

/// Collective.
void make(const hs_grid& grid, const hs_field* fields, int32_t count, const hs_exchange_options* passed,
          hs_exchange** exchange) {
  hs_exchange_options options;
  std::vector<FieldRef> list;
  Strategy strategy;
  agree(grid.comm, [&] {
    needed(exchange, "exchange") = nullptr;
    options = options_of(passed);
    if (count < 1) throw UsageError("an exchange of " + std::to_string(count) + " fields; it needs at least one");
    list = fields_of(fields, count, options.slots, "fields");
    strategy = Strategy(options.strategy ? options.strategy : "auto");
    latest_part().only.reserve(static_cast<std::size_t>(count));
  });
  ExchangeOptions how;
  how.corners = options.corners != 0;
  how.guard = options.guard != 0;
  *exchange = keep(new hs_exchange{Exchange(grid.comm, grid.layout, list, strategy, how, grid.nodes), {}});
}

/// Returns the part that a call requests; NULL: all of the exchange. Allocates nothing on a thread that has opened an
/// exchange of as many fields.
const ExchangePart& part_of(const hs_part* passed) {
  ExchangePart& part = latest_part();
  hs_part from;
  hs_part_init(&from);
  if (passed != nullptr) from = versioned(passed, from, "part");
  if (from.only == nullptr && from.count != 0)
    throw UsageError("'part' has a count of " + std::to_string(from.count) +
                     " fields and no list 'only'; pass both, or neither for all fields");
  if (from.only != nullptr && from.count < 1)
    throw UsageError("'part' has " + std::to_string(from.count) + " fields; name at least one, or pass NULL for all");
  part.only.assign(from.only, from.only + from.count);
  part.depth = from.depth;
  copy3(from.low, part.low);
  copy3(from.high, part.high);
  part.ghost_rows = from.ghost_rows != 0;
  return part;
}

/// Returns addresses of all fields. @throws UsageError for NULL, on all ranks if the call is collective.
/// @param call  that takes them.
std::span<void* const> addresses(const Exchange& exchange, Exchange::Shared call, void* const* first) {
  if (first == nullptr) exchange.refuse(call, Exit::usage, "argument 'first' is NULL; pass addresses");
  return {first, static_cast<std::size_t>(fields_in(exchange.plan().spec))};
}

/// A call that starts a part of an exchange.
using Start = void (Exchange::*)(const ExchangePart&, int, std::optional<DeviceStream>);

/// @param stream  empty: none was passed.
hs_exchange& start(Start call, hs_exchange* exchange, const hs_part* part, int slot,
                   std::optional<DeviceStream> stream) {
  hs_exchange& on = needed(exchange, "exchange");
  (on.exchange.*call)(part_of(part), slot, stream);
  return on;
}

}  // namespace
}  // namespace haloscope::c

using namespace haloscope;
using namespace haloscope::c;

void hs_field_init_sized(hs_field* field, uint64_t size) {
  hs_field defaults{};
  defaults.element_bytes = sizeof(double);
  put_defaults(defaults, field, size);
}

void hs_exchange_init_sized(hs_exchange_options* options, uint64_t size) {
  put_defaults(hs_exchange_options{0, nullptr, 1, 1, 0, 0}, options, size);
}

hs_status hs_exchange_create(const hs_grid* grid, const hs_field* fields, int32_t count,
                             const hs_exchange_options* options, hs_exchange** exchange) {
  return guarded([&] {
    const hs_grid& on = needed(grid, "grid");
    require_communicator(on.comm);
    collectively(on.comm, "an exchange", [&] { make(on, fields, count, options, exchange); });
  });
}

hs_status hs_exchange_start(hs_exchange* exchange, int32_t slot) {
  return guarded([&] { needed(exchange, "exchange").exchange.start(slot); });
}

hs_status hs_exchange_progress(hs_exchange* exchange, int32_t* done) {
  return guarded([&] {
    const bool all = needed(exchange, "exchange").exchange.progress();
    if (done) *done = all;
  });
}

hs_status hs_exchange_finish(hs_exchange* exchange) {
  return guarded([&] { needed(exchange, "exchange").exchange.finish(); });
}

hs_status hs_exchange_run(hs_exchange* exchange, int32_t slot) {
  return guarded([&] { needed(exchange, "exchange").exchange.exchange(slot); });
}

hs_status hs_exchange_start_on(hs_exchange* exchange, int32_t slot, void* stream) {
  return guarded([&] { needed(exchange, "exchange").exchange.start(slot, DeviceStream{stream}); });
}

hs_status hs_exchange_finish_on(hs_exchange* exchange, void* stream) {
  return guarded([&] { needed(exchange, "exchange").exchange.finish(DeviceStream{stream}); });
}

hs_status hs_exchange_run_on(hs_exchange* exchange, int32_t slot, void* stream) {
  return guarded([&] { needed(exchange, "exchange").exchange.exchange(slot, DeviceStream{stream}); });
}

hs_status hs_exchange_start_accumulate(hs_exchange* exchange, int32_t slot) {
  return guarded([&] { needed(exchange, "exchange").exchange.start_accumulate(slot); });
}

hs_status hs_exchange_accumulate(hs_exchange* exchange, int32_t slot) {
  return guarded([&] { needed(exchange, "exchange").exchange.accumulate(slot); });
}

hs_status hs_exchange_start_accumulate_on(hs_exchange* exchange, int32_t slot, void* stream) {
  return guarded([&] { needed(exchange, "exchange").exchange.start_accumulate(slot, DeviceStream{stream}); });
}

hs_status hs_exchange_accumulate_on(hs_exchange* exchange, int32_t slot, void* stream) {
  return guarded([&] { needed(exchange, "exchange").exchange.accumulate(slot, DeviceStream{stream}); });
}

void hs_part_init_sized(hs_part* part, uint64_t size) {
  put_defaults(hs_part{0, nullptr, 0, -1, {-1, -1, -1}, {-1, -1, -1}, 0, 0}, part, size);
}

hs_status hs_exchange_start_part(hs_exchange* exchange, const hs_part* part, int32_t slot) {
  return guarded([&] { start(&Exchange::start, exchange, part, slot, {}); });
}

hs_status hs_exchange_run_part(hs_exchange* exchange, const hs_part* part, int32_t slot) {
  return guarded([&] { start(&Exchange::start, exchange, part, slot, {}).exchange.finish(); });
}

hs_status hs_exchange_start_accumulate_part(hs_exchange* exchange, const hs_part* part, int32_t slot) {
  return guarded([&] { start(&Exchange::start_accumulate, exchange, part, slot, {}); });
}

hs_status hs_exchange_accumulate_part(hs_exchange* exchange, const hs_part* part, int32_t slot) {
  return guarded([&] { start(&Exchange::start_accumulate, exchange, part, slot, {}).exchange.finish(); });
}

hs_status hs_exchange_start_part_on(hs_exchange* exchange, const hs_part* part, int32_t slot, void* stream) {
  return guarded([&] { start(&Exchange::start, exchange, part, slot, DeviceStream{stream}); });
}

hs_status hs_exchange_run_part_on(hs_exchange* exchange, const hs_part* part, int32_t slot, void* stream) {
  return guarded([&] {
    start(&Exchange::start, exchange, part, slot, DeviceStream{stream}).exchange.finish(DeviceStream{stream});
  });
}

hs_status hs_exchange_start_accumulate_part_on(hs_exchange* exchange, const hs_part* part, int32_t slot, void* stream) {
  return guarded([&] { start(&Exchange::start_accumulate, exchange, part, slot, DeviceStream{stream}); });
}

hs_status hs_exchange_accumulate_part_on(hs_exchange* exchange, const hs_part* part, int32_t slot, void* stream) {
  return guarded([&] {
    start(&Exchange::start_accumulate, exchange, part, slot, DeviceStream{stream})
        .exchange.finish(DeviceStream{stream});
  });
}

hs_status hs_exchange_start_share(hs_exchange* exchange, const hs_part* part, int32_t slot) {
  return guarded([&] { start(&Exchange::start_share, exchange, part, slot, {}); });
}

hs_status hs_exchange_share(hs_exchange* exchange, const hs_part* part, int32_t slot) {
  return guarded([&] { start(&Exchange::start_share, exchange, part, slot, {}).exchange.finish(); });
}

hs_status hs_exchange_start_share_on(hs_exchange* exchange, const hs_part* part, int32_t slot, void* stream) {
  return guarded([&] { start(&Exchange::start_share, exchange, part, slot, DeviceStream{stream}); });
}

hs_status hs_exchange_share_on(hs_exchange* exchange, const hs_part* part, int32_t slot, void* stream) {
  return guarded([&] {
    start(&Exchange::start_share, exchange, part, slot, DeviceStream{stream}).exchange.finish(DeviceStream{stream});
  });
}

hs_status hs_exchange_changed(hs_exchange* exchange, int32_t slot, int32_t fresh) {
  return guarded([&] { needed(exchange, "exchange").exchange.changed(slot, fresh); });
}

hs_status hs_exchange_require_fresh(hs_exchange* exchange, int32_t depth, int32_t slot) {
  return guarded([&] { needed(exchange, "exchange").exchange.require_fresh(depth, slot); });
}

hs_status hs_exchange_check_clean(hs_exchange* exchange, int32_t slot) {
  return guarded([&] { needed(exchange, "exchange").exchange.check_clean(slot); });
}

hs_status hs_exchange_changed_on(hs_exchange* exchange, int32_t slot, int32_t fresh, void* stream) {
  return guarded([&] { needed(exchange, "exchange").exchange.changed(slot, fresh, DeviceStream{stream}); });
}

hs_status hs_exchange_check_clean_on(hs_exchange* exchange, int32_t slot, void* stream) {
  return guarded([&] { needed(exchange, "exchange").exchange.check_clean(slot, DeviceStream{stream}); });
}

hs_status hs_exchange_rebind(hs_exchange* exchange, int32_t slot, void* const* first) {
  return guarded([&] {
    Exchange& bound = needed(exchange, "exchange").exchange;
    bound.rebind(addresses(bound, Exchange::Shared::rebind, first), slot);
  });
}

hs_status hs_exchange_run_at(hs_exchange* exchange, int32_t slot, void* const* first) {
  return guarded([&] {
    Exchange& bound = needed(exchange, "exchange").exchange;
    bound.exchange_at(addresses(bound, Exchange::Shared::run_at, first), slot);
  });
}

hs_status hs_exchange_first(const hs_exchange* exchange, int32_t slot, void** first) {
  return guarded([&] {
    const std::vector<void*> found = needed(exchange, "exchange").exchange.first_points(slot);
    std::copy(found.begin(), found.end(), &needed(first, "first"));
  });
}

hs_status hs_exchange_refuse(hs_exchange* exchange, int32_t call, hs_status status, const char* reason) {
  return guarded([&] {
    const auto which = enumerator<Exchange::Shared>(call, HS_CALL_RUN_AT + 1, "call");
    const int why = enumerator<int>(status - 1, 3, "status, less 1,") + 1;
    needed(exchange, "exchange").exchange.refuse(which, static_cast<Exit>(why), text(reason));
  });
}

void hs_exhausted_memory(const char* purpose, int64_t bytes, char* text, int32_t size) {
  const ShortText found = exhausted_memory(purpose != nullptr ? purpose : "a binding", bytes, available_memory(), "");
  if (text != nullptr && size > 0) std::snprintf(text, static_cast<std::size_t>(size), "%s", found.data());
}

hs_status hs_exchange_report(hs_exchange* exchange, const char** text) {
  return guarded([&] {
    hs_exchange& from = needed(exchange, "exchange");
    from.report = from.exchange.report();
    needed(text, "text") = from.report.c_str();
  });
}

hs_status hs_exchange_free(hs_exchange* exchange) {
  return guarded([&] {
    if (exchange == nullptr) return;
    hs_exchange& ended = needed(exchange, "exchange");
    if (!mpi_has_ended()) ended.exchange.free();
    release(exchange, "exchange");
  });
}
