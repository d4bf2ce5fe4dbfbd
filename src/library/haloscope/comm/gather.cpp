#include "haloscope/comm/gather.hpp"

#include <numeric>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/together.hpp"
#include "haloscope/comm/until_complete.hpp"
#include "haloscope/extend/agree.hpp"

namespace haloscope {

namespace {

std::vector<int> numbers_of_all(MPI_Comm comm, int size, int mine) {
  UntilComplete<std::vector<int>> numbers(static_cast<std::size_t>(size) + 1, mine);  // the last list is sent
  numbers.begin();
  MPI_Request request;
  CHECK_MPI(MPI_Iallgather(&numbers->back(), 1, MPI_INT, numbers->data(), 1, MPI_INT, comm, &request));
  meet_in(request);
  numbers.completed();
  return {numbers->begin(), numbers->end() - 1};
}

}  // namespace

std::vector<std::vector<std::int64_t>> lists_of_all(MPI_Comm comm, const std::vector<std::int64_t>& mine) {
  const int size = ranks_in(comm);
  const std::vector<int> counts = numbers_of_all(comm, size, static_cast<int>(mine.size()));
  std::vector<int> starts(counts);
  std::exclusive_scan(counts.begin(), counts.end(), starts.begin(), 0);
  std::vector<std::int64_t> flat(static_cast<std::size_t>(starts.back() + counts.back()));
  CHECK_MPI(MPI_Allgatherv(mine.data(), static_cast<int>(mine.size()), MPI_INT64_T, flat.data(), counts.data(),
                           starts.data(), MPI_INT64_T, comm));
  std::vector<std::vector<std::int64_t>> lists;
  for (int r = 0; r < size; ++r) lists.emplace_back(flat.begin() + starts[r], flat.begin() + starts[r] + counts[r]);
  return lists;
}

bool anywhere(bool value, MPI_Comm comm) {
  std::array<int, 1> any{value};
  reduce_together(comm, any, MPI_INT, MPI_LOR);
  return any[0] != 0;
}

}  // namespace haloscope
