# The network of an emulated cluster (haloscope lab): a separate program, and a library of its tested parts.
add_library(haloscope_lab STATIC src/cluster/wire.cpp)
target_include_directories(haloscope_lab PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
target_link_libraries(haloscope_lab PRIVATE haloscope_flags)
add_executable(haloscope-delay-line src/cluster/main.cpp)
target_link_libraries(haloscope-delay-line PRIVATE haloscope_lab haloscope_flags)
harden(haloscope_lab)
harden(haloscope-delay-line)
