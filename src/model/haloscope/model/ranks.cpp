// Classes of ranks. Loops over all ranks are plain, so that a hundred thousand of them take a second.
#include "haloscope/model/ranks.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <unordered_map>

#include "haloscope/error.hpp"
#include "haloscope/model/hash.hpp"
#include "haloscope/model/network.hpp"

namespace haloscope::model {

namespace {

constexpr int most_apart = 32;  // max classes that are distinguished by their peers' classes alone

// ---- flights of messages ----

/// Amounts by way (in, out), locality, round and resource: a socket's memory, a node's wires.
class Loads {
 public:
  Loads(int rounds, int resources) : rounds_(rounds), resources_(resources), values_(std::size_t{2} * both()) {}
  std::size_t both() const { return std::size_t{nearnesses} * rounds_ * resources_; }
  std::size_t place(bool out, Locality near, int round, int resource) const {
    return ((static_cast<std::size_t>(out) * nearnesses + static_cast<std::size_t>(near)) * rounds_ + round) *
               resources_ +
           resource;
  }
  double& operator[](std::size_t place) { return values_[place]; }
  double operator[](std::size_t place) const { return values_[place]; }
  void add(const Loads& other) {
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] += other.values_[i];
  }

 private:
  int rounds_, resources_;
  std::vector<double> values_;
};

/// Everything in flight together on each resource; total: seconds that it is occupied.
struct Traveling {
  Loads total, longest, count, volume;
  Traveling(int rounds, int resources)
      : total(rounds, resources), longest(rounds, resources), count(rounds, resources), volume(rounds, resources) {}
};

/// A message without concurrent ones: its seconds, and the part of them in which it occupies its shared resource.
struct Alone {
  double seconds = 0, occupied_s = 0;
};
using Times = std::vector<std::array<Alone, nearnesses>>;  // of each message

Times times_alone(const Kind& kind, const Profile& profile) {
  Times times;
  for (const Message& message : kind.messages) {
    auto& of_message = times.emplace_back();
    for (int near = 0; near < nearnesses; ++near) {
      const double seconds = message_time(profile, static_cast<Locality>(near), static_cast<double>(message.bytes));
      of_message[near] = {seconds, contention(profile, static_cast<Locality>(near)).occupied(seconds)};
    }
  }
  return times;
}

/// Calls `visit` with the position of every message of a kind in `loads`, by member, then by message.
void visit_places(const Kind& kind, const RankPlaces& places, const Loads& loads, const auto& visit) {
  for (std::size_t i = 0; i < kind.members.size(); ++i)
    for (std::size_t m = 0; m < kind.messages.size(); ++m) {
      const Message& message = kind.messages[m];
      const Locality near = nearness(places, kind.members[i], kind.peer(i, m));
      const int resource = (near == Locality::socket ? places.socket : places.node)[kind.members[i]];
      visit(m, near, loads.place(message.out, near, message.round, resource));
    }
}

Traveling gather_loads(const Kinds& kinds, const RankPlaces& places, const std::vector<Times>& times, int rounds,
                       int resources) {
  Traveling all(rounds, resources);
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    Traveling own(rounds, resources);
    visit_places(kinds[k], places, own.total, [&](std::size_t m, Locality near, std::size_t place) {
      const Alone& alone = times[k][m][static_cast<std::size_t>(near)];
      own.total[place] += alone.occupied_s;
      own.count[place] += 1;
      own.volume[place] += static_cast<double>(kinds[k].messages[m].bytes);
      all.longest[place] = std::max(all.longest[place], alone.seconds);
    });
    all.total.add(own.total);
    all.count.add(own.count);
    all.volume.add(own.volume);
  }
  return all;
}

/// Seconds of the messages at one position when they travel together. in, out: the position, by way.
double batch_time(const Traveling& t, const Profile& profile, Locality near, double at_once, std::size_t in,
                  std::size_t out) {
  const Contention law = contention(profile, near);
  const auto way = [&](std::size_t place, double part) {
    const double others = t.total[place] * at_once * part - law.occupied(t.longest[place]);
    return t.longest[place] + law.shared * std::max(0.0, others);
  };
  const auto against = [&](double opposite) { return (law.duplex - 1) * law.occupied(opposite); };
  if (near != Locality::network) {  // each message is counted at both ends; half of them go either way
    const double longer = way(out, 0.5);
    return longer + (t.count[out] * at_once > 1 ? against(longer) : 0.0);
  }
  const double goes = way(out, 1), comes = way(in, 1);  // the two directions of a node's wires
  const double time = std::max(goes, comes) + against(std::min(goes, comes));
  const double rate = profile.network->injection_bytes_per_s;
  if (rate == 0) return time;
  if (t.count[out] == 0) return 0;
  return std::max(time, message_time(profile, Locality::network, 0) + t.volume[out] * at_once / rate);
}

/// Seconds that each message of each kind travels (members x messages), in contention with the other messages of its
/// round on the same resource. Ranks of a socket share its memory, ranks of a node share the way between its sockets
/// and the way to other nodes. All messages of a batch take as long as the batch. Sources: see network.hpp.
std::vector<std::vector<double>> flights_of(const Kinds& kinds, const RankPlaces& places, const Profile& profile,
                                            double at_once) {
  int rounds = 1, resources = 1;
  bool messages = false;
  for (const Kind& kind : kinds) {
    rounds = std::max(rounds, kind.rounds);
    messages = messages || !kind.messages.empty();
  }
  std::vector<std::vector<double>> flights(kinds.size());
  if (!messages) return flights;
  for (const auto* numbers : {&places.socket, &places.node})
    resources = std::max(resources, *std::max_element(numbers->begin(), numbers->end()) + 1);
  std::vector<Times> times;
  for (const Kind& kind : kinds) times.push_back(times_alone(kind, profile));
  const Traveling t = gather_loads(kinds, places, times, rounds, resources);
  const std::size_t both = t.total.both();
  std::vector<double> batches(both, -1.0);  // equal at both ends
  for (std::size_t k = 0; k < kinds.size(); ++k)
    visit_places(kinds[k], places, t.total, [&](std::size_t, Locality near, std::size_t place) {
      double& batch = batches[place % both];
      if (batch < 0) batch = batch_time(t, profile, near, at_once, place % both, place % both + both);
      flights[k].push_back(batch);
    });
  return flights;
}

// ---- classes ----

/// Classes of ranks of one kind with equal keys, in the order of first ranks.
struct Numbered {
  std::vector<int> number;                                  ///< by rank
  std::vector<std::pair<std::size_t, std::size_t>> firsts;  ///< kind and first member, by class
  std::vector<int> counts;
};

/// key: of a kind's member.
Numbered number_ranks(const Kinds& kinds, std::size_t ranks,
                      const std::function<std::uint64_t(std::size_t kind, std::size_t member)>& key) {
  Numbered found;
  found.number.resize(ranks);
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    std::unordered_map<std::uint64_t, int> known;
    for (std::size_t i = 0; i < kinds[k].members.size(); ++i) {
      const auto [at, is_new] = known.try_emplace(key(k, i), static_cast<int>(found.firsts.size()));
      if (is_new) {
        found.firsts.push_back({k, i});
        found.counts.push_back(0);
      }
      found.number[kinds[k].members[i]] = at->second;
      ++found.counts[at->second];
    }
  }
  return found;
}

/// Splits classes so that their ranks have peers of the same classes: a class's representative waits for everything
/// that any of its ranks waits for.
Numbered tell_apart(const Kinds& kinds, Numbered classes) {
  while (classes.firsts.size() < most_apart) {
    Numbered finer = number_ranks(kinds, classes.number.size(), [&](std::size_t k, std::size_t i) {
      Hash hash;
      hash.add(static_cast<std::uint64_t>(classes.number[kinds[k].members[i]]));
      for (std::size_t m = 0; m < kinds[k].messages.size(); ++m)
        hash.add(static_cast<std::uint64_t>(classes.number[kinds[k].peer(i, m)]));
      return hash.take();
    });
    if (finer.firsts.size() <= classes.firsts.size() || finer.firsts.size() > most_apart) break;
    classes = std::move(finer);
  }
  return classes;
}

/// The number of the outgoing message that arrives as `message` at `receiver`.
int counterpart(const Kind& kind, std::size_t member, int receiver, const Message& message) {
  for (std::size_t m = 0; m < kind.messages.size(); ++m) {
    const Message& sent = kind.messages[m];
    if (sent.out && sent.tag == message.tag && sent.round == message.round && kind.peer(member, m) == receiver)
      return static_cast<int>(m);
  }
  throw Error(Exit::failed, "a message of rank " + std::to_string(receiver) +
                                " has no counterpart at its peer; this is a fault in the program, please report it");
}

std::vector<Sources> sources_of(const Kinds& kinds, const Numbered& classes) {
  std::vector<std::pair<std::size_t, std::size_t>> place(classes.number.size());  // kind and member, by rank
  for (std::size_t k = 0; k < kinds.size(); ++k)
    for (std::size_t i = 0; i < kinds[k].members.size(); ++i) place[kinds[k].members[i]] = {k, i};
  std::vector<Sources> sources(classes.firsts.size());
  for (std::size_t c = 0; c < sources.size(); ++c) sources[c].resize(kinds[classes.firsts[c].first].messages.size());
  for (const Kind& kind : kinds)
    for (std::size_t m = 0; m < kind.messages.size(); ++m) {
      if (kind.messages[m].out) continue;
      std::map<std::pair<int, int>, std::size_t> first;  // member, by its class and that of its peer
      for (std::size_t i = 0; i < kind.members.size(); ++i)
        first.try_emplace({classes.number[kind.members[i]], classes.number[kind.peer(i, m)]}, i);
      for (const auto& [pair, i] : first) {
        const auto [k, peer] = place[kind.peer(i, m)];
        const int out = counterpart(kinds[k], peer, kind.members[i], kind.messages[m]);
        sources[pair.first][m].push_back({pair.second, out});
      }
    }
  return sources;
}

}  // namespace

Locality nearness(const RankPlaces& places, int a, int b) {
  if (places.socket[a] == places.socket[b]) return Locality::socket;
  return places.node[a] == places.node[b] ? Locality::node : Locality::network;
}

std::vector<RankClass> classes_of(const Kinds& kinds, const RankPlaces& places, const Profile& profile, double at_once,
                                  const std::vector<int>& node, bool singly) {
  const auto flights = flights_of(kinds, places, profile, at_once);
  const std::vector<int> socket_ranks = places.active();
  const auto is_far = [&](const Kind& kind, std::size_t i, std::size_t m) {
    return node[kind.members[i]] != node[kind.peer(i, m)];
  };
  Numbered classes = number_ranks(kinds, node.size(), [&](std::size_t k, std::size_t i) -> std::uint64_t {
    if (singly) return i;
    const Kind& kind = kinds[k];
    Hash hash;
    hash.add(static_cast<std::uint64_t>(socket_ranks[kind.members[i]]));
    for (std::size_t m = 0; m < kind.messages.size(); ++m) {
      const Locality near = nearness(places, kind.members[i], kind.peer(i, m));
      hash.add(2 * static_cast<std::uint64_t>(near) + is_far(kind, i, m));
      hash.add(std::bit_cast<std::uint64_t>(flights[k][i * kind.messages.size() + m]));
    }
    return hash.take();
  });
  if (!singly) classes = tell_apart(kinds, std::move(classes));
  std::vector<Sources> sources = sources_of(kinds, classes);
  std::vector<RankClass> found;
  for (std::size_t c = 0; c < classes.firsts.size(); ++c) {
    const auto [k, i] = classes.firsts[c];
    const Kind& kind = kinds[k];
    RankClass one{static_cast<int>(k),  kind.members[i], classes.counts[c], socket_ranks[kind.members[i]], {}, {}, {},
                  std::move(sources[c])};
    for (std::size_t m = 0; m < kind.messages.size(); ++m) {
      one.near.push_back(nearness(places, kind.members[i], kind.peer(i, m)));
      one.far.push_back(is_far(kind, i, m));
      one.flights.push_back(flights[k][i * kind.messages.size() + m]);
    }
    found.push_back(std::move(one));
  }
  return found;
}

Sources mirrored(const std::vector<Message>& messages) {
  Sources found(messages.size());
  for (std::size_t m = 0; m < messages.size(); ++m) {
    if (messages[m].out) continue;
    // The message of the same peer if there is one, then the closest in size, then the first.
    int best = -1;
    std::pair<bool, std::int64_t> least;
    for (std::size_t o = 0; o < messages.size(); ++o) {
      if (!messages[o].out || messages[o].round != messages[m].round) continue;
      const std::pair rank{messages[o].peer != messages[m].peer, std::abs(messages[o].bytes - messages[m].bytes)};
      if (best < 0 || rank < least) {
        best = static_cast<int>(o);
        least = rank;
      }
    }
    if (best < 0)
      throw Error(Exit::failed, "a round has messages that come in, but none that goes out; please report this");
    found[m] = {{0, best}};
  }
  return found;
}

}  // namespace haloscope::model
