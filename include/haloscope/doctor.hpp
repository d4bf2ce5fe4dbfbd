// The library call behind `haloscope doctor`: checks of the machine and of MPI in a running program, with remedies.
#pragma once

#include "haloscope/extend/cxx20.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include "haloscope/extend/which_mpi.hpp"
#include "haloscope/extend/words.hpp"

namespace haloscope {

/// The check passed; passed slowly or in part; got wrong values; could not run.
enum class Verdict : std::uint8_t { ok, warning, broken, not_here };
HALOSCOPE_WORDS(Verdict, "verdict of a check", "ok", "warning", "broken", "not here");

/// One check and its outcome.
struct Diagnosis {
  std::string name;  ///< as in `haloscope doctor`: pinning, /dev/shm, huge pages, exchange
  Verdict verdict = Verdict::ok;
  std::string found;   ///< on the rank with the gravest finding, the first of several
  std::string remedy;  ///< "" where nothing needs to be done
};

/// Examines the ranks of `comm` from inside the running program: the cores that they may use, room in /dev/shm,
/// huge pages under fields, values of halos that were exchanged by messages of 16 B and of 16 KiB. Checks that may
/// crash or hang an MPI are left to `haloscope doctor`, which runs them in separate jobs.
/// @return the same checks on all ranks. Never throws for a finding.
/// Collective, on a separate communicator. Cost: some collective calls, two exchanges, 64 MiB written and freed on
/// each rank; tens of milliseconds.
std::vector<Diagnosis> doctor(MPI_Comm comm);

}  // namespace haloscope
