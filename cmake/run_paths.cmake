# Run paths, in which programs and libraries search for the libraries that they need. Installed files are linked with
# the run path that they will have there: a path that CMake rewrites at install time is padded, and to the loader an
# empty entry is the current folder.
set(HALOSCOPE_MPI_RUN_PATH "" CACHE STRING
    "Where installed programs and libraries find the MPI, as \$ORIGIN/../lib; empty: where the build found it")
set(HALOSCOPE_MPI_COMPILER "${MPI_CXX_COMPILER}")  # its mpiexec is in the same folder
if(SKBUILD AND NOT HALOSCOPE_MPI_RUN_PATH)
  cmake_path(GET MPI_CXX_COMPILER PARENT_PATH mpi_wheel)
  file(GLOB mpi_wheel ${mpi_wheel}/../lib/python*/*-packages/mpich-*.dist-info)
  if(mpi_wheel)  # of pip's build, which is removed: the package depends on MPICH's wheel, and lies next to it
    set(HALOSCOPE_MPI_RUN_PATH "$ORIGIN/../../../..")
    set(HALOSCOPE_MPI_COMPILER mpicxx)
  endif()
endif()

# The MPI's wrapper passes separate run paths, which would come before, and twice.
get_target_property(options MPI::MPI_CXX INTERFACE_LINK_OPTIONS)
if(options)
  string(REGEX REPLACE "-Wl\\$<COMMA>-?-rpath(=|\\$<COMMA>| -Wl\\$<COMMA>)[^ >]*" "" options "${options}")
  set_target_properties(MPI::MPI_CXX PROPERTIES INTERFACE_LINK_OPTIONS "${options}")
endif()

# The folders of some libraries that the loader does not search by itself.
function(folders_of result)
  set(folders)
  foreach(library ${ARGN})
    get_filename_component(folder "${library}" DIRECTORY)
    if(IS_ABSOLUTE "${folder}" AND NOT folder IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
      list(APPEND folders "${folder}")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES folders)
  set(${result} "${folders}" PARENT_SCOPE)
endfunction()

# set_run_path(TARGET [FOLDER...]): of an installed target that is linked with the MPI; folders for other libraries.
function(set_run_path target)
  set(folders ${ARGN})
  get_target_property(linked ${target} LINK_LIBRARIES)
  if(linked MATCHES "(^|;)haloscope(_rank|_exchange|_abi|_exchange_abi)?(;|$)" AND HALOSCOPE_MPI_RUN_PATH)
    list(APPEND folders ${HALOSCOPE_MPI_RUN_PATH})
  elseif(linked MATCHES "(^|;)haloscope(_rank|_exchange)?(;|$)")
    folders_of(mpi ${MPI_CXX_LIBRARIES})
    list(APPEND folders ${mpi})
    set_target_properties(${target} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  endif()
  list(REMOVE_DUPLICATES folders)
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "${folders}")
endfunction()
