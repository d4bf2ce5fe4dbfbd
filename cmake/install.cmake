# Destinations of `cmake --install`, and the package that `find_package(haloscope)` finds.
# Components are the languages and the programs. For each component, the target haloscope_COMPONENT_files builds its
# installed files; haloscope_installed builds the files of all.
include(CMakePackageConfigHelpers)
add_custom_target(haloscope_installed)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/haloscope)

# install_component(NAME TARGET...): installs programs and libraries as a component; libraries are haloscope::TARGET of
# the package, without the prefix haloscope_.
function(install_component component)
  set(targets)
  foreach(target ${ARGN})
    if(TARGET ${target})
      list(APPEND targets ${target})
    endif()
  endforeach()
  add_custom_target(haloscope_${component}_files DEPENDS ${targets})
  add_dependencies(haloscope_installed haloscope_${component}_files)
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    set(folders)
    if(NOT type STREQUAL "STATIC_LIBRARY")
      if(target MATCHES "fortran")
        set(folders "$ORIGIN")  # the folder of the library that it wraps
      elseif(target MATCHES "_abi$" AND NOT HALOSCOPE_MPI_RUN_PATH)
        set(folders ${mpi_abi_folders})
      endif()
      set_run_path(${target} ${folders})
    endif()
    if(NOT type STREQUAL "EXECUTABLE")
      string(REGEX REPLACE "^haloscope_" "" name ${target})
      set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
      if(NOT TARGET haloscope::${name})
        add_library(haloscope::${name} ALIAS ${target})
      endif()
    endif()
  endforeach()
  if(component STREQUAL "programs")
    install(TARGETS ${targets} RUNTIME COMPONENT programs LIBRARY COMPONENT programs)
  elseif(targets)
    install(TARGETS ${targets} EXPORT haloscope_${component} COMPONENT ${component})
    install(EXPORT haloscope_${component} NAMESPACE haloscope:: DESTINATION ${package_dir} COMPONENT ${component}
            FILE haloscope_${component}.cmake)
  endif()
endfunction()

install_component(c haloscope_exchange haloscope_exchange_abi)
install_component(cxx haloscope_core haloscope_model haloscope_app haloscope_apps haloscope haloscope_rank)
install_component(fortran haloscope_fortran haloscope_fortran_abi)
install_component(programs haloscope-rank haloscope-delay-line haloscope_bridge)

set(headers ${PROJECT_SOURCE_DIR}/include/haloscope)
install(DIRECTORY ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT c FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_BINARY_DIR}/generated/haloscope/which_mpi.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/haloscope COMPONENT c)
install(FILES ${headers}/cxx11.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/haloscope COMPONENT c)
install(DIRECTORY ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT cxx
        PATTERN "*.h" EXCLUDE PATTERN "cxx11.hpp" EXCLUDE)
# haloscope_add_app() compiles the kernels of apps against headers that no other program includes.
set(app_headers ${CMAKE_INSTALL_DATAROOTDIR}/haloscope/app)
foreach(folder library/haloscope/core library/haloscope/device library/haloscope/field library/haloscope/pack
        lab/haloscope/kernels)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/${folder} DESTINATION ${app_headers}/haloscope COMPONENT cxx
          FILES_MATCHING PATTERN "*.hpp")
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/cmake/haloscope_add_app.cmake DESTINATION ${package_dir} COMPONENT cxx)
if(TARGET haloscope_fortran)
  install(DIRECTORY ${PROJECT_BINARY_DIR}/fortran/
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/haloscope/fortran COMPONENT fortran)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/src/bindings/python/bridge.h
        DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/haloscope COMPONENT programs)
set(licenses ${CMAKE_INSTALL_DATAROOTDIR}/licenses/haloscope)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/licenses/ DESTINATION ${licenses} COMPONENT c)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${licenses} COMPONENT c)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DOCDIR}
        COMPONENT docs PATTERN "site" EXCLUDE PATTERN "__pycache__" EXCLUDE)
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR}
        COMPONENT docs)
if(SKBUILD)  # a wheel has the command `haloscope`, and puts these into the share/ of its environment
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(man_pages ${PROJECT_BINARY_DIR}/man_pages)
  file(MAKE_DIRECTORY ${man_pages})
  add_custom_target(haloscope_man_pages
    COMMAND ${CMAKE_COMMAND} -E env HALOSCOPE_BUILD=${PROJECT_BINARY_DIR} ${Python3_EXECUTABLE}
            ${PROJECT_SOURCE_DIR}/packaging/man_pages.py ${man_pages})
  add_dependencies(haloscope_man_pages haloscope_bridge)
  add_dependencies(haloscope_programs_files haloscope_man_pages)
  install(DIRECTORY ${man_pages}/ DESTINATION ${SKBUILD_DATA_DIR}/share/man/man1 COMPONENT programs)
  set(completion ${PROJECT_SOURCE_DIR}/packaging/completion)
  install(FILES ${completion}/haloscope COMPONENT programs
          DESTINATION ${SKBUILD_DATA_DIR}/share/bash-completion/completions)
  install(FILES ${completion}/_haloscope COMPONENT programs DESTINATION ${SKBUILD_DATA_DIR}/share/zsh/site-functions)
  install(FILES ${completion}/haloscope.fish COMPONENT programs
          DESTINATION ${SKBUILD_DATA_DIR}/share/fish/vendor_completions.d)
endif()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/haloscopeConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/haloscopeConfig.cmake INSTALL_DESTINATION ${package_dir}
                              PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/haloscopeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/haloscopeConfig.cmake ${PROJECT_BINARY_DIR}/haloscopeConfigVersion.cmake
        DESTINATION ${package_dir} COMPONENT c)

include(cmake/pkg_config.cmake)
