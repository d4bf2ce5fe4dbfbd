// Which rank takes which place of a process grid, so that neighbours share nodes and sockets. No MPI.
#pragma once

#include "haloscope/cxx20.hpp"

#include <compare>
#include <cstdint>
#include <vector>

#include "haloscope/layout.hpp"

namespace haloscope {

/// Where ranks run. Any numbers of ranks on each node and socket.
struct Sites {
  std::vector<int> node;    ///< of each rank, any numbers; empty: not known, as if all ranks were on one
  std::vector<int> socket;  ///< of each rank, any numbers, which other nodes may use too; empty: not known
};

/// Cells on the faces of blocks whose two ranks are apart; those at periodic edges count too. Less is better.
struct Crossings {
  std::int64_t nodes = 0;    ///< between ranks of different nodes
  std::int64_t sockets = 0;  ///< between sockets of one node
  auto operator<=>(const Crossings&) const = default;
};

/// @throws UsageError for sites of another number of ranks than the layout's. Cost: O(ranks), local.
Crossings crossings(const Layout& layout, const Sites& sites);

/// The same blocks with the ranks in an order that leaves as few cells as possible between nodes, then between the
/// sockets of a node: those of a node form a box wherever its ranks, and the process grid, can be divided so. Ranks of
/// one socket keep their order. Never more crossings than the given order, which is kept where nothing is gained; the
/// same answer everywhere for the same arguments.
/// @throws UsageError as crossings() does. Cost: O(ranks log ranks), local; 10^5 ranks take half a second.
/// Source: hierarchical process grids, Niethammer & Rabenseifner, EuroMPI 2018; Gropp, Parallel Computing 2019.
Layout reordered(const Layout& layout, const Sites& sites);

}  // namespace haloscope
