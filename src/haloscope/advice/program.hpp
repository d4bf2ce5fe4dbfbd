// Another program, run to its end from inside an MPI process, which it must neither disturb nor outlive.
#pragma once

#include <string>
#include <vector>

namespace haloscope {

/// What a program that has ended left.
struct Ended {
  int code = 0;          ///< exit code; 128 + the signal that ended it; -1 where someone else has collected it
  std::string out, err;  ///< what it wrote
};

/// Run a program to its end. It reads nothing, and gets the environment without what MPI launchers put there, and no
/// open file of this process; it, and what it has started, is killed when it takes too long.
/// @param path     a file, or a name to be looked for in PATH.
/// @param words    its arguments.
/// @param limit_s  seconds it may take, > 0.
/// @throws UnavailableError when it cannot be started, Error (exit code 1) when it takes too long or this process can
///         open no more files.
/// Local; legal at any time in an MPI program, and without MPI. No thread, no signal handler, no copy of the process.
Ended run_program(const std::string& path, const std::vector<std::string>& words, double limit_s);

}  // namespace haloscope
