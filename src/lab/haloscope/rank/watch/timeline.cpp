#include "haloscope/rank/watch/timeline.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "haloscope/comm/handles.hpp"
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/core/clock.hpp"
#include "haloscope/core/file.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/agree.hpp"
#include "haloscope/rank/watch/texts.hpp"

namespace haloscope {

namespace {

using Json = nlohmann::json;

constexpr int ping_tag = 1;
const std::vector<std::string> rows{"main", "comm", "mpi", "sweep-stream", "halo-stream"};

Json metadata(const char* kind, int rank, int row, const std::string& key, const Json& value) {
  return {{"name", kind}, {"ph", "M"}, {"pid", rank}, {"tid", row}, {"args", {{key, value}}}};
}

/// An epoch as a pair of events, which may overlap with other epochs of its row. @param number  unique on the rank.
std::array<Json, 2> epoch_events(const TimelineEvent& e, int rank, std::size_t number, double origin_s) {
  const auto event = [&](const char* kind, double at_s) -> Json {
    return {{"name", e.name + " epoch"},
            {"cat", e.row},
            {"ph", kind},
            {"id", std::to_string(rank) + "." + std::to_string(number)},
            {"pid", rank},
            {"tid", 0},
            {"ts", (at_s - origin_s) * 1e6},
            {"args", {{"step", e.step}, {"blocked_us", e.blocked_s * 1e6}}}};
  };
  return {event("b", e.begin_s), event("e", e.end_s)};
}

/// This rank's part of the file, each event followed by a comma and a line end.
std::string trace_text(int rank, const std::vector<TimelineEvent>& events, const ClockOffset& clock, double origin_s) {
  std::string text;
  const auto put = [&](const Json& event) { text += event.dump() + ",\n"; };
  char label[64];
  std::snprintf(label, sizeof label, "clock %+.3f us +- %.3f us", clock.seconds * 1e6, clock.uncertainty_s * 1e6);
  put(metadata("process_name", rank, 0, "name", "rank " + std::to_string(rank) + " on " + host_name()));
  put(metadata("process_labels", rank, 0, "labels", label));
  put(metadata("process_sort_index", rank, 0, "sort_index", rank));
  for (int row = 0; row < static_cast<int>(rows.size()); ++row)
    put(metadata("thread_name", rank, row, "name", rows[row]));
  std::size_t epochs = 0;
  for (const TimelineEvent& e : events) {
    if (e.row == "epochs") {
      for (const Json& event : epoch_events(e, rank, epochs++, clock.seconds + origin_s)) put(event);
      continue;
    }
    Json args{{"step", e.step}};
    if (e.op >= 0) args["op"] = e.op;
    if (!e.stage.empty()) args.update({{"stage", e.stage}, {"what", e.timer}});
    if (e.row == "mpi") args["calls"] = e.calls;
    put({{"name", e.name},
         {"cat", e.row},
         {"ph", "X"},
         {"pid", rank},
         {"tid", std::find(rows.begin(), rows.end(), e.row) - rows.begin()},
         {"ts", (e.begin_s - clock.seconds - origin_s) * 1e6},
         {"dur", (e.end_s - e.begin_s) * 1e6},
         {"args", args}});
  }
  return text;
}

}  // namespace

std::vector<TimelineEvent> events_of(const Runner& runner) {
  std::vector<TimelineEvent> events;
  for (const TraceEvent& e : runner.trace()) {
    const Op& op = runner.program().ops[e.op];
    events.push_back({to_string(op.kind), to_string(op.lane), e.begin_s, e.end_s, e.step, e.op});
  }
  return events;
}

std::vector<TimelineEvent> events_of(const MpiClock& clock) {
  std::vector<TimelineEvent> events;
  for (const MpiSpan& s : clock.spans())
    events.push_back({MpiClock::name_of(s), "mpi", s.begin_s, s.end_s, s.step, -1, s.calls});
  for (const EpochSpan& s : clock.epochs().spans())
    events.push_back({.name = to_string(s.kind),
                      .row = "epochs",
                      .begin_s = s.begin_s,
                      .end_s = s.end_s,
                      .step = s.step,
                      .blocked_s = s.blocked_s});
  return events;
}

ClockOffset clock_offset(MPI_Comm comm, int trips) {
  const OwnedComm own = duplicate(comm);
  const int rank = rank_in(own.get());
  ClockOffset offset;
  for (int r = 1; r < ranks_in(own.get()); ++r) {
    if (rank != 0 && rank != r) continue;
    double shortest = std::numeric_limits<double>::max();
    for (int trip = 0; trip < trips; ++trip) {
      double theirs = 0;
      if (rank == 0) {
        REQUIRE_MPI(MPI_Recv(&theirs, 1, MPI_DOUBLE, r, ping_tag, own.get(), MPI_STATUS_IGNORE));
        theirs = now_s();
        REQUIRE_MPI(MPI_Send(&theirs, 1, MPI_DOUBLE, r, ping_tag, own.get()));
        continue;
      }
      const double begin = now_s();
      REQUIRE_MPI(MPI_Send(&begin, 1, MPI_DOUBLE, 0, ping_tag, own.get()));
      REQUIRE_MPI(MPI_Recv(&theirs, 1, MPI_DOUBLE, 0, ping_tag, own.get(), MPI_STATUS_IGNORE));
      const double end = now_s();
      if (end - begin >= shortest) continue;
      shortest = end - begin;
      offset = {(begin + end) / 2 - theirs, shortest / 2};
    }
  }
  return offset;
}

void write_trace(MPI_Comm comm, const std::string& file, const std::vector<TimelineEvent>& mine) {
  const ClockOffset clock = clock_offset(comm);
  const OwnedComm own = duplicate(comm);
  double origin = std::numeric_limits<double>::max();
  for (const TimelineEvent& e : mine) origin = std::min(origin, e.begin_s - clock.seconds);
  REQUIRE_MPI(MPI_Allreduce(MPI_IN_PLACE, &origin, 1, MPI_DOUBLE, MPI_MIN, own.get()));
  std::optional<Draft> draft;
  if (rank_in(own.get()) == 0) draft.emplace(file);
  for_each_text(own.get(), trace_text(rank_in(own.get()), mine, clock, origin), [&](int rank, std::string text) {
    if (rank == ranks_in(own.get()) - 1) text.erase(text.size() - 2, 1);  // no comma after the last event
    draft->text() << (rank == 0 ? "[\n" : "") << text;
  });
  if (draft) draft->text() << "]\n";
  int written = !draft || draft->keep();
  REQUIRE_MPI(MPI_Bcast(&written, 1, MPI_INT, 0, own.get()));
  if (!written)
    throw Error(Exit::failed,
                "cannot write the trace file '" + file + "'; give --trace a file in a directory you may write to");
}

void RankTimes::add(const Runner& runner) {
  const auto grow = [](Json& sums, const std::string& name, double seconds) {
    sums[name] = sums.value(name, 0.0) + seconds;
  };
  for (int t = 0; t < timer_count; ++t) grow(phases_s, to_string(static_cast<Timer>(t)), runner.seconds()[t]);
  for (std::size_t i = 0; i < runner.op_seconds().size(); ++i)
    grow(operations_s, to_string(runner.program().ops[i].kind), runner.op_seconds()[i]);
}

Json timeline_json(MPI_Comm comm, const RankTimes& mine) {
  const OwnedComm own = duplicate(comm);
  Json entry{{"rank", rank_in(own.get())},
             {"host", host_name()},
             {"measured_s", mine.measured_s},
             {"phases_s", mine.phases_s},
             {"operations_s", mine.operations_s},
             {"mpi", Json::array()},
             {"epochs", Json::array()}};
  for (const MpiCall& call : mine.mpi)
    entry["mpi"].push_back({{"call", call.name},
                            {"role", to_string(call.role)},
                            {"during", phase_name(call.during)},
                            {"calls", call.calls},
                            {"seconds", call.seconds}});
  for (const EpochSum& sum : mine.epochs)
    entry["epochs"].push_back({{"kind", to_string(sum.kind)},
                               {"epochs", sum.epochs},
                               {"open_s", sum.open_s},
                               {"longest_s", sum.longest_s},
                               {"blocked_s", sum.blocked_s}});
  Json all = Json::array();
  for_each_text(own.get(), entry.dump(), [&](int, const std::string& text) { all.push_back(Json::parse(text)); });
  return {{"ranks", all}};
}

}  // namespace haloscope
