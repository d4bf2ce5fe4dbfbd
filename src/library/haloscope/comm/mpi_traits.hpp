// Features of the MPI library that this was compiled with, as detected by cmake/mpi_features.cmake.
#pragma once

#if !defined(HALOSCOPE_HAVE_PARTITIONED)
#define HALOSCOPE_HAVE_PARTITIONED 0
#endif
#if !defined(HALOSCOPE_HAVE_NEIGHBOR_INIT)
#define HALOSCOPE_HAVE_NEIGHBOR_INIT 0
#endif
#if !defined(HALOSCOPE_SIMULATED_MPI)
#define HALOSCOPE_SIMULATED_MPI 0
#endif

namespace haloscope {

struct MpiTraits {
  bool partitioned;    ///< partitioned communication: MPI_Psend_init and related calls
  bool neighbor_init;  ///< persistent neighbourhood collectives: MPI_Neighbor_alltoallw_init
  bool simulated;      ///< SimGrid's SMPI: time and network are simulated, ranks are threads of one process
};

/// Calls that a library may lack need the preprocessor too: HALOSCOPE_HAVE_PARTITIONED, HALOSCOPE_HAVE_NEIGHBOR_INIT.
inline constexpr MpiTraits mpi_traits{HALOSCOPE_HAVE_PARTITIONED != 0, HALOSCOPE_HAVE_NEIGHBOR_INIT != 0,
                                      HALOSCOPE_SIMULATED_MPI != 0};

}  // namespace haloscope
