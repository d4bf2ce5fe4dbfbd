// The pace of the machine: a few fixed small kernels and a ping-pong, timed next to the work of every launch.
#pragma once

#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "haloscope/rank/measure/measure.hpp"
#include "haloscope/rank/pace/budget.hpp"
#include "haloscope/rank/pace/kernels.hpp"

namespace haloscope {

/// Times the kernels of a pace on all ranks concurrently, within a share of the launch's time.
class PaceMeter {
 public:
  /// @param started_s  when the program began, by now_s().
  /// @param planned_s  minimum time of the launch; 0: not known. A longer launch may be timed at its start too.
  /// Nothing is timed where ranks share cores, nor in a simulated MPI. Collective; costs nothing until something is
  /// timed.
  PaceMeter(Session& session, double started_s, double planned_s);
  PaceMeter(const PaceMeter&) = delete;

  /// Times the rounds that the share allows, at most the rounds of one stop: possibly none. Collective.
  void keep_up();
  /// Times rounds for some seconds, at any share. Collective. @throws UnavailableError where nothing is
  /// timed.
  void run_for(double seconds);
  /// The pace of the latest stops: medians over their rounds, of the slowest rank; null before the first round.
  /// Collective; meaningful on rank 0.
  nlohmann::json latest() const;

 private:
  void open();
  void time_round();

  Session& session_;
  double started_s_;
  bool possible_;
  PaceSpent spent_;
  std::optional<PaceKernels> kernels_;
  std::deque<PaceRound> rounds_;
};

/// A request to time only the pace: {"ranks", "seconds" (> 0, default 1)}.
struct PaceRequest {
  std::string id;
  double seconds = 1;
};
/// @throws UsageError for an unknown field or a value that cannot be.
PaceRequest pace_request(const nlohmann::json& json, const std::string& id, int ranks);
/// Collective. @return the record (meaningful on rank 0), without launch data and without the pace itself, which every
/// record has. @throws UnavailableError where nothing can be timed.
nlohmann::json measure_pace(Session& session, PaceMeter& meter, const PaceRequest& request);

}  // namespace haloscope
