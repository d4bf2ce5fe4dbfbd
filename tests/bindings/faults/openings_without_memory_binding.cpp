// Openings without memory through a binding: see openings_without_memory.hpp.
//   usage: openings_without_memory_c STRATEGY c FIRST STEP once|on all|RANK fresh|kept
//          openings_without_memory_fortran STRATEGY fortran FIRST STEP once|on all|RANK fresh|kept
#include <array>
#include <cstdio>

#include "openings_without_memory.hpp"

extern "C" {
/// Defined for each language. @param text  out, of 1000 characters: "right", "wrong" or "refused: TEXT".
void open_by_binding(int comm, const char* strategy, char* text);

/// True if something holds on any rank of a communicator.
int on_any_rank(int comm, int here) {
  PMPI_Allreduce(MPI_IN_PLACE, &here, 1, MPI_INT, MPI_LOR, MPI_Comm_f2c(comm));
  return here;
}
}

std::string open_and_exchange(const Setting& with) {
  std::array<char, 1001> text{};
  counted([&] { open_by_binding(MPI_Comm_c2f(with.comm), with.strategy.c_str(), text.data()); });
  return text.data();
}

int main(int argc, char** argv) {
  if (argc != 8) return 2;
  PMPI_Init(&argc, &argv);
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // lines that are printed before a job ends are read
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  fail_all(rank, argv + 1);
  PMPI_Finalize();
  return 0;
}
