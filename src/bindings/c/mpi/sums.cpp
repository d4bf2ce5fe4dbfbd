// Sums of fields of the C interface.
#include <cmath>

#include "bindings/c/mpi/bridge.hpp"
#include "haloscope/extend/agree.hpp"
#include "haloscope/runner/exchange_request.hpp"
#include "haloscope/runner/field_sums.hpp"

namespace haloscope::c {
namespace {

/// Returns the fields of this rank's blocks. @param number  of the first, for its name.
std::vector<FieldRef> fields_of_blocks(const hs_grid& on, const hs_field* fields, int number, const char* name) {
  needed(fields, name);
  std::vector<FieldRef> made;
  for (int block = 0; block < blocks_moved(on.layout, on.rank); ++block)
    made.push_back(field_of(fields[block], number + block, 1));
  return made;
}

/// Writes a sum, where every rank has all arguments. @param other  null: the sum of one field.
void add_up(const hs_grid* grid, const hs_field* field, const hs_field* const* other, double* result) {
  const hs_grid& on = needed(grid, "grid");
  const double sum = field_sum(on.comm, on.layout, [&] {
    needed(result, "result");
    SumFields fields{fields_of_blocks(on, field, 0, "field")};
    if (other != nullptr) fields.v = fields_of_blocks(on, *other, static_cast<int>(fields.u.size()), "other");
    return fields;
  });
  *result = sum;
}

}  // namespace
}  // namespace haloscope::c

using namespace haloscope;
using namespace haloscope::c;

hs_status hs_grid_sum(const hs_grid* grid, const hs_field* field, double* result) {
  return guarded([&] { add_up(grid, field, nullptr, result); });
}

hs_status hs_grid_dot(const hs_grid* grid, const hs_field* field, const hs_field* other, double* result) {
  return guarded([&] { add_up(grid, field, &other, result); });
}

hs_status hs_grid_norm(const hs_grid* grid, const hs_field* field, double* result) {
  return guarded([&] {
    add_up(grid, field, &field, result);
    *result = std::sqrt(*result);
  });
}

hs_status hs_grid_refuse_sum(const hs_grid* grid, hs_status status, const char* text) {
  return guarded([&] {
    const hs_grid& on = needed(grid, "grid");
    field_sum(on.comm, on.layout,
              [&]() -> SumFields { fail(static_cast<Exit>(status), text != nullptr ? text : "no text was passed"); });
  });
}
