#include "openings_without_memory.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

/// Opens on a separate communicator, on which nothing exists from earlier openings, or on the shared one.
std::string attempt(Setting with, long first, long last) {
  const bool fresh = with.comm == MPI_COMM_NULL;
  if (fresh) PMPI_Comm_dup(MPI_COMM_WORLD, &with.comm);
  find<void(long, long)>("fail_allocations")(first, last);
  std::string result = open_and_exchange(with);
  if (fresh) PMPI_Comm_free(&with.comm);
  return result;
}

using Line = std::array<char, 1024>;

/// @return true if an allocation has failed on some rank.
bool fail_one(const Setting& with, long number) {
  const std::string name = std::to_string(number);
  print_all(with.rank == 0 ? name : "");
  const std::string result = attempt(with, with.here ? number : 0, !with.here ? -1 : with.on ? 1L << 60 : number);
  int failed = find<long()>("failed_allocations")() > 0;
  PMPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
  const std::string again = attempt(with, 0, -1);
  print_all(name + ": " + result + "; again: " + again);
  return failed != 0;
}

}  // namespace

void print_all(const std::string& text) {
  Line line{};
  std::snprintf(line.data(), line.size(), "%s", text.c_str());
  int size = 1;
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<Line> all(static_cast<std::size_t>(size));
  PMPI_Gather(line.data(), sizeof line, MPI_BYTE, all.data(), sizeof line, MPI_BYTE, 0, MPI_COMM_WORLD);
  for (const Line& each : all)
    if (each[0] != '\0') std::puts(each.data());
}

void fail_all(int rank, char** words) {
  const bool here = std::strcmp(words[5], "all") == 0 || std::atoi(words[5]) == rank;
  Setting with{words[0], words[1], std::strcmp(words[4], "on") == 0, here, rank, MPI_COMM_NULL};
  find<void(int)>("count_only_pinned")(std::strcmp(words[4], "pinned") == 0);
  if (std::strcmp(words[6], "kept") == 0) PMPI_Comm_dup(MPI_COMM_WORLD, &with.comm);
  attempt(with, 0, -1);  // objects that are made once a process stay
  const long before = find<long()>("held_allocations")(), first = std::atol(words[2]), step = std::atol(words[3]);
  long number = first;
  while (fail_one(with, number)) number += step;
  const long held = find<long()>("held_allocations")() - before;
  print_all("done: " + std::to_string(held) + " allocations held");
}
