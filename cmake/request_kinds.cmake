# haloscope_add_request_kind(NAME SOURCES file...): adds a kind of request that haloscope-rank serves besides the built-in
# ones. A source defines `const RequestKind& haloscope::NAME_kind()`.
function(haloscope_add_request_kind name)
  cmake_parse_arguments(arg "" "" "SOURCES" ${ARGN})
  set_property(GLOBAL APPEND PROPERTY haloscope_request_kinds ${name})
  foreach(source ${arg_SOURCES})
    cmake_path(ABSOLUTE_PATH source)
    set_property(GLOBAL APPEND PROPERTY haloscope_request_kind_sources ${source})
  endforeach()
endfunction()

# Adds the library of these kinds and of add_request_kinds_of_build(), which registers them.
function(haloscope_make_request_kinds)
  get_property(names GLOBAL PROPERTY haloscope_request_kinds)
  get_property(sources GLOBAL PROPERTY haloscope_request_kind_sources)
  set(declarations "")
  set(calls "")
  foreach(name ${names})
    string(APPEND declarations "const RequestKind& ${name}_kind();\n")
    string(APPEND calls "  add_request_kind(${name}_kind());\n")
  endforeach()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/request_kinds.cpp @ONLY CONTENT [[
// The kinds of requests of this build besides the built-in ones.
#include "haloscope/rank/request_kinds.hpp"

namespace haloscope {
@declarations@
void add_request_kinds_of_build() {
@calls@}
}  // namespace haloscope
]])
  add_library(haloscope_request_kinds STATIC ${sources} ${PROJECT_BINARY_DIR}/generated/request_kinds.cpp)
  target_include_directories(haloscope_request_kinds PRIVATE ${PROJECT_SOURCE_DIR}/studies ${PROJECT_BINARY_DIR}/generated)
  target_link_libraries(haloscope_request_kinds PUBLIC haloscope_rank PRIVATE haloscope_flags)
  set_target_properties(haloscope_request_kinds PROPERTIES UNITY_BUILD ON)
  compile_quickly(haloscope_request_kinds)
  harden(haloscope_request_kinds)
endfunction()
