# Run paths, in which programs and libraries search for the libraries that they need. Files are linked with their final
# run path: CMake pads a path that it rewrites at install time, and the loader treats an empty entry as the current
# folder.
set(HALOSCOPE_MPI_RUN_PATH "" CACHE STRING
    "Folder of the MPI for installed programs and libraries, such as \$ORIGIN/../lib; empty: that of the build's MPI")
set(HALOSCOPE_MPI_COMPILER "${MPI_CXX_COMPILER}")  # its mpiexec is in the same folder
if(SKBUILD AND NOT HALOSCOPE_MPI_RUN_PATH)
  cmake_path(GET MPI_CXX_COMPILER PARENT_PATH mpi_wheel)
  file(GLOB mpi_wheel ${mpi_wheel}/../lib/python*/*-packages/mpich-*.dist-info)
  if(mpi_wheel)  # pip removes its build folder: the package depends on MPICH's wheel, and is installed next to it
    set(HALOSCOPE_MPI_RUN_PATH "$ORIGIN/../../../..")
    set(HALOSCOPE_MPI_COMPILER mpicxx)
  endif()
endif()

# The MPI's wrapper passes separate run paths, which would come first, and twice.
get_target_property(options MPI::MPI_CXX INTERFACE_LINK_OPTIONS)
if(options)
  string(REGEX REPLACE "-Wl\\$<COMMA>-?-rpath(=|\\$<COMMA>| -Wl\\$<COMMA>)[^ >]*" "" options "${options}")
  set_target_properties(MPI::MPI_CXX PROPERTIES INTERFACE_LINK_OPTIONS "${options}")
endif()

# Sets `result` to the folders of some libraries, except for folders that the loader searches by default.
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

# set_run_path(TARGET [FOLDER...]): sets the run path of an installed target; folders: of libraries other than the MPI.
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
