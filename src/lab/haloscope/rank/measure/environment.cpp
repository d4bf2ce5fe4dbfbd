#include "haloscope/rank/measure/environment.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "haloscope/comm/cores.hpp"
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/mpi_traits.hpp"
#include "haloscope/comm/text.hpp"
#include "haloscope/core/denormals.hpp"
#include "haloscope/device/device.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/candidate.hpp"
#include "haloscope/kernels/kernel.hpp"
#include "haloscope/rank/measure/build_config.hpp"
#include "haloscope/rank/watch/texts.hpp"

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace haloscope {

namespace {

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string mpi_standard() {
  int major = 0, minor = 0;
  REQUIRE_MPI(MPI_Get_version(&major, &minor));
  return std::to_string(major) + "." + std::to_string(minor);
}

/// Returns the sockets of this node, 1 if Linux does not report them.
int sockets() {
  std::set<std::string> packages;
  for (int c = 0; c < static_cast<int>(sysconf(_SC_NPROCESSORS_CONF)); ++c)
    packages.insert(
        first_line(("/sys/devices/system/cpu/cpu" + std::to_string(c) + "/topology/physical_package_id").c_str()));
  packages.erase("");
  return std::max(1, static_cast<int>(packages.size()));
}

/// Of the caller in its team.
[[maybe_unused]] int thread_number() {
#if defined(_OPENMP)
  return omp_get_thread_num();
#else
  return 0;
#endif
}

/// The back ends of devices, each with its devices or the reason why it is absent. Opens the devices.
nlohmann::json devices_json() {
  nlohmann::json list = nlohmann::json::array();
  for (const device::Backend& backend : device::backends()) {
    std::string absent;
    nlohmann::json found = nlohmann::json::array();
    try {
      absent = backend.absent();
      for (int i = 0; absent.empty() && i < backend.count(); ++i) {
        const device::Info info = backend.open(i)->info();
        found.push_back({{"name", info.name}, {"total_bytes", info.total_bytes}});
      }
    } catch (const Error& error) {
      absent = error.what();
    }
    list.push_back({{"name", backend.name}, {"absent", absent}, {"devices", found}});
  }
  return list;
}

/// Returns the information that needs no access to devices.
nlohmann::json plain_info() {
  return {{"version", HALOSCOPE_VERSION},
          {"commit", HALOSCOPE_COMMIT},
          {"compiler", HALOSCOPE_COMPILER},
          {"compiler_flags", HALOSCOPE_FLAGS},
          {"build_type", HALOSCOPE_BUILD_TYPE},
          {"mpi_library", mpi_library()},
          {"mpi_standard", mpi_standard()},
          {"mpi_compiler", HALOSCOPE_MPI_COMPILER},
          {"isas", kernel_isas()}};
}

}  // namespace

void pin_threads(MPI_Comm comm, int threads) {
  if (mpi_traits.simulated) return;  // there all ranks are one thread of this machine
  MPI_Comm node;
  REQUIRE_MPI(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
  int rank = 0, ranks = 0;
  REQUIRE_MPI(MPI_Comm_rank(node, &rank));
  REQUIRE_MPI(MPI_Comm_size(node, &ranks));
  REQUIRE_MPI(MPI_Comm_free(&node));
  const std::vector<int>& cores = allowed_cores();
  const bool all_cores = static_cast<int>(cores.size()) == cores_of_node();
  const int first = all_cores ? rank * threads : 0;
  const bool fits =
      first + threads <= static_cast<int>(cores.size()) && (!all_cores || ranks * threads <= cores_of_node());
#pragma omp parallel num_threads(threads)
  {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (fits)
      CPU_SET(cores[first + thread_number()], &set);
    else
      for (int c : cores) CPU_SET(c, &set);
    sched_setaffinity(0, sizeof set, &set);
  }
}

nlohmann::json build_info() {
  nlohmann::json info = plain_info();
  info["apps"] = nlohmann::json::array();
  for (const App* app : apps()) info["apps"].push_back(app->name);
  info["devices"] = devices_json();
  return info;
}

nlohmann::json gather_environment(MPI_Comm comm) {
  std::vector<std::string> hosts;
  const OwnedComm own = duplicate(comm);
  for_each_text(own.get(), host_name(), [&](int, const std::string& host) { hosts.push_back(host); });
  nlohmann::json environment = plain_info();
  for (const char* key : {"isas", "mpi_compiler"}) environment.erase(key);
  environment["hosts"] = hosts;
  environment["cpu"] = cpu_model();
  environment["cores"] = cores_of_node();
  environment["sockets"] = sockets();
  environment["ftz"] = flushes_to_zero();
  environment["huge_pages"] = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  return environment;
}

nlohmann::json device_json(const std::string& backend, const device::Device& device) {
  const device::Info info = device.info();
  return {{"name", info.name},
          {"total_bytes", info.total_bytes},
          {"multiprocessors", info.multiprocessors},
          {"on_node", device::find_backend(backend).count()}};
}

}  // namespace haloscope
