// haloscope-rank: the MPI program of the library's own apps.
#include "haloscope/main.hpp"
#include "haloscope/rank/blocks/blocks.hpp"

int main(int argc, char** argv) {
  haloscope::add_request_kind(haloscope::blocks_kind());
  return haloscope::rank_main(argc, argv);
}
