#include "haloscope/runner/failure.hpp"

#include <set>
#include <vector>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/core/names.hpp"

namespace haloscope {

std::string name_failure(MPI_Comm comm, const Plan& plan, const std::string& work, const std::string& reason) {
  int rank = 0;
  CHECK_MPI(MPI_Comm_rank(comm, &rank));
  std::set<int> peers;
  for (const Message& message : plan.messages) peers.insert(message.peer);
  std::vector<std::string> names;
  for (const int peer : peers) names.push_back(std::to_string(peer));
  const std::string with =
      names.empty() ? "" : (names.size() == 1 ? " with rank " : " with ranks ") + join(names, ", ");
  return "rank " + std::to_string(rank) + ": " + work + with + " failed: " + reason;
}

}  // namespace haloscope
