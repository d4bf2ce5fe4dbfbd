// Simulator input for one choice: the class, location and operation costs of every rank.
//
// Operations cost the same as in a prediction. A simulation adds every single rank and message.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "haloscope/model/costed_candidate.hpp"
#include "haloscope/simulate/simulator.hpp"

namespace haloscope::model {

/// Overheads that a simulation subtracts from the latency of messages, and adds to their rate.
struct MessageOverheads {
  double overhead_s = 0;  ///< sender and receiver each are busy with a message
  double gap_s = 0;       ///< min time between two sends of a rank
};

/// Ranks with equal plans and costs.
struct Actors {
  int kind = 0, rank = 0;                    ///< of their plans; the first of them
  std::vector<Program> programs;             ///< the opening one, if any, then the programs of a round
  std::vector<int> stages;                   ///< of each program
  std::vector<simulate::OpSeconds> seconds;  ///< of each operation of all programs
  std::vector<double> flight_change;         ///< by message
};

class SimulationInput {
 public:
  /// `of` must outlive it. @throws UnavailableError when the profile lacks a cost. Cost: seconds for 10^6 ranks.
  explicit SimulationInput(const CostedCandidate& of);

  const std::vector<Actors>& actors() const { return actors_; }
  const std::vector<std::int32_t>& class_of() const { return class_of_; }
  bool has_opening() const { return of_.programs().front().opening.has_value(); }
  bool has_comm_thread() const;
  /// Costs needed beyond the calibrated range.
  std::vector<std::string> outside() const;
  /// @throws UsageError for overheads that exceed a message's latency.
  std::unique_ptr<simulate::Simulator> make_simulator(const MessageOverheads& overheads) const;

 private:
  Actors price(int kind, std::size_t member) const;
  void meet(Actors& actors) const;
  std::uint64_t key_of(const Kind& kind, std::size_t member) const;
  simulate::NetworkClass network_class(Locality near, const MessageOverheads& overheads) const;
  std::vector<simulate::RankReduction> reductions() const;
  simulate::RankClass rank_class(const Actors& actors, const std::vector<simulate::RankReduction>& reductions) const;

  const CostedCandidate& of_;
  std::vector<int> busy_;  // number of ranks that share the socket of each rank
  bool alike_ = true;      // costs do not depend on the location of peers
  std::vector<Actors> actors_;
  std::vector<std::int32_t> class_of_;
};

}  // namespace haloscope::model
