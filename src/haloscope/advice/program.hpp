// Runs another program to its end from inside an MPI process, which that program must neither disturb nor outlive.
#pragma once

#include <string>
#include <vector>

namespace haloscope {

/// What an ended program left behind.
struct Ended {
  int code = 0;          ///< exit code; 128 + the signal that ended it; -1 where someone else has collected it
  std::string out, err;  ///< what it wrote
};

/// Run a program to its end. It has no input, no open file of this process, and an environment without the variables of
/// MPI launchers. When it takes too long, it and the processes that it started are killed.
/// @param path     a file, or a name to be looked for in PATH.
/// @param words    its arguments.
/// @param limit_s  seconds it may take, > 0.
/// @throws UnavailableError when it cannot be started, Error (exit code 1) when it takes too long or this process can
///         open no more files.
/// Local; legal at any time in an MPI program, and without MPI. No thread, no signal handler, no copy of the process.
Ended run_program(const std::string& path, const std::vector<std::string>& words, double limit_s);

}  // namespace haloscope
