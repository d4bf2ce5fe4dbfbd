// Requests that must be equal on all ranks: what differs is named before a collective call hangs over it.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "haloscope/layout.hpp"
#include "haloscope/plan.hpp"

namespace haloscope {

/// Something that must be the same on all ranks.
struct Aspect {
  std::string name;
  std::string text;
  std::string shown = text;  ///< in its place in errors: with names, which may be others on each rank
};

/// Cells, periodic dimensions, process grid, rank numbers and nodes.
std::vector<Aspect> aspects_of(const Layout& layout, const std::vector<int>& nodes);
/// The fields; their names are only shown.
Aspect fields_of(const std::vector<Quantity>& fields);

/// @param what     they ask for: "exchanges". @param aspects  the same list of names on every rank.
/// @param names    of the fields, in their order. Ranks may use other names, but not the same ones in another order.
/// @param remedy   ends the error.
/// @throws UsageError, on all ranks alike, where ranks ask for something else, naming what differs and two ranks.
/// Collective; cost: one reduction to all, a second one where there are several names.
void require_same(MPI_Comm comm, const std::string& what, const std::vector<Aspect>& aspects,
                  const std::vector<std::string>& names, const std::string& remedy);

}  // namespace haloscope
