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
  install(TARGETS haloscope-rank)
endif()
install(TARGETS ${exported} EXPORT haloscopeTargets)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/haloscope DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/haloscope)
install(EXPORT haloscopeTargets NAMESPACE haloscope:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/haloscopeConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/haloscopeConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/haloscopeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/haloscopeConfig.cmake ${PROJECT_BINARY_DIR}/haloscopeConfigVersion.cmake
        DESTINATION ${package_dir})

set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH to_prefix /prefix/${pkgconfig_dir} /prefix)
configure_file(${PROJECT_SOURCE_DIR}/cmake/haloscope.pc.in ${PROJECT_BINARY_DIR}/haloscope.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/haloscope.pc DESTINATION ${pkgconfig_dir})
