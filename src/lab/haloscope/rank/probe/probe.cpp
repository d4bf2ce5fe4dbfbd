#include "haloscope/rank/probe/probe.hpp"

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"

namespace haloscope {

namespace {

Finding start(MPI_Comm comm) {
  REQUIRE_MPI(MPI_Barrier(comm));
  return {};
}

Finding hang(MPI_Comm) {
  std::this_thread::sleep_for(std::chrono::hours(1));
  return {};
}

Finding crash(MPI_Comm) { std::abort(); }

Finding fail(MPI_Comm) { return {false, "it fails on request"}; }

std::vector<const Probe*> chosen(const std::vector<std::string>& names) {
  std::vector<const Probe*> found;
  std::vector<std::string> valid{"all", "list"};
  for (const Probe& probe : probes()) valid.push_back(probe.name);
  for (const auto& name : names)
    if (!has(valid, name)) throw UsageError(unknown_name("probe", name, valid));
  const bool all = has(names, "all");
  for (const Probe& probe : probes())
    if ((all && !probe.on_request) || has(names, probe.name)) found.push_back(&probe);
  return found;
}

/// On rank 0: the finding of the lowest rank that found something wrong, else rank 0's own.
Finding agree(const Finding& mine, MPI_Comm comm) {
  int rank = 0, size = 0;
  REQUIRE_MPI(MPI_Comm_rank(comm, &rank));
  REQUIRE_MPI(MPI_Comm_size(comm, &size));
  const int claim = mine.ok ? size : rank;
  int speaker = size;
  REQUIRE_MPI(MPI_Allreduce(&claim, &speaker, 1, MPI_INT, MPI_MIN, comm));
  const bool ok = speaker == size;
  char text[240] = {};
  if (rank == (ok ? 0 : speaker)) mine.reason.copy(text, sizeof text - 1);
  REQUIRE_MPI(MPI_Bcast(text, sizeof text, MPI_CHAR, ok ? 0 : speaker, comm));
  return {ok, text};
}

}  // namespace

const std::vector<Probe>& probes() {
  static const std::vector<Probe> all = [] {
    std::vector<Probe> list{{"start", start}};
    for (const auto& group : {probing::neighbour_probes(), probing::partitioned_probes(), probing::rma_probes(),
                              probing::shared_probes(), probing::device_probes(), probing::machine_probes()})
      list.insert(list.end(), group.begin(), group.end());
    list.insert(list.end(), {{"test-hang", hang, true}, {"test-crash", crash, true}, {"test-fail", fail, true}});
    return list;
  }();
  return all;
}

void run_probes(MPI_Comm comm, const std::vector<std::string>& names) {
  int rank = 0;
  REQUIRE_MPI(MPI_Comm_rank(comm, &rank));
  if (names == std::vector<std::string>{"list"}) {
    for (const Probe* probe : chosen({"all"}))
      if (rank == 0) std::cout << nlohmann::json{{"probe", probe->name}}.dump() << std::endl;
    return;
  }
  for (const Probe* probe : chosen(names)) {
    MPI_Comm own;
    REQUIRE_MPI(MPI_Comm_dup(comm, &own));
    const Finding finding = agree(probe->run(own), comm);
    REQUIRE_MPI(MPI_Comm_free(&own));
    const nlohmann::json line{{"probe", probe->name}, {"ok", finding.ok}, {"reason", finding.reason}};
    if (rank == 0) std::cout << line.dump() << std::endl;
  }
}

}  // namespace haloscope
