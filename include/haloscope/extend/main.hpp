// The MPI program that runs, measures and calibrates apps; `haloscope run --program` starts it.
#pragma once

#include "haloscope/extend/cxx20.hpp"

#include <vector>

#include "haloscope/extend/app.hpp"

namespace haloscope {

/// Runs a rank's whole main(), from MPI_Init to MPI_Finalize, with the library's apps and `apps`. Takes plain options
/// and prints records (JSON Lines), so that it can be started by hand under any launcher. A program for a user's app is
///     int main(int argc, char** argv) { return haloscope::rank_main(argc, argv, {my_app()}); }
/// MPI returns errors to calls on MPI_COMM_WORLD and MPI_COMM_SELF, including calls of apps, which must check the
/// codes.
/// @return the exit code: 0 ok, 1 failed, 2 usage, 3 not available here. Errors are printed on standard error.
int rank_main(int argc, char** argv, const std::vector<App>& apps = {});

}  // namespace haloscope
