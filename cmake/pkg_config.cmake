# Descriptions of the installed libraries for pkg-config, a language each; with -abi: for the standard ABI of MPI.
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH to_prefix /prefix/${pkgconfig_dir} /prefix)

# install_description(NAME COMPONENT TARGET TEXT MPI [REQUIRES name] [CFLAGS words] [LIBS words]): installs NAME.pc with
# a component, where its target exists.
function(install_description name component target text mpi)
  cmake_parse_arguments(arg "" "REQUIRES;CFLAGS;LIBS" "" ${ARGN})
  if(TARGET ${target})
    configure_file(${PROJECT_SOURCE_DIR}/cmake/haloscope.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${pkgconfig_dir} COMPONENT ${component})
  endif()
endfunction()

set(shared "-L\${libdir} -Wl,-rpath,\${libdir}")
set(abi "the standard ABI of MPI 5.0")
install_description(haloscope c haloscope_exchange "the same as haloscope-c" "${HALOSCOPE_MPI}" REQUIRES haloscope-c)
install_description(haloscope-c c haloscope_exchange "the C interface, for mpicc" "${HALOSCOPE_MPI}"
                    CFLAGS "-I\${includedir}" LIBS "${shared} -lhaloscope_exchange")
install_description(haloscope-c-abi c haloscope_exchange_abi "the C interface, for mpicc_abi" "${abi}"
                    CFLAGS "-I\${includedir}" LIBS "${shared} -lhaloscope_exchange_abi")
install_description(haloscope-fortran fortran haloscope_fortran "the Fortran module, for mpifort" "${HALOSCOPE_MPI}"
                    REQUIRES haloscope-c CFLAGS "-I\${includedir}/haloscope/fortran" LIBS "-lhaloscope_fortran")
install_description(haloscope-fortran-abi fortran haloscope_fortran_abi "the Fortran module" "${abi}"
                    REQUIRES haloscope-c-abi CFLAGS "-I\${includedir}/haloscope/fortran" LIBS "-lhaloscope_fortran_abi")

# C++ programs are linked with archives, so they name what those need.
set(flags "-pthread")
if(HALOSCOPE_OPENMP)
  string(APPEND flags " ${OpenMP_CXX_FLAGS}")
endif()
set(archives "-L\${libdir} -lhaloscope -lhaloscope_apps -lhaloscope_model -lhaloscope_core")
if(HALOSCOPE_CUDA)
  string(APPEND archives " -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -lrt")
endif()
if(HALOSCOPE_HIP)
  string(APPEND archives " ${HALOSCOPE_HIP_LIBRARY}")
endif()
install_description(haloscope-cxx cxx haloscope "the C++ library, for mpicxx in C++20" "${HALOSCOPE_MPI}"
                    CFLAGS "-I\${includedir} ${flags}" LIBS "${archives} -ldl ${flags}")
