#include "haloscope/runner/failure.hpp"

#include <set>
#include <vector>

#include "haloscope/core/names.hpp"
#include "haloscope/extend/agree.hpp"

namespace haloscope {
namespace {

std::set<int> peers_of(const Plan& plan) {
  std::set<int> peers;
  for (const Message& message : plan.messages) peers.insert(message.peer);
  return peers;
}

}  // namespace

std::string name_failure(MPI_Comm comm, const Plan& plan, const std::string& work, const std::string& reason) {
  const std::set<int> peers = peers_of(plan);
  const std::string with =
      peers.empty() ? "" : (peers.size() == 1 ? " with rank " : " with ranks ") + join_numbers(peers, ", ");
  return "rank " + std::to_string(rank_in(comm)) + ": " + work + with + " failed: " + reason;
}

std::vector<int> ranks_to_warn(MPI_Comm comm, const std::vector<const Plan*>& plans) {
  const int rank = rank_in(comm), size = ranks_in(comm);
  std::set<int> ranks{(rank + 1) % size, (rank + size - 1) % size};
  for (const Plan* const plan : plans) ranks.merge(peers_of(*plan));
  ranks.erase(rank);
  return {ranks.begin(), ranks.end()};
}

}  // namespace haloscope
