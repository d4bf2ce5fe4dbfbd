// A candidate on a machine with its plans, programs and rank mapping, ready to be costed.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "haloscope/model/op_costs.hpp"
#include "haloscope/model/ranks.hpp"
#include "haloscope/model/steady_state.hpp"
#include "haloscope/model/unit_costs.hpp"

namespace haloscope::model {

constexpr int all_cores = -1;

/// Settings of a run that a choice leaves open.
struct Setting {
  std::string placement = "fill";  ///< one of placement_rules()
  int active = all_cores;          ///< max cores in use per socket
  std::vector<Place> custom = {};  ///< of each rank, for rule `custom`
  int reductions = 0;              ///< all-reduces per time step in addition to the app's
  int repeats = 1;                 ///< executions of a loop of stages per time step
};

/// A program of one stage and the traffic of its copy sets.
struct PlannedProgram {
  int stage = 0;
  Program program;
  std::vector<std::vector<Traffic>> copies;
};

/// The programs that a rank repeats, in the order in which a round runs them, and the one that it starts with.
struct RankPrograms {
  std::optional<PlannedProgram> opening;
  std::vector<std::shared_ptr<const PlannedProgram>> body;
  int steps = 1;       ///< time steps of a round
  double at_once = 1;  ///< largest part of a round's messages that one operation sends
};

/// The mapping of a choice's ranks, their nodes as transports see them, and notes on that for a reader.
struct RankMapping {
  RankPlaces places;
  std::vector<int> node;
  int nodes = 1;  ///< that hold a rank
  std::vector<std::string> notes;
  Sites sites() const { return {node, places.socket}; }
};

/// The nodes and sockets of a choice's ranks, their nodes as transports see them, and notes for a reader.
struct ExchangeSet {
  Layout layout;
  std::vector<ExchangeSpec> specs;
  Kinds kinds;
};

/// Everything that moves in a candidate's exchanges, between all ranks.
class PlanCache {
 public:
  std::shared_ptr<const ExchangeSet> find_moves(const Layout& layout, std::vector<ExchangeSpec> specs);
  /// Caches everything that successive choices share: choices that move the same data between the same ranks are
  /// successive. For one profile and setting.
  std::shared_ptr<const std::vector<RankPrograms>> find_programs(
      const std::shared_ptr<const ExchangeSet>& moves, const Schedule& schedule,
      const std::vector<ScheduleOptions>& options, const std::function<std::vector<RankPrograms>()>& make);
  std::shared_ptr<const std::vector<RankClass>> find_classes(const std::shared_ptr<const ExchangeSet>& moves,
                                                             const std::shared_ptr<const RankMapping>& placed,
                                                             double at_once,
                                                             const std::function<std::vector<RankClass>()>& make);

 private:
  struct Programs {
    std::shared_ptr<const ExchangeSet> moves;
    const Schedule* schedule;
    std::vector<ScheduleOptions> options;
    std::shared_ptr<const std::vector<RankPrograms>> made;
  };
  struct Classes {
    std::shared_ptr<const ExchangeSet> moves;
    std::shared_ptr<const RankMapping> placed;
    double at_once;
    std::shared_ptr<const std::vector<RankClass>> made;
  };
  std::vector<std::shared_ptr<const ExchangeSet>>
      moves_;  // Finds or makes the programs of all kinds. options: by stage.
  std::vector<Programs> programs_;
  std::vector<Classes> classes_;
};
/// the latest ones
Choice on_nodes(Choice choice, const RankMapping& placed);
/// The choice with the number of nodes that its ranks run on, where it leaves that open.
RankMapping place_choice(const Choice& choice, const Profile& profile, const Setting& setting);

/// Maps the ranks of a choice to nodes and sockets. A choice with more nodes than the profile's machine splits the
/// ranks of real nodes as if each part were a node: transports between nodes are then used inside them.
/// @throws UsageError for more cores in use than there are.
Candidate legal(const Choice& choice, const RankMapping& placed);

/// A candidate with everything that its cost needs. Of that only the classes depend on costs.
class CostedCandidate {
 public:
  /// @param candidate  legal on the nodes of `placed`. The profile and the names of its sweeps must outlive this
  ///         object.
  /// @throws UsageError when its plans are not possible, UnavailableError when the profile lacks a cost that it needs.
  CostedCandidate(const Candidate& candidate, const Profile& profile, const Setting& setting, const SweepNames& names,
                  PlanCache& shared, std::shared_ptr<const RankMapping> placed);
  CostedCandidate(const CostedCandidate&) = delete;

  const std::vector<RankClass>& classes() const { return *classes_; }
  /// Every rank as a separate class.
  std::vector<RankClass> single_ranks() const;
  /// The slowest classes and the classes they receive from (all, if there are few). The skipped classes are early
  /// wherever others wait for them; their messages are assumed to come from ranks like the receiver.
  std::vector<RankClass> slowest(const UnitCosts& prices) const;
  /// The timeline of a class.
  Timeline track(const RankClass& c, const UnitCosts& prices) const { return track(c, prices, c.flights, c.sources); }
  /// Seconds of a round if all ranks were like the ranks of one class: peers then send when it does. For ranks that
  /// take turns, which cannot all be equal, the seconds that they are busy: others work meanwhile. Flights keep the
  /// contention that they have in this object's profile, for any other costs.
  double alone(const RankClass& c, const UnitCosts& prices) const;
  /// The number of ranks that share the device of a rank; 1 without one.
  int ranks_on_device(int rank) const;
  /// The receiver-side part (seconds) of a message's flight, which its receiver must spend in a call: the profile's,
  /// otherwise none between nodes, and inside a node all but the latency, since cores copy the bytes.
  double held(int stage, Locality near, double flight) const;
  /// The location of a rank, for the messages of one stage. flights, near, far: of the messages of all stages.
  RankLocation where(int kind, int stage, int ranks_on_socket, int ranks_on_device, const std::vector<double>& flights,
                     const std::vector<Locality>& near, const std::vector<char>& far) const;
  /// The flight of each outgoing message of a kind's plans. wheres: by stage.
  std::vector<Flight> flights(int kind, const UnitCosts& prices, const std::vector<RankLocation>& wheres) const;
  /// Appends the timed operations of a program.
  void price(int kind, const PlannedProgram& program, const UnitCosts& prices, const std::vector<RankLocation>& wheres,
             std::vector<TimedOp>& actions) const;
  /// The setting's all-reduces, as one barrier of all ranks: a separate program, after all others.
  TimedOp meeting(const UnitCosts& prices) const;

  const Choice choice;  ///< with the number of nodes that it runs on
  const Candidate candidate;

 private:
  std::shared_ptr<const ExchangeSet>
      moves_;  // found before costs: the reason for missing plans helps more than a cost that the profile lacks

 public:
  const Profile& profile;
  const Setting setting;
  const SweepNames& names;
  const UnitCosts prices;
  std::vector<std::string> notes;
  const std::shared_ptr<const RankMapping> placed;
  const Kinds& kinds() const { return moves_->kinds; }
  const std::vector<RankPrograms>& programs() const { return *programs_; }  ///< by kind
  int steps = 1;                                                            ///< time steps of a round
  double efficiency = 1;

 private:
  Timeline track(const RankClass& c, const UnitCosts& prices, const std::vector<double>& flights,
                 const Sources& sources) const;
  RankPrograms make_programs(const Kind& kind, const std::vector<ScheduleOptions>& options) const;
  double at_once() const;

  std::shared_ptr<const std::vector<RankPrograms>> programs_;
  std::shared_ptr<const std::vector<RankClass>> classes_;
  std::vector<const OverlapCost::Held*> held_of_stage_;  // by stage; null where the profile has none
  std::vector<int> on_node_;                             // ranks of each node
};

}  // namespace haloscope::model
