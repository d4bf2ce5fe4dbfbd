// Ranks in classes: equal plans, equal nearness of all peers, equal load of what they share. One of each class is
// priced.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "haloscope/choice.hpp"
#include "haloscope/model/placement.hpp"
#include "haloscope/model/profile.hpp"
#include "haloscope/model/traffic.hpp"

namespace haloscope::model {

/// Which ranks have the same plans, whatever the exchange, but for the rank numbers in them: for each rank the number
/// of its class, in order of their first ranks. Cost O(ranks x log(classes)).
std::vector<int> plan_classes(const Layout& layout);

/// Where a rank's peers are in the process grid, so that peers of other ranks with its plan can be found.
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

/// Ranks with equal plans: those of the first of them by stage, and all their messages, stage after stage, with rounds
/// and tags of their own.
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

/// Of an incoming message: the number of a class, or of a track, and of its outgoing message.
struct Source {
  int from = 0, message = 0;
  bool operator==(const Source&) const = default;
};
/// By message; empty for outgoing ones.
using Sources = std::vector<std::vector<Source>>;

/// Ranks that one track represents.
struct RankClass {
  int kind = 0;
  int rank = 0;   ///< the first of them
  int count = 1;  ///< how many they are
  int ranks_on_socket = 1;
  std::vector<Locality> near;   ///< of each message's peer
  std::vector<char> far;        ///< whether the peer is on another node, as transports see it
  std::vector<double> flights;  ///< seconds that each message travels
  Sources sources;              ///< every class that has such a peer
};

/// The nearness of two ranks.
Locality nearness(const RankPlaces& places, int a, int b);

/// The classes of all ranks, in the order of their first ranks within each kind.
/// @param at_once  part of a round's messages that are under way together.
/// @param node  of each rank as transports see it, which decides what is `far`.
/// @param singly  every rank is a class of its own.
std::vector<RankClass> classes_of(const Kinds& kinds, const RankPlaces& places, const Profile& profile, double at_once,
                                  const std::vector<int>& node, bool singly);

/// Sources as if every peer did what the rank does: each message is answered by one of the same round.
Sources mirrored(const std::vector<Message>& messages);

}  // namespace haloscope::model
