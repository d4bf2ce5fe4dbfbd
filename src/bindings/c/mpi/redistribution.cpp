// Redistributions of the C interface.
#include <cstdint>
#include <limits>
#include <optional>

#include "bindings/c/mpi/bridge.hpp"
#include "haloscope/comm/running.hpp"
#include "haloscope/extend/agree.hpp"
#include "haloscope/extend/topology.hpp"
#include "haloscope/runner/exchange_request.hpp"

namespace haloscope::c {
namespace {

/// Returns the fields of this rank's blocks, `count` in each.
std::vector<FieldRef> fields_of_blocks(const hs_grid& on, const hs_field* fields, int count, int slots,
                                       const char* name) {
  const std::int64_t all = std::int64_t{count} * blocks_moved(on.layout, on.rank);
  if (all > std::numeric_limits<int>::max())
    throw UsageError(std::to_string(count) +
                     " fields in each of this rank's blocks are more than arrays of fields hold");
  return fields_of(fields, static_cast<int>(all), slots, name);
}

/// Collective over the first grid's communicator.
void make(const hs_grid& from, const hs_grid* passed_to, const hs_field* sources, const hs_field* targets,
          int32_t count, const hs_exchange_options* passed, hs_redistribution** redistribution) {
  std::vector<FieldRef> first, second;
  const hs_grid* to = nullptr;
  std::optional<Strategy> strategy;
  agree(from.comm, [&] {
    needed(redistribution, "redistribution") = nullptr;
    to = &needed(passed_to, "to");
  });
  require_same_ranks(from.comm, to->comm);
  agree(from.comm, [&] {
    const hs_exchange_options options = options_of(passed);
    if (count < 1) throw UsageError("a redistribution of " + std::to_string(count) + " fields; it needs at least one");
    first = fields_of_blocks(from, sources, count, options.slots, "sources");
    second = fields_of_blocks(*to, targets, count, options.slots, "targets");
    if (options.strategy != nullptr) strategy = Strategy(options.strategy);
  });
  *redistribution = keep(new hs_redistribution{
      Redistribution(from.comm, from.layout, to->layout, first, second, strategy, from.nodes), {}});
}

Redistribution& moved_by(hs_redistribution* redistribution) {
  return needed(redistribution, "redistribution").redistribution;
}

}  // namespace
}  // namespace haloscope::c

using namespace haloscope;
using namespace haloscope::c;

hs_status hs_redistribution_create(const hs_grid* from, const hs_grid* to, const hs_field* sources,
                                   const hs_field* targets, int32_t count, const hs_exchange_options* options,
                                   hs_redistribution** redistribution) {
  return guarded([&] {
    const hs_grid& on = needed(from, "from");
    require_communicator(on.comm);
    collectively(on.comm, "a redistribution", [&] { make(on, to, sources, targets, count, options, redistribution); });
  });
}

hs_status hs_redistribution_start(hs_redistribution* redistribution, int32_t slot) {
  return guarded([&] { moved_by(redistribution).start(slot); });
}

hs_status hs_redistribution_start_on(hs_redistribution* redistribution, int32_t slot, void* stream) {
  return guarded([&] { moved_by(redistribution).start(slot, DeviceStream{stream}); });
}

hs_status hs_redistribution_progress(hs_redistribution* redistribution, int32_t* done) {
  return guarded([&] {
    const bool all = moved_by(redistribution).progress();
    if (done) *done = all;
  });
}

hs_status hs_redistribution_finish(hs_redistribution* redistribution) {
  return guarded([&] { moved_by(redistribution).finish(); });
}

hs_status hs_redistribution_run(hs_redistribution* redistribution, int32_t slot) {
  return guarded([&] { moved_by(redistribution).run(slot); });
}

hs_status hs_redistribution_report(hs_redistribution* redistribution, const char** text) {
  return guarded([&] {
    hs_redistribution& from = needed(redistribution, "redistribution");
    from.report = from.redistribution.report();
    needed(text, "text") = from.report.c_str();
  });
}

hs_status hs_redistribution_free(hs_redistribution* redistribution) {
  return guarded([&] {
    if (redistribution == nullptr) return;
    Redistribution& ended = moved_by(redistribution);
    if (!mpi_has_ended()) ended.free();
    release(redistribution, "redistribution");
  });
}
