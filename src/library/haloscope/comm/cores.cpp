#include "haloscope/comm/cores.hpp"

#include <sched.h>
#include <unistd.h>

#include <fstream>

#include "haloscope/comm/gather.hpp"
#include "haloscope/comm/handles.hpp"
#include "haloscope/comm/mpi_traits.hpp"
#include "haloscope/extend/agree.hpp"

namespace haloscope {

namespace {

/// Returns the cores that a process may use; empty where the system does not report them.
std::vector<int> cores_allowed_to(pid_t process) {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(process, sizeof set, &set) != 0) return cores;
  for (int c = 0; c < CPU_SETSIZE; ++c)
    if (CPU_ISSET(c, &set)) cores.push_back(c);
  return cores;
}

// Read before main(), hence before any thread is pinned.
const std::vector<int> own_cores = cores_allowed_to(0);

}  // namespace

const std::vector<int>& allowed_cores() { return own_cores; }

int cores_of_node() {
  static const int count = [] {
    const std::size_t launcher = cores_allowed_to(getppid()).size();
    return static_cast<int>(launcher > own_cores.size() ? launcher : own_cores.size());
  }();
  return count;
}

int socket_of_process() {
  int socket = -1;
  for (int core : own_cores) {
    std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(core) + "/topology/physical_package_id");
    int one = -1;
    if (!(file >> one) || one < 0 || (socket >= 0 && one != socket)) return -1;
    socket = one;
  }
  return socket;
}

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

bool more_ranks_than_cores(MPI_Comm comm, int threads) {
  if (mpi_traits.simulated) return false;  // every simulated rank computes as if it were alone
  BriefComm node;
  CHECK_MPI(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, node.address()));
  return anywhere(ranks_in(node.get()) * threads > cores_of_node(), comm);
}

}  // namespace haloscope
