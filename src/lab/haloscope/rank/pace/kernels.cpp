#include "haloscope/rank/pace/kernels.hpp"

#include <algorithm>
#include <cmath>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/core/clock.hpp"
#include "haloscope/extend/topology.hpp"

namespace haloscope {

namespace {

constexpr double kernel_s = 1e-4;               // length of a sample: long for the clock, short for a time slice
constexpr std::size_t near_bytes = 8 << 10;     // of each of three arrays: the innermost cache of one core
constexpr std::size_t far_bytes = 8 << 20;      // the same, beyond the share that a core has of most last caches
constexpr std::size_t chunk_bytes = 256 << 10;  // of far arrays, for one sample
constexpr int small_message = 8, large_message = 64 << 10, max_trips = 64, max_passes = 1 << 16;

/// Seconds of one `work()`, the mean of some.
template <class F>
double mean_seconds(int count, F work) {
  const double begin = now_s();
  for (int i = 0; i < count; ++i) work();
  return (now_s() - begin) / count;
}

/// Returns the number of calls in a sample, by the seconds of a call.
int calls_of_a_sample(double seconds, int max_calls) {
  return static_cast<int>(std::clamp(std::round(kernel_s / seconds), 1.0, static_cast<double>(max_calls)));
}

}  // namespace

PaceKernels::PaceKernels(MPI_Comm comm)
    : comm_(comm),
      near_(near_bytes),
      far_(far_bytes),
      triad_(find_memory_pass(Pass::triad)),
      message_(static_cast<std::size_t>(large_message)) {
  REQUIRE_MPI(MPI_Comm_rank(comm_, &rank_));
  partners_ = find_partners();
  const auto pass = [&] { near_.run(triad_, 0, near_bytes); };
  pass();
  passes_ = calls_of_a_sample(mean_seconds(8, pass), max_passes);
  trips_ = {agree_on_trips(partners_.near, small_message), agree_on_trips(partners_.near, large_message),
            agree_on_trips(partners_.far, small_message), agree_on_trips(partners_.far, large_message)};
}

PaceRound PaceKernels::time() {
  PaceRound round;
  round.fill(-1);
  const auto of = [&](model::PaceKind kind) -> double& { return round[static_cast<std::size_t>(kind)]; };
  REQUIRE_MPI(MPI_Barrier(comm_));
  of(model::PaceKind::compute) = mean_seconds(passes_, [&] { near_.run(triad_, 0, near_bytes); });
  of(model::PaceKind::memory) = mean_seconds(1, [&] { far_.run(triad_, chunk_, chunk_bytes); });
  chunk_ = (chunk_ + chunk_bytes) % far_bytes;
  REQUIRE_MPI(MPI_Barrier(comm_));
  of(model::PaceKind::latency) = half_trip(partners_.near, small_message, trips_[0]);
  of(model::PaceKind::bandwidth) = half_trip(partners_.near, large_message, trips_[1]);
  of(model::PaceKind::far_latency) = half_trip(partners_.far, small_message, trips_[2]);
  of(model::PaceKind::far_bandwidth) = half_trip(partners_.far, large_message, trips_[3]);
  return round;
}

/// Neighbours by number on a node, and the first ranks of two nodes.
PaceKernels::Partners PaceKernels::find_partners() const {
  const std::vector<int> node = sites_of(comm_).node;
  const auto node_of = [&](int rank) { return node[rank]; };
  std::vector<int> here, firsts;
  for (int r = 0; r < static_cast<int>(node.size()); ++r) {
    if (node_of(r) == node_of(rank_)) here.push_back(r);
    if (std::none_of(firsts.begin(), firsts.end(), [&](int first) { return node_of(first) == node_of(r); }))
      firsts.push_back(r);
  }
  const auto beside = [this](const std::vector<int>& ranks) {
    const auto own = std::find(ranks.begin(), ranks.end(), rank_);
    if (own == ranks.end()) return -1;
    const auto place = static_cast<std::size_t>(own - ranks.begin()) ^ 1;
    return place < ranks.size() ? ranks[place] : -1;
  };
  return {beside(here), beside(firsts)};
}

/// Sends one message there and one back; the lower rank begins. The arrived data are sent back, so they are in the
/// sender's cache, like freshly packed data.
void PaceKernels::trip(int partner, int bytes) {
  const auto send = [&] { REQUIRE_MPI(MPI_Send(message_.data(), bytes, MPI_BYTE, partner, 0, comm_)); };
  const auto receive = [&] {
    REQUIRE_MPI(MPI_Recv(message_.data(), bytes, MPI_BYTE, partner, 0, comm_, MPI_STATUS_IGNORE));
  };
  rank_ < partner ? send() : receive();
  rank_ < partner ? receive() : send();
}

double PaceKernels::half_trip(int partner, int bytes, int count) {
  return partner < 0 ? -1 : mean_seconds(count, [&] { trip(partner, bytes); }) / 2;
}

/// Trips that make a sample of the slowest pair, the same for all. Of a few trips the quickest counts: the first one
/// opens the connection.
int PaceKernels::agree_on_trips(int partner, int bytes) {
  double slowest = 0;
  for (int i = 0; partner >= 0 && i < 4; ++i) {
    const double took = mean_seconds(1, [&] { trip(partner, bytes); });
    slowest = i == 0 ? took : std::min(slowest, took);
  }
  REQUIRE_MPI(MPI_Allreduce(MPI_IN_PLACE, &slowest, 1, MPI_DOUBLE, MPI_MAX, comm_));
  return slowest > 0 ? calls_of_a_sample(slowest, max_trips) : 1;
}

}  // namespace haloscope
