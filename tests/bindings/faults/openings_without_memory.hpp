// Shared code of programs of openings without memory: in opening number n the n-th allocation fails, and the same is
// opened again with all memory available. Each rank prints "n: RESULT; again: RESULT", results being "right", "wrong"
// or "refused: TEXT"; "done" where no rank made n allocations.
#pragma once

#include <dlfcn.h>
#include <mpi.h>

#include <string>

struct Setting {
  std::string strategy, memory;
  bool on, here;  // here: this rank is the one that fails
  int rank;
  MPI_Comm comm;  // MPI_COMM_NULL: each opening gets a separate one
};

template <class Function>
Function* find(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

/// Runs a call of the library, whose allocations count. Allocations of this program do not.
template <class Call>
void counted(Call call) {
  static auto* const count = find<void(int)>("count_allocations");
  struct End {
    ~End() { count(0); }
  } end;
  count(1);
  call();
}

/// Opens, uses and ends the objects of `with`; each program defines it.
std::string open_and_exchange(const Setting& with);

/// Prints the lines of all ranks on rank 0, which would otherwise be mixed.
void print_all(const std::string& text);

/// @param words  STRATEGY MEMORY FIRST STEP once|on|pinned all|RANK fresh|kept; pinned: one allocation of pinned memory
///               of a device fails; kept: all openings are on one communicator
void fail_all(int rank, char** words);
