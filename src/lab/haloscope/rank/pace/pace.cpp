#include "haloscope/rank/pace/pace.hpp"

#include <cmath>

#include "haloscope/comm/cores.hpp"
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/mpi_traits.hpp"
#include "haloscope/core/clock.hpp"
#include "haloscope/error.hpp"
#include "haloscope/model/normal.hpp"
#include "haloscope/rank/request_kinds.hpp"

namespace haloscope {

namespace {

constexpr int telling_rounds = 3;  // fewer do not show their differences

double median_of(std::vector<double> values) { return model::quantile(std::move(values), 0.5); }

/// The standard error of a median over the median, from the median distance to it; 1 where samples are too few.
double error_of_median(const std::vector<double>& values, double median) {
  if (values.size() < telling_rounds) return 1;
  std::vector<double> away;
  for (const double value : values) away.push_back(std::abs(value - median));
  constexpr double deviation = 1.4826, of_median = 1.2533;  // of normal numbers
  return of_median * deviation * median_of(away) / median / std::sqrt(static_cast<double>(values.size()));
}

}  // namespace

PaceMeter::PaceMeter(Session& session, double started_s, double planned_s)
    : session_(session),
      started_s_(started_s),
      possible_(!mpi_traits.simulated && !more_ranks_than_cores(session.comm)) {
  spent_.planned_s = planned_s;
}

void PaceMeter::open() {
  if (!kernels_) kernels_.emplace(session_.comm);
}

void PaceMeter::time_round() {
  rounds_.push_back(kernels_->time());
  ++spent_.rounds;
}

void PaceMeter::keep_up() {
  for (int done = 0; possible_ && done < stop_rounds;) {
    const double begin = now_s();
    spent_.elapsed_s = begin - started_s_;
    int rounds = spent_.affordable();
    REQUIRE_MPI(MPI_Bcast(&rounds, 1, MPI_INT, 0, session_.comm));
    if (rounds == 0) return;
    open();
    for (int i = 0; i < rounds; ++i) {
      if (rounds_.size() == 2 * stop_rounds) rounds_.pop_front();
      time_round();
    }
    done += rounds;
    spent_.spent_s += now_s() - begin;
  }
}

void PaceMeter::run_for(double seconds) {
  if (!possible_)
    throw UnavailableError("the pace of ranks that share cores, or of a simulated MPI, is not meaningful; use at " +
                           std::string("most one rank per core"));
  const double begin = now_s();
  open();
  for (int more = 1; more != 0;) {
    for (int i = 0; i < stop_rounds; ++i) time_round();
    more = now_s() - begin < seconds;
    REQUIRE_MPI(MPI_Bcast(&more, 1, MPI_INT, 0, session_.comm));
  }
  spent_.spent_s += now_s() - begin;
}

nlohmann::json PaceMeter::latest() const {
  if (rounds_.empty()) return nullptr;
  std::array<double, 2 * model::pace_kinds> found;  // seconds, then errors
  for (std::size_t kind = 0; kind < model::pace_kinds; ++kind) {
    std::vector<double> values;
    for (const PaceRound& round : rounds_) values.push_back(round[kind]);
    found[kind] = median_of(values);
    found[kind + model::pace_kinds] = found[kind] > 0 ? error_of_median(values, found[kind]) : -1;
  }
  std::array<double, 2 * model::pace_kinds> slowest = found;
  REQUIRE_MPI(
      MPI_Reduce(found.data(), slowest.data(), static_cast<int>(found.size()), MPI_DOUBLE, MPI_MAX, 0, session_.comm));
  nlohmann::json json{{"ranks", session_.size},
                      {"rounds", rounds_.size()},
                      {"share", spent_.spent_s / (now_s() - started_s_)},
                      {"error", nlohmann::json::object()}};
  for (std::size_t kind = 0; kind < model::pace_kinds; ++kind) {
    if (slowest[kind] <= 0) continue;
    const std::string name = std::string(to_string(static_cast<model::PaceKind>(kind))) + "_s";
    json[name] = slowest[kind];
    json["error"][name] = slowest[kind + model::pace_kinds];
  }
  return json;
}

PaceRequest pace_request(const nlohmann::json& json, const std::string& id, int ranks) {
  if (!json.is_object()) throw UsageError("a request for a pace is an object, not " + json.dump());
  for (const auto& [name, value] : json.items())
    if (name != "ranks" && name != "seconds")
      throw UsageError("a request for a pace has no field '" + name + "'; it has ranks and seconds");
  if (json.value("ranks", nlohmann::json(ranks)) != ranks)
    throw UsageError("a pace of " + json["ranks"].dump() + " ranks was requested from " + std::to_string(ranks) +
                     "; start the requested number");
  const nlohmann::json seconds = json.value("seconds", nlohmann::json(1.0));
  if (!seconds.is_number() || !(seconds.get<double>() > 0) || seconds.get<double>() > 3600)
    throw UsageError(seconds.dump() + " seconds are not possible; give more than 0, and 3600 at most");
  return {id, seconds.get<double>()};
}

nlohmann::json measure_pace(Session& session, PaceMeter& meter, const PaceRequest& request) {
  meter.run_for(request.seconds);
  return {{"id", request.id},
          {"kind", "pace"},
          {"request", {{"ranks", session.size}, {"seconds", request.seconds}}},
          {"environment", session.environment},
          {"verification", {{"status", "off"}}}};
}

const RequestKind& pace_kind() {
  static const RequestKind kind{.name = "pace",
                                .serve = [](Session& session, const nlohmann::json& request, const std::string& id) {
                                  return measure_pace(session, *session.pace, pace_request(request, id, session.size));
                                }};
  return kind;
}

}  // namespace haloscope
