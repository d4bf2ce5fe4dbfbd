// Files of fields of the C interface.
#include <optional>

#include "bindings/c/mpi/bridge.hpp"
#include "haloscope/extend/agree.hpp"
#include "haloscope/runner/field_files.hpp"

namespace haloscope::c {
namespace {

void move_field(Transfer transfer, const hs_grid* grid, const hs_field* field, const char* type, const char* order,
                const char* path, std::optional<std::int64_t> offset = {}) {
  const hs_grid& on = needed(grid, "grid");
  transfer_field(on.comm, on.layout, transfer, [&] {
    if (!text(order).empty() && text(order) != "C" && text(order) != "F")
      throw UsageError("order '" + text(order) + "' is unknown; pass C or F");
    return FieldFile{field_of_blocks(on, field, 0, "field"), &needed(path, "path"), text(type), text(order) == "F",
                     offset};
  });
}

void refuse_field(Transfer transfer, const hs_grid* grid, hs_status status, const char* reason) {
  const hs_grid& on = needed(grid, "grid");
  transfer_field(on.comm, on.layout, transfer,
                 [&]() -> FieldFile { fail(enumerator<Exit>(status, 4, "status"), text(reason)); });
}

}  // namespace
}  // namespace haloscope::c

using namespace haloscope;
using namespace haloscope::c;

hs_status hs_grid_write(const hs_grid* grid, const hs_field* field, const char* type, const char* order,
                        const char* path) {
  return guarded([&] { move_field(Transfer::write, grid, field, type, order, path); });
}

hs_status hs_grid_read(const hs_grid* grid, const hs_field* field, const char* type, const char* order,
                       const char* path) {
  return guarded([&] { move_field(Transfer::read, grid, field, type, order, path); });
}

hs_status hs_grid_write_at(const hs_grid* grid, const hs_field* field, const char* path, int64_t offset) {
  return guarded([&] { move_field(Transfer::write, grid, field, nullptr, nullptr, path, offset); });
}

hs_status hs_grid_read_at(const hs_grid* grid, const hs_field* field, const char* path, int64_t offset) {
  return guarded([&] { move_field(Transfer::read, grid, field, nullptr, nullptr, path, offset); });
}

hs_status hs_grid_refuse_write(const hs_grid* grid, hs_status status, const char* reason) {
  return guarded([&] { refuse_field(Transfer::write, grid, status, reason); });
}

hs_status hs_grid_refuse_read(const hs_grid* grid, hs_status status, const char* reason) {
  return guarded([&] { refuse_field(Transfer::read, grid, status, reason); });
}
