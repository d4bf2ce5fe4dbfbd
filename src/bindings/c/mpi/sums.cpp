// Sums of fields of the C interface.
#include <cmath>

#include "bindings/c/mpi/bridge.hpp"
#include "haloscope/extend/agree.hpp"
#include "haloscope/runner/field_sums.hpp"

namespace haloscope::c {
namespace {

/// Writes a sum, where every rank has all arguments. @param other  null: the sum of one field.
void add_up(const hs_grid* grid, const hs_field* field, const hs_field* const* other, double* result,
            bool of_complex = false) {
  const hs_grid& on = needed(grid, "grid");
  const double sum = field_sum(on.comm, on.layout, [&] {
    needed(result, "result");
    SumFields fields{field_of_blocks(on, field, 0, "field")};
    fields.of_complex = of_complex;
    if (other != nullptr) fields.v = field_of_blocks(on, *other, static_cast<int>(fields.u.size()), "other");
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

hs_status hs_grid_sum_of_parts(const hs_grid* grid, const hs_field* field, double* result) {
  return guarded([&] { add_up(grid, field, nullptr, result, true); });
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
