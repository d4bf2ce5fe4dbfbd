// Partitioned communication (MPI 4): present, and right for partitions made ready in any order, round after round.
#include <algorithm>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/rank/probe/probe.hpp"

namespace haloscope::probing {

namespace {

#if HALOSCOPE_HAVE_PARTITIONED

constexpr int partitions = 4, per_partition = 300;

int number_in(int rank, int round, int i) { return (round * 64 + rank) * 2048 + i; }

/// All ranks in a ring, everyone sending to the next.
Finding partitioned(MPI_Comm comm) {
  int rank = 0, size = 0;
  REQUIRE_MPI(MPI_Comm_rank(comm, &rank));
  REQUIRE_MPI(MPI_Comm_size(comm, &size));
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  std::vector<int> out(partitions * per_partition), in(partitions * per_partition);
  MPI_Request requests[2];
  REQUIRE_MPI(
      MPI_Precv_init(in.data(), partitions, per_partition, MPI_INT, previous, 7, comm, MPI_INFO_NULL, &requests[0]));
  REQUIRE_MPI(
      MPI_Psend_init(out.data(), partitions, per_partition, MPI_INT, next, 7, comm, MPI_INFO_NULL, &requests[1]));
  std::string complaint;
  for (int round = 0; round < rounds; ++round) {
    std::fill(in.begin(), in.end(), -1);
    REQUIRE_MPI(MPI_Startall(2, requests));
    for (int p : {2, 0, 3, 1}) {
      for (int i = p * per_partition; i < (p + 1) * per_partition; ++i) out[i] = number_in(rank, round, i);
      REQUIRE_MPI(MPI_Pready(p, requests[1]));
    }
    int arrived = 0;
    while (!arrived) REQUIRE_MPI(MPI_Parrived(requests[0], 1, &arrived));
    expect(complaint, "the partition that has arrived", in[per_partition], number_in(previous, round, per_partition));
    REQUIRE_MPI(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < partitions * per_partition; ++i)
      expect(complaint, "a received number", in[i], number_in(previous, round, i));
  }
  for (auto& request : requests) REQUIRE_MPI(MPI_Request_free(&request));
  return wrong_if(complaint);
}

#else

Finding partitioned(MPI_Comm) { return {false, "this MPI has no partitioned communication"}; }

#endif

}  // namespace

std::vector<Probe> partitioned_probes() { return {{"partitioned", partitioned}}; }

}  // namespace haloscope::probing
