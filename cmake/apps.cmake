# The library of this build's apps and of the kernels' machinery, without MPI.
haloscope_library(haloscope_apps ROOT lab DIRS kernels)
target_link_libraries(haloscope_apps PUBLIC haloscope_core)
foreach(isa ${haloscope_isas})
  haloscope_compile_for_isa(${isa} src/lab/haloscope/kernels/isa_${isa}.cpp)
endforeach()
get_property(targets GLOBAL PROPERTY haloscope_kernels)
foreach(target ${targets})
  target_sources(haloscope_apps PRIVATE $<TARGET_OBJECTS:${target}> $<TARGET_PROPERTY:${target},INTERFACE_SOURCES>)
endforeach()
get_property(names GLOBAL PROPERTY haloscope_apps)
set(declarations "")
set(calls "")
foreach(name ${names})
  string(APPEND declarations "const App& ${name}_app();\n")
  string(APPEND calls "  add_app(${name}_app());\n")
endforeach()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/built_in.cpp @ONLY CONTENT [[
// The apps of this build.
#include "haloscope/extend/app.hpp"
#include "haloscope/apps/built_in.hpp"

namespace haloscope {
@declarations@
static bool add_all() {
@calls@  return true;
}
void add_built_in_apps() { static const bool added = add_all(); (void)added; }
}  // namespace haloscope
]])
target_sources(haloscope_apps PRIVATE ${PROJECT_BINARY_DIR}/generated/built_in.cpp)
