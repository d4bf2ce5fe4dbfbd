// What an exchange is asked for: from fields and options to a plan, the same on all ranks.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "haloscope/exchange.hpp"

namespace haloscope {

/// @throws UsageError for a field that was made for a grid of which the rank owns another number of cells. Local.
void check_cells(const std::vector<FieldRef>& fields, const Layout& layout, int rank);

/// What an exchange of `fields` moves. Local.
/// @throws UsageError for no field, unequal slots, and fields without room for the layers.
ExchangeSpec spec_of(const std::vector<FieldRef>& fields, int dims, const ExchangeOptions& options);
Views views_of(const std::vector<FieldRef>& fields);

/// The plan of this rank. Local. @throws UsageError as make_plan() does, and for a layout of another number of ranks.
Plan plan_of(MPI_Comm comm, const Layout& layout, ExchangeSpec spec, const Strategy& strategy);

/// The plan of its transpose: what accumulates. Corners are those of the request, whatever more the strategy fills.
/// Local.
/// @throws also UsageError for fields that are not made of numbers.
Plan reverse_plan_of(MPI_Comm comm, const Layout& layout, ExchangeSpec spec, const Strategy& strategy);

/// The memory from the first to the last of some points.
std::span<std::byte> memory_of(const SlotView& view, const Box& points);
/// Move a large array of the caller's to huge pages, as fields of the library's are from the beginning; those in memory
/// that ranks share, and arrays most of whose pages hold no point, stay. Contents stay. Local.
void improve_memory(const SlotView& view, const Box& points);

/// @throws UsageError, on all ranks alike, where they ask for different exchanges, naming what differs and on which
///         ranks.
/// Collective; cost: one reduction to all, a second one for several fields.
void require_same(MPI_Comm comm, const Plan& plan, const Layout& layout, const Strategy& strategy, std::size_t slots,
                  const std::vector<int>& nodes, bool guarded);

}  // namespace haloscope
