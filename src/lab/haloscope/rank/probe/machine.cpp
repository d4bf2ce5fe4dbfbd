// The environment of MPI on the machine: huge pages under fields, the clocks of ranks. For `haloscope doctor`.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "haloscope/comm/huge_pages.hpp"
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/shared_memory.hpp"
#include "haloscope/core/clock.hpp"
#include "haloscope/rank/probe/probe.hpp"
#include "haloscope/rank/watch/timeline.hpp"

namespace haloscope::probing {

namespace {

/// Accesses every page of a large field, then queries the system for the pages.
Finding huge_pages(MPI_Comm) {
  const HugePages pages = try_huge_pages();
  return {pages.all(), pages.text()};
}

/// The smallest step that the clock of timers shows, in seconds.
double clock_step() {
  double least = std::numeric_limits<double>::max();
  for (int i = 0; i < 1000; ++i) {
    const double begin = now_s();
    double end = now_s();
    while (end <= begin) end = now_s();
    least = std::min(least, end - begin);
  }
  return least;
}

std::string with_unit(double seconds) {
  char text[32];
  if (seconds < 1e-6)
    std::snprintf(text, sizeof text, "%.0f ns", seconds * 1e9);
  else if (seconds < 1e-3)
    std::snprintf(text, sizeof text, "%.1f us", seconds * 1e6);
  else
    std::snprintf(text, sizeof text, "%.3g s", seconds);
  return text;
}

/// Ranks of one machine read one clock: the offset that a ping-pong finds lies within the precision of the ping-pong.
/// Clocks of other machines start at another time; timelines correct that.
Finding clocks(MPI_Comm comm) {
  const Node node(comm);
  const ClockOffset found = clock_offset(comm);
  const bool here = node.local(0) >= 0;
  const bool ok = !here || std::abs(found.seconds) <= found.uncertainty_s + 1e-6;
  double worst[] = {here ? std::abs(found.seconds) : 0, here ? 0 : std::abs(found.seconds), found.uncertainty_s};
  REQUIRE_MPI(MPI_Allreduce(MPI_IN_PLACE, worst, 3, MPI_DOUBLE, MPI_MAX, comm));
  std::string text = "steps of " + with_unit(clock_step()) + "; ranks of a node apart by at most " +
                     with_unit(worst[0]) + ", measured to within " + with_unit(worst[2]);
  if (worst[1] > 0) text += "; other nodes by " + with_unit(worst[1]) + ", which timelines correct";
  return {ok, text};
}

}  // namespace

std::vector<Probe> machine_probes() { return {{"huge-pages", huge_pages, true}, {"clock", clocks, true}}; }

}  // namespace haloscope::probing
