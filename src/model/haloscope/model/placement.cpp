#include "haloscope/model/placement.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <set>

#include "haloscope/core/bounds.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"

namespace haloscope::model {

namespace {

RankPlaces place_custom(const std::vector<Place>& places, int ranks, int sockets_per_node) {
  if (static_cast<int>(places.size()) != ranks)
    throw UsageError("a custom placement needs one node and socket per rank: " + std::to_string(ranks) + " ranks, " +
                     std::to_string(places.size()) + " places");
  RankPlaces found;
  for (const auto& [node, socket] : places) {
    if (node < 0 || socket < 0 || socket >= sockets_per_node)
      throw UsageError("nodes count from 0 and sockets of a node from 0 to " + std::to_string(sockets_per_node - 1));
    if (node >= bound.nodes.most)
      throw UsageError("node " + std::to_string(node) + " is not possible; nodes are numbered from 0");
    found.node.push_back(node);
    found.socket.push_back(socket_number({node, socket}, sockets_per_node));
  }
  return found;
}

/// Node, and number within it, of a rank.
Place node_of(const std::string& rule, int rank, int ranks, int per_node) {
  const int nodes = (ranks - 1) / per_node + 1;
  if (rule == "fill") return {rank / per_node, rank % per_node};
  if (rule == "round-robin") return {rank % nodes, rank / nodes};
  const int few = ranks / nodes, more = ranks % nodes;  // the first `more` nodes hold one rank more
  const int edge = more * (few + 1);
  if (rank < edge) return {rank / (few + 1), rank % (few + 1)};
  return {more + (rank - edge) / few, (rank - edge) % few};
}

}  // namespace

int socket_number(const Place& place, int sockets_per_node) {
  const std::int64_t number = std::int64_t{place.first} * sockets_per_node + place.second;
  if (number > std::numeric_limits<int>::max())
    throw UsageError("node " + std::to_string(place.first) + " is not possible where each has " +
                     std::to_string(sockets_per_node) + " sockets; use fewer nodes");
  return static_cast<int>(number);
}

const std::vector<std::string>& placement_rules() {
  static const std::vector<std::string> rules{"fill", "balanced", "by-socket", "round-robin", "custom"};
  return rules;
}

int RankPlaces::nodes() const { return static_cast<int>(std::set<int>(node.begin(), node.end()).size()); }

std::vector<int> RankPlaces::active() const {
  std::map<int, int> counts;
  for (const int s : socket) ++counts[s];
  std::vector<int> found;
  found.reserve(socket.size());
  for (const int s : socket) found.push_back(counts[s]);
  return found;
}

RankPlaces place_ranks(const std::string& rule, int ranks, int sockets_per_node, int cores_per_socket, int active,
                       const std::vector<Place>& custom) {
  if (!has(placement_rules(), rule)) throw UsageError(unknown_name("placement", rule, placement_rules()));
  if (std::max(sockets_per_node, cores_per_socket) > bound.machine.most)
    throw UsageError("a node of " + std::to_string(sockets_per_node) + " sockets with " +
                     std::to_string(cores_per_socket) + " cores each is not possible; give at most " +
                     std::to_string(static_cast<int>(bound.machine.most)) + " of either");
  if (std::min({ranks, sockets_per_node, cores_per_socket, active}) < 1 || active > cores_per_socket)
    throw UsageError("cannot place " + std::to_string(ranks) + " ranks on nodes of " +
                     std::to_string(sockets_per_node) + " sockets with " + std::to_string(active) + " of " +
                     std::to_string(cores_per_socket) +
                     " cores each in use; all must be at least 1 and no more cores in use than there are");
  if (rule == "custom") return place_custom(custom, ranks, sockets_per_node);
  RankPlaces found;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto [node, local] = node_of(rule, rank, ranks, sockets_per_node * active);
    const int socket = rule == "fill" || rule == "balanced" ? local / active : local % sockets_per_node;
    found.node.push_back(node);
    found.socket.push_back(socket_number({node, socket}, sockets_per_node));
  }
  return found;
}

}  // namespace haloscope::model
