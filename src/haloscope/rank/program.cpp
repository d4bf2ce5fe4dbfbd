// haloscope-rank: the MPI program of the library's own apps.
#include "haloscope/main.hpp"

int main(int argc, char** argv) { return haloscope::rank_main(argc, argv); }
