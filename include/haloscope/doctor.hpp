// The library call behind `haloscope doctor`: whether the machine and MPI serve a running program well, and what to do.
#pragma once

#include "haloscope/cxx20.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include "haloscope/which_mpi.hpp"
#include "haloscope/words.hpp"

namespace haloscope {

/// Tried and it works; slowly or not everything; wrong values; could not be tried.
enum class Verdict : std::uint8_t { ok, warning, broken, not_here };
HALOSCOPE_WORDS(Verdict, "verdict of a check", "ok", "warning", "broken", "not here");

/// One thing that was tried.
struct Diagnosis {
  std::string name;  ///< as in `haloscope doctor`: pinning, /dev/shm, huge pages, exchange
  Verdict verdict = Verdict::ok;
  std::string found;   ///< on the rank where it is gravest, the first of several
  std::string remedy;  ///< what to do; "" where there is nothing to do
};

/// Examine the ranks of `comm` from inside the running program: the cores that they may use, room in /dev/shm, huge
/// pages under fields, values of halos that were exchanged by messages of 16 B and of 16 KiB. What may crash or hang an
/// MPI is left to `haloscope doctor`, which tries it in jobs of its own.
/// @return the same checks on all ranks. Never throws for what it finds.
/// Collective, on a communicator of its own. Cost: some collective calls, two exchanges, 64 MiB touched and given back
/// on each rank; tens of milliseconds.
std::vector<Diagnosis> doctor(MPI_Comm comm);

}  // namespace haloscope
