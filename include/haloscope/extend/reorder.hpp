// Reordering of the ranks of a process grid, so that neighbours share nodes and sockets. No MPI.
#pragma once

#include "haloscope/extend/cxx20.hpp"

#include <compare>
#include <cstdint>
#include <vector>

#include "haloscope/layout.hpp"

namespace haloscope {

/// The nodes and sockets of ranks. Any number of ranks may be on each.
struct Sites {
  std::vector<int> node;    ///< of each rank, any numbers; empty: unknown, treated as one node for all ranks
  std::vector<int> socket;  ///< of each rank, any numbers, which other nodes may use too; empty: unknown
};

/// Cells on the faces of blocks whose two ranks are on different nodes or sockets; cells at periodic edges count too.
/// Lower is better.
struct Crossings {
  std::int64_t nodes = 0;    ///< between ranks of different nodes
  std::int64_t sockets = 0;  ///< between sockets of one node
  auto operator<=>(const Crossings&) const = default;
};

/// Counts crossings. @throws UsageError for sites of another number of ranks than the layout's. Cost: O(ranks),
/// local.
Crossings crossings(const Layout& layout, const Sites& sites);

/// Returns the sites of the first `some` of `all` ranks. @throws UsageError for sites of another number than all.
/// Local.
Sites first_ranks(Sites sites, int some, int all);

/// Returns the same blocks with the ranks in an order that leaves as few crossings as possible between nodes, then
/// between the sockets of a node: blocks of a node form a box wherever its ranks, and the process grid, can be
/// divided so. Ranks of one socket keep their order. The result never has more crossings than the layout's order,
/// which is kept where nothing is gained; equal arguments give equal results on all ranks.
/// @throws UsageError as crossings() does. Cost: O(ranks log ranks), local; 10^5 ranks take half a second.
/// Source: hierarchical process grids, Niethammer & Rabenseifner, EuroMPI 2018; Gropp, Parallel Computing 2019.
Layout reordered(const Layout& layout, const Sites& sites);

}  // namespace haloscope
