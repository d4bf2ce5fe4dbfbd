// Ranks in classes: equal plans, equal locality of all peers, equal load of shared resources. The costs of one rank of
// each class are computed.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "haloscope/choice.hpp"
#include "haloscope/model/placement.hpp"
#include "haloscope/model/profile.hpp"
#include "haloscope/model/traffic.hpp"

namespace haloscope::model {

/// Groups ranks whose plans are equal in every exchange, but for the rank numbers in them. Returns the class number of
/// each rank, in the order of the classes' first ranks. Cost O(ranks x log(classes)).
std::vector<int> plan_classes(const Layout& layout);

/// Offsets in the process grid from a rank to its peers, which give the peers of other ranks with its plan.
class PeerOffsets {
 public:
  /// @param plan  of a rank of the layout, which must outlive the object.
  PeerOffsets(const Layout& layout, const Plan& plan);
  /// Writes the peers of `rank`, by message.
  void peers_of(int rank, int* peers) const;

 private:
  const Layout& layout_;
  std::vector<std::array<int, 3>> offsets_;
};

/// Ranks with equal plans: the plans of the first of them by stage, and all their messages, stage by stage, with
/// separate rounds and tags.
struct Kind {
  std::vector<Plan> plans;
  std::vector<Message> messages;
  int rounds = 1;
  std::vector<Traffic> traffic;
  std::vector<int> first_message;  ///< of each stage, and the number of messages
  std::vector<int> members;        ///< ranks
  std::vector<int> peers;          ///< members x messages

  int peer(std::size_t member, std::size_t message) const { return peers[member * messages.size() + message]; }
  std::span<const Traffic> traffic_of(int stage) const;
};
using Kinds = std::vector<Kind>;

/// The kinds of ranks of a layout under the exchanges of a step's stages. Cost O(ranks x messages).
/// @throws UsageError as make_plan() does.
Kinds kinds_of(const Layout& layout, const std::vector<ExchangeSpec>& specs);

/// The source of an incoming message: the number of a class, or of a timeline, and of its outgoing message.
struct Source {
  int from = 0, message = 0;
  bool operator==(const Source&) const = default;
};
/// By message; empty for outgoing ones.
using Sources = std::vector<std::vector<Source>>;

/// Ranks that one timeline represents.
struct RankClass {
  int kind = 0;
  int rank = 0;   ///< the first of them
  int count = 1;  ///< number of ranks
  int ranks_on_socket = 1;
  std::vector<Locality> near;   ///< of each message's peer
  std::vector<char> far;        ///< 1 where the peer is on another node, as transports see it
  std::vector<double> flights;  ///< seconds that each message travels
  Sources sources;              ///< every class that has such a peer
};

/// The locality of two ranks.
Locality nearness(const RankPlaces& places, int a, int b);

/// The classes of all ranks, in the order of their first ranks within each kind.
/// @param at_once  part of a round's messages that are in flight together.
/// @param node  of each rank as transports see it, which determines `far`.
/// @param singly  every rank is a separate class.
std::vector<RankClass> classes_of(const Kinds& kinds, const RankPlaces& places, const Profile& profile, double at_once,
                                  const std::vector<int>& node, bool singly);

/// Sources under the assumption that every peer acts as the rank does: each incoming message is the counterpart of an
/// outgoing one of the same round.
Sources mirrored(const std::vector<Message>& messages);

}  // namespace haloscope::model
