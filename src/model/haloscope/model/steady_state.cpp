#include "haloscope/model/steady_state.hpp"

#include <algorithm>
#include <numeric>
#include <span>

#include "haloscope/model/op_list.hpp"
#include "haloscope/simulate/small_simulator.hpp"

namespace haloscope::model {

namespace {

using simulate::Activity;
using simulate::Log;

constexpr Lane precedence[]{Lane::sweep_stream, Lane::halo_stream, Lane::main, Lane::comm};
constexpr int alone_rounds = 3, few_rounds = 6,
              many_rounds = 24;   // rounds; in the first half timelines fall into step
constexpr double in_step = 1e-6;  // relative difference between rounds that counts as equal

/// True if all rounds of the second half take equally long.
bool is_settled(const std::vector<Log>& logs, int rounds) {
  double longest = 0, shortest = infinity;
  for (const Log& log : logs)
    for (int r = rounds / 2 - 1; r < rounds - 1; ++r) {
      const double length = log.ends[static_cast<std::size_t>(r) + 1] - log.ends[static_cast<std::size_t>(r)];
      longest = std::max(longest, length);
      shortest = std::min(shortest, length);
    }
  return longest - shortest <= in_step * longest;
}

/// A part of a lane's work.
struct Interval {
  double begin = 0, end = 0;
  Term term = Term::compute;
};

/// Appends the parts of an interval of a lane; work is split into its cost parts.
void add_parts(const Timeline& track, const simulate::Interval& did, std::vector<Interval>& parts) {
  static constexpr Term terms[]{Term::compute, Term::launch, Term::wait, Term::message,
                                Term::reduction};  // by Activity
  const TimedOp& action = track.action(did.op);
  if (did.doing != Activity::working || action.deed == Deed::sweep) {
    parts.push_back({did.begin, did.end, terms[static_cast<std::size_t>(did.doing)]});
    return;
  }
  double at = did.begin;
  for (const Part& part : action.parts) {
    parts.push_back({at, at + part.seconds, part.term});
    at += part.seconds;
  }
}

/// A lane's intervals, in order of time.
using Intervals = std::span<const Interval>;

/// The intervals that overlap [begin, end).
Intervals within(Intervals intervals, double begin, double end) {
  const auto first =
      std::partition_point(intervals.begin(), intervals.end(), [&](const Interval& i) { return i.end <= begin; });
  const auto last = std::partition_point(first, intervals.end(), [&](const Interval& i) { return i.begin < end; });
  return {first, last};
}

/// Adds the intervals of the first lane and, in its gaps, of the next; `wait` elsewhere.
void add_critical(std::span<const Intervals> lanes, double begin, double end, Terms& terms) {
  if (end <= begin) return;
  if (lanes.empty()) {
    terms[static_cast<std::size_t>(Term::wait)] += end - begin;
    return;
  }
  double at = begin;
  for (const Interval& interval : within(lanes.front(), begin, end)) {
    const double low = std::max(interval.begin, begin), high = std::min(interval.end, end);
    if (low > at) add_critical(lanes.subspan(1), at, low, terms);
    if (high > low) terms[static_cast<std::size_t>(interval.term)] += high - low;
    at = std::max(at, high);
  }
  add_critical(lanes.subspan(1), at, end, terms);
}

/// Averages over the rounds from number `first` on.
RoundTime mean_round_of(const Timeline& track, const Log& log, int first) {
  const double begin = log.ends[static_cast<std::size_t>(first) - 1], end = log.ends.back();
  const auto rounds = static_cast<double>(log.ends.size() - static_cast<std::size_t>(first));
  std::array<std::vector<Interval>, lane_count> parts;
  std::vector<Intervals> lanes;
  RoundTime mean;
  for (const Lane lane : precedence) {
    const auto number = static_cast<std::size_t>(lane);
    if (log.lanes[number].empty()) continue;
    for (const simulate::Interval& did : log.lanes[number])
      if (did.end > begin) add_parts(track, did, parts[number]);
    lanes.push_back(within(parts[number], begin, end));
    for (const Interval& i : lanes.back())
      mean.busy[static_cast<std::size_t>(i.term)] += (std::min(i.end, end) - std::max(i.begin, begin)) / rounds;
  }
  double& message = mean.busy[static_cast<std::size_t>(Term::message)] = 0;
  for (const auto& [at, flight] : log.received)
    if (begin < at && at <= end) message += flight / rounds;
  add_critical(lanes, begin, end, mean.terms);
  for (double& seconds : mean.terms) seconds /= rounds;
  mean.seconds = std::accumulate(mean.terms.begin(), mean.terms.end(), 0.0);
  return mean;
}

/// Seconds of a timeline's work without waits, and the receiver-side parts of flights; of flights that one operation
/// waits for only the longest.
double unhidden_of(const Timeline& track, const std::vector<Timeline>& tracks) {
  double seconds = track.busy();
  for (const TimedOp& action : track.body) {
    if (action.deed != Deed::wait) continue;
    double held = 0;
    for (const int m : action.messages)
      for (const Source& source : track.sources[static_cast<std::size_t>(m)])
        held = std::max(
            held, tracks[static_cast<std::size_t>(source.from)].flights[static_cast<std::size_t>(source.message)].held);
    seconds += held;
  }
  return seconds;
}

}  // namespace

std::vector<RoundTime> steady_state(const std::vector<Timeline>& tracks) {
  simulate::Options options;
  options.rounds = tracks.size() == 1 ? alone_rounds : few_rounds;
  options.efficiency = tracks.front().efficiency;
  simulate::SmallSimulator ensemble(make_op_lists(tracks));
  std::vector<Log> logs = ensemble.run(options);
  if (!is_settled(logs, options.rounds)) {
    options.rounds = many_rounds;
    logs = ensemble.run(options);
  }
  std::vector<RoundTime> means;
  for (std::size_t i = 0; i < logs.size(); ++i) {
    means.push_back(mean_round_of(tracks[i], logs[i], options.rounds / 2));
    means.back().unhidden = unhidden_of(tracks[i], tracks);
  }
  return means;
}

}  // namespace haloscope::model
