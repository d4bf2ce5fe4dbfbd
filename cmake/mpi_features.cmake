# Calls that older MPI libraries lack. The checks use symbols, not the reported version: Open MPI 5 reports 3.1 and has
# both calls. Programs check at run time that they also work (src/lab/haloscope/rank/probe/probe.hpp).
include(CheckCXXSymbolExists)
set(CMAKE_REQUIRED_LIBRARIES MPI::MPI_CXX)
check_cxx_symbol_exists(MPI_Psend_init mpi.h HALOSCOPE_HAVE_PARTITIONED)
check_cxx_symbol_exists(MPI_Neighbor_alltoallw_init mpi.h HALOSCOPE_HAVE_NEIGHBOR_INIT)
check_cxx_symbol_exists(smpi_execute mpi.h HALOSCOPE_SIMULATED_MPI)  # SimGrid's SMPI: time and network are simulated
unset(CMAKE_REQUIRED_LIBRARIES)

foreach(feature HALOSCOPE_HAVE_PARTITIONED HALOSCOPE_HAVE_NEIGHBOR_INIT HALOSCOPE_SIMULATED_MPI)
  if(${feature})
    target_compile_definitions(haloscope PUBLIC $<BUILD_INTERFACE:${feature}=1>)
  endif()
endforeach()

# Without the C++ bindings that MPI removed: this project does not use them, and Open MPI 4's headers warn.
target_compile_definitions(haloscope PUBLIC $<BUILD_INTERFACE:OMPI_SKIP_MPICXX=1> $<BUILD_INTERFACE:MPICH_SKIP_MPICXX=1>)
