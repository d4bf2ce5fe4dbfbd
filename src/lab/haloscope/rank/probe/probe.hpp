// Conformance probes of the MPI features that the transports rely on. They use data with known right answers, since
// version numbers reveal neither defects nor features ahead of the standard that a library reports. A probe may crash
// or hang, so probes run in a separate job, which the launcher ends after a time-out.
#pragma once

#include <mpi.h>

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace haloscope {

/// The finding of one rank: true if the answer was right; `reason` describes the fault, or adds information.
struct Finding {
  bool ok = true;
  std::string reason = {};
};

/// One question. `run` is collective over `comm`, of any size, and leaves nothing behind in it.
struct Probe {
  std::string name;
  Finding (*run)(MPI_Comm comm);
  bool on_request = false;  ///< only when named: no strategy depends on it, or it fails on purpose, for tests
};

/// All probes, in the order in which they run.
const std::vector<Probe>& probes();

/// Runs the probes named in `names` ("all" for every ordinary one). Rank 0 prints one JSON line for each as soon as it
/// ends, {"probe", "ok", "reason"}; one rank that found something wrong is enough. "list" only prints the names of the
/// ordinary ones. Collective.
/// @throws UsageError for an unknown name.
void run_probes(MPI_Comm comm, const std::vector<std::string>& names);

/// Helpers of the probe files in this folder.
namespace probing {

inline constexpr int rounds = 3;  ///< a right answer must stay right when the operation is repeated

/// Returns a finding: right for "", else wrong for this reason.
inline Finding wrong_if(const std::string& reason) { return {reason.empty(), reason}; }

/// Sets "NAME is GOT instead of WANTED" if the two differ; keeps the first complaint.
template <class T>
void expect(std::string& complaint, const char* name, const T& got, const T& wanted) {
  if (complaint.empty() && got != wanted)
    complaint = std::string(name) + " is " + std::to_string(got) + " instead of " + std::to_string(wanted);
}

std::vector<Probe> neighbour_probes();
std::vector<Probe> partitioned_probes();
std::vector<Probe> rma_probes();
std::vector<Probe> shared_probes();
std::vector<Probe> device_probes();
std::vector<Probe> machine_probes();

}  // namespace probing
}  // namespace haloscope
