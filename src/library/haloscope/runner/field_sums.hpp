// The sums of field.hpp for interfaces that take fields in another form.
#pragma once

#include <mpi.h>

#include <functional>
#include <optional>
#include <vector>

#include "haloscope/field.hpp"

namespace haloscope {

/// A field whose numbers are added up, or two whose products are: each a list of the fields of this rank's blocks.
struct SumFields {
  std::vector<FieldRef> u;
  std::optional<std::vector<FieldRef>> v = {};
  int slot_u = 0, slot_v = 0;
  bool of_complex = false;  ///< they are parts of complex numbers
};
double sum_of_fields(MPI_Comm comm, const Layout& layout, const std::function<SumFields()>& fields);
/// Returns a sum. @param fields  local; an error that it throws on one rank is thrown on all. Collective.
template <class Fields>
double field_sum(MPI_Comm comm, const Layout& layout, const Fields& fields) {
  return sum_of_fields(comm, layout, std::cref(fields));  // allocates nothing, which could fail on one rank
}

}  // namespace haloscope
