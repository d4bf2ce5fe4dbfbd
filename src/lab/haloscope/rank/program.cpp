// haloscope-rank: the MPI program of the apps of this build.
#include "haloscope/main.hpp"
#include "haloscope/rank/request_kinds.hpp"

int main(int argc, char** argv) {
  haloscope::add_request_kinds_of_build();
  return haloscope::rank_main(argc, argv);
}
