// Requests that must be equal on all ranks: differences are named before a collective call would hang.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "haloscope/extend/plan.hpp"
#include "haloscope/layout.hpp"

namespace haloscope {

/// A property that must be equal on all ranks.
struct Aspect {
  std::string name;
  std::string text;
  std::string shown = text;  ///< its text in errors: with names, which may differ between ranks
};

/// Returns cells, periodic dimensions, process grid, rank numbers and nodes.
std::vector<Aspect> aspects_of(const Layout& layout, const std::vector<int>& nodes);
/// Returns the properties of a field that must be equal, as a text.
std::string kind_of(const Quantity& field);
/// Returns the fields; their names only appear in errors.
Aspect fields_of(const std::vector<Quantity>& fields);

/// Compares requests.
/// @param object   of the requests: "exchanges". @param aspects the same list of names on every rank.
/// @param names    names of the fields, in order. Ranks may use different names, but not the same names in another
///              order.
/// @param remedy   ends the error.
/// @throws UsageError, on all ranks, where requests differ, naming the difference and two ranks.
/// Collective; cost: one reduction to all, a second one where there are several names.
void require_same(MPI_Comm comm, const std::string& object, const std::vector<Aspect>& aspects,
                  const std::vector<std::string>& names, const std::string& remedy);

}  // namespace haloscope
