// Shared by the files of the C interface with MPI.
#pragma once

#include <string>
#include <vector>

#include "haloscope/c/bridge.hpp"
#include "haloscope/exchange.h"
#include "haloscope/exchange.hpp"

struct hs_grid {
  MPI_Comm comm;
  hs_layout layout;
  int rank;
  std::vector<int> nodes;
};

struct hs_exchange {
  haloscope::Exchange exchange;
  std::string report;
};
