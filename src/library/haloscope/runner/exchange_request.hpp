// Requests of exchanges: from fields and options to a plan, equal on all ranks.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "haloscope/comm/same_request.hpp"
#include "haloscope/exchange.hpp"

namespace haloscope {

/// Checks the number of ranks of a layout. @throws UsageError where the communicator has another one. Local.
void check_size(MPI_Comm comm, const Layout& layout);

/// Checks the cells of fields. @throws UsageError for a field that was made for a grid of which the rank owns another
/// number of cells, and where ranks have several blocks. Local.
void check_cells(const std::vector<FieldRef>& fields, const Layout& layout, int rank);

/// Returns the number of blocks whose fields an exchange takes on a rank of the layout: 1 on a rank without cells.
inline int blocks_moved(const Layout& layout, int rank) { return std::max(1, layout.blocks_of(rank)); }
/// Checks the fields of a rank's blocks, which follow each other block by block. @throws UsageError as check_cells(),
/// and unless each block has the same fields. The layout has the rank. Local.
void check_blocks(const std::vector<FieldRef>& fields, const Layout& layout, int rank);
/// Checks one field, in each block of the rank. @throws UsageError as check_blocks(), and for another number of blocks.
void check_field(const std::vector<FieldRef>& blocks, const Layout& layout, int rank);

/// Returns the quantities and widths of an exchange of `fields`: of one block. Local.
/// @param blocks  of which there are fields.
/// @throws UsageError for no field, unequal slots, and fields without room for the layers.
ExchangeSpec spec_of(const std::vector<FieldRef>& fields, int dims, const ExchangeOptions& options, int blocks = 1);
Views views_of(const std::vector<FieldRef>& fields);

/// A request to move some fields of an exchange, some layers deep.
struct PartRequest {
  Motion motion = Motion::fill;
  std::vector<int> fields{};                  ///< numbers of the fields, ascending
  std::vector<ExchangeSpec::Sides> widths{};  ///< layers of each of them
  bool operator==(const PartRequest&) const = default;
};
/// Returns the request for a part. Local.
/// @throws UsageError for a field that the exchange lacks or that is named twice, more layers than it fills, and layers
///         of a share.
PartRequest request_of(const ExchangePart& part, Motion motion, const ExchangeSpec& spec, int dims);
/// Returns the layers at the low and the high sides as a text.
std::string name_of(const ExchangeSpec::Sides& sides);
/// Returns the elements with some numbers.
template <class Elements>
auto chosen(const Elements& elements, const std::vector<int>& numbers) {
  std::vector<typename Elements::value_type> found;
  for (const int number : numbers) found.push_back(elements[static_cast<std::size_t>(number)]);
  return found;
}

/// Makes the plan of this rank. Local. @throws UsageError as make_plan() does, and for a layout of another number of
/// ranks.
Plan plan_of(MPI_Comm comm, const Layout& layout, ExchangeSpec spec, const Strategy& strategy);

/// Makes the plan of a part of an exchange. An accumulation has the corners requested, even if the strategy fills more.
/// Local.
/// @throws as plan_of(), and UsageError for an accumulation of fields that are not made of numbers.
Plan plan_of_part(MPI_Comm comm, const Layout& layout, const ExchangeSpec& spec, const PartRequest& request,
                  const Strategy& strategy);

/// Moves a large array of the caller's to huge pages, where fields of the library are from the beginning. Arrays in
/// memory that ranks share, and arrays most of whose pages hold no point, are not moved. Contents stay. Local.
void improve_memory(const SlotView& view, const Box& points);

/// Compares the requests of all ranks. @throws UsageError, on all ranks, where they request different exchanges,
///         naming the differences and the ranks.
/// @param more  further properties that must be equal, of a part of an exchange.
/// Collective; cost: one reduction to all, a second one for several fields.
void require_same(MPI_Comm comm, const Plan& plan, const Layout& layout, const Strategy& strategy, std::size_t slots,
                  const std::vector<int>& nodes, bool guarded, std::vector<Aspect> more = {});

}  // namespace haloscope
