// Samples of short work: repeated until a sample is long enough for the clock, on all ranks concurrently.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/rank/measure/barrier.hpp"

namespace haloscope {

/// Runs one piece of work repeatedly, on all ranks of the session concurrently; a sample is the slowest rank's.
class Sampler {
 public:
  /// @param seconds  length of a sample, > 0.
  /// @param samples  their number, >= 1.
  /// @param partner  the awaited rank in the watchdog's reports; -1: none.
  Sampler(Session& session, double seconds, int samples, int partner = -1)
      : session_(session), seconds_(seconds), samples_(samples), partner_(partner) {}

  /// Collective. @return one for work in which ranks wait for each other, with samples much longer than a barrier.
  Sampler of_messages() const { return {session_, beside_barriers(session_, seconds_), samples_, partner_}; }

  /// Collective. @return the samples: seconds of one `work()`, each averaged over enough calls to last `seconds`.
  template <class F>
  std::vector<double> operator()(F work) {
    const auto run = [&](std::int64_t repeats) {
      const double begin = MPI_Wtime();
      for (std::int64_t i = 0; i < repeats; ++i) work();
      return std::array{MPI_Wtime() - begin};
    };
    return timed_parts<1>(run)[0];
  }

  /// Collective. @param work  does several things and returns the seconds of each, an array of `Parts`. Time between
  /// them is not counted, but a sample ends early once it has taken ten times `seconds`.
  /// @return by part, the samples: seconds per `work()`.
  template <std::size_t Parts, class F>
  std::array<std::vector<double>, Parts> parts(F work) {
    auto all = timed_parts<Parts + 1>([&](std::int64_t repeats) {
      std::array<double, Parts + 1> sum{};
      const double begin = MPI_Wtime();
      for (std::int64_t i = 0; i < repeats; ++i) {
        const std::array<double, Parts> took = work();
        for (std::size_t p = 0; p < Parts; ++p) sum[p + 1] += took[p];
      }
      sum[0] = (MPI_Wtime() - begin) / 10;
      return sum;
    });
    std::array<std::vector<double>, Parts> found;
    std::move(all.begin() + 1, all.end(), found.begin());
    return found;
  }

 private:
  /// `run(repeats)` returns seconds by part; the largest determines the repeats of a sample.
  template <std::size_t Count, class Run>
  std::array<std::vector<double>, Count> timed_parts(Run run) {
    std::int64_t repeats = 1;
    for (;;) {
      const auto took = together<Count>(run, repeats);
      const double longest = *std::max_element(took.begin(), took.end());
      if (longest >= seconds_) break;
      const double factor = longest > 0.1 * seconds_ ? 1.2 * seconds_ / longest : 8;
      repeats = std::max(repeats + 1, static_cast<std::int64_t>(std::ceil(static_cast<double>(repeats) * factor)));
    }
    std::array<std::vector<double>, Count> found;
    for (int i = 0; i < samples_; ++i) {
      const auto took = together<Count>(run, repeats);
      for (std::size_t p = 0; p < Count; ++p) found[p].push_back(took[p] / static_cast<double>(repeats));
    }
    return found;
  }

  template <std::size_t Count, class Run>
  std::array<double, Count> together(Run run, std::int64_t repeats) {
    RankStatus& status = session_.board->mine();
    REQUIRE_MPI(MPI_Barrier(session_.comm));
    status.set(static_cast<std::int32_t>(OpKind::wait), partner_);
    std::array<double, Count> took = run(repeats);
    status.set(Phase::idle);
    REQUIRE_MPI(MPI_Allreduce(MPI_IN_PLACE, took.data(), static_cast<int>(Count), MPI_DOUBLE, MPI_MAX, session_.comm));
    return took;
  }

  Session& session_;
  double seconds_;
  int samples_, partner_;
};

}  // namespace haloscope
