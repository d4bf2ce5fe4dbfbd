# The module haloscope for Fortran. Its .mod file belongs to the compiler that builds it.
include(CheckLanguage)
if(HALOSCOPE_FORTRAN)
  check_language(Fortran)
endif()
if(CMAKE_Fortran_COMPILER)
  enable_language(C Fortran)
  # Messages at run time name the source, so the compiler gets its name without the path of the checkout.
  configure_file(src/bindings/fortran/haloscope.f90 ${PROJECT_BINARY_DIR}/haloscope.f90 COPYONLY)
  set(CMAKE_Fortran_PREPROCESS OFF)
  set(CMAKE_Fortran_COMPILER_LAUNCHER ${PROJECT_SOURCE_DIR}/cmake/relative.sh ${CMAKE_Fortran_COMPILER_LAUNCHER})
  add_library(haloscope_fortran SHARED ${PROJECT_BINARY_DIR}/haloscope.f90 src/bindings/fortran/array.c)
  set_target_properties(haloscope_fortran PROPERTIES Fortran_MODULE_DIRECTORY ${PROJECT_BINARY_DIR}/fortran)
  target_include_directories(haloscope_fortran PUBLIC $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/fortran>
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/haloscope/fortran>)
  target_link_libraries(haloscope_fortran PUBLIC haloscope_exchange)
  version_library(haloscope_fortran)
  if(TARGET haloscope_exchange_abi)  # the same library on the other library of exchanges
    add_library(haloscope_fortran_abi SHARED ${PROJECT_BINARY_DIR}/haloscope.f90 src/bindings/fortran/array.c)
    set_target_properties(haloscope_fortran_abi PROPERTIES Fortran_MODULE_DIRECTORY ${PROJECT_BINARY_DIR}/fortran_abi)
    target_include_directories(haloscope_fortran_abi
                               INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/haloscope/fortran>)
    target_link_libraries(haloscope_fortran_abi PUBLIC haloscope_exchange_abi PRIVATE $<BUILD_INTERFACE:haloscope_mpi_abi>)
    version_library(haloscope_fortran_abi)
  endif()
endif()
