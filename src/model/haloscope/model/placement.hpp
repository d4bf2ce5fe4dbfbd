// The mapping of ranks to nodes and sockets. Source: Davis 2017, eq. 5.17 and 5.22 to 5.30, tables 4.5 and 5.8.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace haloscope::model {

/// Node and socket (numbered over all nodes) of each rank.
struct RankPlaces {
  std::vector<int> node, socket;
  /// Nodes that hold a rank.
  int nodes() const;
  /// Per rank: the number of ranks that share its socket, itself included. Source: eq. "5.23" (pcs).
  std::vector<int> active() const;
};

/// A node and a socket of that node.
using Place = std::pair<int, int>;

/// The number of a socket over all nodes. @throws UsageError where it is too large.
int socket_number(const Place& place, int sockets_per_node);

const std::vector<std::string>& placement_rules();

/// Maps each rank to a node and a socket.
/// @param rule  `fill` (a node is filled before the next, its sockets sequentially), `balanced` (the number of nodes of
///         `fill`, equally many ranks on each, sockets filled sequentially), `by-socket` (the same nodes, ranks dealt
///         to their sockets in turn), `round-robin` (ranks dealt to those nodes in turn, each node's sockets in turn),
///         `custom` (a node and a socket for each rank).
/// @param active  max ranks on a socket, 1..cores_per_socket.
/// @throws UsageError for an unknown rule, numbers out of range, and custom mappings that do not fit.
RankPlaces place_ranks(const std::string& rule, int ranks, int sockets_per_node, int cores_per_socket, int active,
                       const std::vector<Place>& custom = {});

}  // namespace haloscope::model
