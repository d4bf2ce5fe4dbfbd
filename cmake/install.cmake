# What `cmake --install` puts where, and the package that `find_package(haloscope)` finds.
include(CMakePackageConfigHelpers)

set(exported haloscope haloscope_core)
set_target_properties(haloscope_core PROPERTIES EXPORT_NAME core)
add_library(haloscope::core ALIAS haloscope_core)
foreach(name c exchange)
  list(APPEND exported haloscope_${name})
  set_target_properties(haloscope_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(haloscope_${name} PUBLIC $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  add_library(haloscope::${name} ALIAS haloscope_${name})
endforeach()
if(TARGET haloscope_exchange_abi)  # compiled for by mpicc_abi: its users need no package of an MPI
  set_target_properties(haloscope_exchange_abi PROPERTIES EXPORT_NAME exchange_abi)
  target_include_directories(haloscope_exchange_abi INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  list(APPEND exported haloscope_exchange_abi)
endif()
if(TARGET haloscope_fortran_abi)
  set_target_properties(haloscope_fortran_abi PROPERTIES EXPORT_NAME fortran_abi)
  target_include_directories(haloscope_fortran_abi
                             INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/haloscope/fortran>)
  list(APPEND exported haloscope_fortran_abi)
endif()
if(TARGET haloscope_fortran)
  set_target_properties(haloscope_fortran PROPERTIES EXPORT_NAME fortran)
  list(APPEND exported haloscope_fortran)
  add_library(haloscope::fortran ALIAS haloscope_fortran)
  install(DIRECTORY ${PROJECT_BINARY_DIR}/fortran/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/haloscope/fortran)
endif()
if(TARGET haloscope_rank)
  set_target_properties(haloscope_rank PROPERTIES EXPORT_NAME rank)
  list(APPEND exported haloscope_rank)
  add_library(haloscope::rank ALIAS haloscope_rank)
  set_target_properties(haloscope-rank PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)  # the MPI it was built with
  install(TARGETS haloscope-rank haloscope-delay-line)
endif()
install(TARGETS ${exported} EXPORT haloscopeTargets)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/haloscope DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_BINARY_DIR}/generated/haloscope/which_mpi.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/haloscope)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/haloscope)
install(EXPORT haloscopeTargets NAMESPACE haloscope:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/haloscopeConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/haloscopeConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/haloscopeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/haloscopeConfig.cmake ${PROJECT_BINARY_DIR}/haloscopeConfigVersion.cmake
        DESTINATION ${package_dir})

set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH to_prefix /prefix/${pkgconfig_dir} /prefix)
foreach(library haloscope_exchange haloscope_exchange_abi)  # haloscope.pc and haloscope_abi.pc
  if(TARGET ${library})
    string(REPLACE _exchange "" package ${library})
    configure_file(${PROJECT_SOURCE_DIR}/cmake/haloscope.pc.in ${PROJECT_BINARY_DIR}/${package}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${package}.pc DESTINATION ${pkgconfig_dir})
  endif()
endforeach()
