# Headers of all apps' SIMD kernels (apps/NAME/kernels.hpp) and kernels of devices (apps/NAME/device.hpp): one of each
# kind includes them all and lists their names, so that an app is registered by its folder alone.
foreach(kind kernels device)
  file(GLOB found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/haloscope/apps/*/${kind}.hpp)
  set(includes "")
  set(calls "")
  foreach(header ${found})
    cmake_path(GET header PARENT_PATH folder)
    cmake_path(GET folder FILENAME app)
    string(APPEND includes "#include \"haloscope/apps/${app}/${kind}.hpp\"\n")
    string(APPEND calls " ADD(${app})")
  endforeach()
  string(TOUPPER ${kind} KIND)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/haloscope/apps/${kind}.hpp CONTENT
       "#pragma once\n\n${includes}\n#define HALOSCOPE_APPS_WITH_${KIND}(ADD)${calls}\n" @ONLY)
endforeach()
