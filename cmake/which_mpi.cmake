# The MPI of the library: its name and version according to mpi.h. The header which_mpi.h and the package compare it
# with the MPI of the program.
set(which ${PROJECT_BINARY_DIR}/generated/haloscope/which_mpi)
file(WRITE ${which}.cpp [[
#include <mpi.h>
#define TEXT(x) TEXT_OF(x)
#define TEXT_OF(x) #x
#if defined(I_MPI_VERSION)
#define NAME "Intel MPI " I_MPI_VERSION
#elif defined(MPICH_VERSION)
#define NAME "MPICH " MPICH_VERSION
#elif defined(OMPI_MAJOR_VERSION)
#define NAME "Open MPI " TEXT(OMPI_MAJOR_VERSION) "." TEXT(OMPI_MINOR_VERSION) "." TEXT(OMPI_RELEASE_VERSION)
#else
#define NAME "another MPI than MPICH and Open MPI"
#endif
extern const char name[];
const char name[] = "built for [" NAME "]";
]])
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
try_compile(named ${PROJECT_BINARY_DIR}/which_mpi ${which}.cpp LINK_LIBRARIES MPI::MPI_CXX COPY_FILE ${which}.a NO_CACHE)
unset(CMAKE_TRY_COMPILE_TARGET_TYPE)
file(STRINGS ${which}.a name REGEX "built for \\[.*\\]")
string(REGEX REPLACE ".*built for \\[(.*)\\].*" "\\1" HALOSCOPE_MPI "${name}")
message(STATUS "Haloscope is built for ${HALOSCOPE_MPI}")
string(REGEX MATCH "^(MPICH|Intel MPI)" HS_BUILT_FOR_MPICH "${HALOSCOPE_MPI}")
string(REGEX MATCH "^Open MPI" HS_BUILT_FOR_OPENMPI "${HALOSCOPE_MPI}")
set(HS_BUILT_FOR_ABI OFF)
if(TARGET haloscope_exchange_abi)
  set(HS_BUILT_FOR_ABI ON)
endif()
set(remedy "compile with its mpicc or mpicxx, or build Haloscope with the program's MPI, or with -DHALOSCOPE_MPI_ABI=ON by an MPI \
that has mpicc_abi, and use mpicc_abi and haloscope::exchange_abi, which run on every MPI with the standard ABI")
configure_file(cmake/which_mpi.h.in ${which}.h @ONLY)
