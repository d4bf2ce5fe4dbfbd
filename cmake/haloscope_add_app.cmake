# haloscope_add_app(NAME SOURCES file... [KERNELS header] [DEVICE header])
#
# Makes the object library haloscope_app_NAME of an app: its SOURCES, its kernels of the CPU (KERNELS, compiled once per
# instruction set and chosen at run time) and of devices (DEVICE, compiled once per back end of this build). KERNELS
# defines `void add_NAME(KernelTable&, const char* isa)` in namespace haloscope::HALOSCOPE_ISA, DEVICE defines
# `void add_NAME(Kernels&)` in namespace haloscope::device::HALOSCOPE_BACKEND. The constant `haloscope::NAME_kernels`
# (haloscope/extend/app_kernels.hpp) combines both, for App::kernels. NAME is a C++ name.
set(haloscope_has_isas OFF)
if(HALOSCOPE_AVX AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(haloscope_has_isas ON)
endif()
set(haloscope_isas avx512 avx2 baseline)
set(haloscope_isa_avx512_flags -march=x86-64-v4 -mprefer-vector-width=512)
set(haloscope_isa_avx2_flags -march=x86-64-v3)
set(haloscope_isa_baseline_flags "")
set(haloscope_isa_avx512_has "defined(__AVX512F__) && defined(__AVX512VL__)")
set(haloscope_isa_avx2_has "defined(__AVX2__) && defined(__FMA__)")
set(haloscope_isa_baseline_has "1")

function(haloscope_add_app name)
  set_property(GLOBAL APPEND PROPERTY haloscope_apps ${name})
  haloscope_add_kernels(${name} ${ARGN})
endfunction()

# haloscope_add_kernels(NAME [SOURCES file...] [KERNELS header] [DEVICE header]): the same for kernels without an app.
# The program registers `NAME_kernels` by add_kernels().
function(haloscope_add_kernels name)
  cmake_parse_arguments(arg "" "KERNELS;DEVICE" "SOURCES" ${ARGN})
  if(NOT name MATCHES "^[A-Za-z_][A-Za-z_0-9]*$" OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "kernels of '${name}' (${ARGN}): give NAME, a C++ name, then SOURCES file..., and KERNELS header or "
                        "DEVICE header if it has kernels")
  endif()
  set(target haloscope_app_${name})
  add_library(${target} OBJECT EXCLUDE_FROM_ALL ${arg_SOURCES})
  set_property(GLOBAL APPEND PROPERTY haloscope_kernels ${target})
  target_link_libraries(${target} PRIVATE haloscope::app)
  set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${target})
  set(declarations "")
  set(isas "")
  set(backends "")
  if(arg_KERNELS)
    cmake_path(ABSOLUTE_PATH arg_KERNELS NORMALIZE OUTPUT_VARIABLE header)
    foreach(isa ${haloscope_isas})
      haloscope_isa_source(${name} ${header} ${isa} ${folder} file)
      target_sources(${target} PRIVATE ${file})
      string(APPEND declarations "const KernelTable* ${name}_kernels_${isa}();\n")
      string(APPEND isas " {\"${isa}\", ${name}_kernels_${isa}},")
    endforeach()
  endif()
  if(arg_DEVICE)
    cmake_path(ABSOLUTE_PATH arg_DEVICE NORMALIZE OUTPUT_VARIABLE header)
    set_property(GLOBAL APPEND PROPERTY haloscope_device_sources "${name}|${header}")
    foreach(backend ${haloscope_backends})
      haloscope_backend_source(${name} ${header} ${backend} ${folder} file)
      haloscope_compile_for(${target} ${backend} ${file})
      string(APPEND declarations "namespace device { void add_${name}_to_${backend}(Kernels&); }\n")
      string(APPEND backends " {\"${backend}\", device::add_${name}_to_${backend}},")
    endforeach()
  endif()
  if(arg_KERNELS OR arg_DEVICE)
    file(CONFIGURE OUTPUT ${folder}/kernels.cpp @ONLY CONTENT [[
// The kernels of @name@.
#include "haloscope/extend/app_kernels.hpp"

namespace haloscope {
@declarations@
extern const AppKernels @name@_kernels;
const AppKernels @name@_kernels{{{@isas@}}, {{@backends@}}};
}  // namespace haloscope
]])
    target_sources(${target} PRIVATE ${folder}/kernels.cpp)
  endif()
endfunction()

# Writes the translation unit of an app's kernels of the CPU for one instruction set into a folder.
function(haloscope_isa_source name header isa folder result)
  set(file ${folder}/${isa}.cpp)
  set(has "${haloscope_isa_${isa}_has}")
  file(CONFIGURE OUTPUT ${file} @ONLY CONTENT [[
// The kernels of @name@ for instruction set @isa@.
#include "haloscope/kernels/kernel_table.hpp"
#if @has@
#define HALOSCOPE_ISA @name@_@isa@
#include "@header@"

namespace haloscope {
static KernelTable filled() {
  KernelTable table;
  @name@_@isa@::add_@name@(table, "@isa@");
  return table;
}
const KernelTable* @name@_kernels_@isa@();
const KernelTable* @name@_kernels_@isa@() {
  static const KernelTable table = filled();
  return &table;
}
}  // namespace haloscope
#else
namespace haloscope {
const KernelTable* @name@_kernels_@isa@();
const KernelTable* @name@_kernels_@isa@() { return nullptr; }
}  // namespace haloscope
#endif
]])
  haloscope_compile_for_isa(${isa} ${file})
  set(${result} ${file} PARENT_SCOPE)
endfunction()

# Compiles a source of the calling folder for an instruction set.
function(haloscope_compile_for_isa isa file)
  if(haloscope_has_isas)
    set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${haloscope_isa_${isa}_flags}")
  endif()
endfunction()

# Writes the translation unit of an app's kernels of devices for one back end into a folder.
function(haloscope_backend_source name header backend folder result)
  set(launch gpu)
  set(ending cpp)
  if(backend STREQUAL "host")
    set(launch host)
  elseif(backend STREQUAL "cuda")
    set(ending cu)
  elseif(backend STREQUAL "hip")
    set(ending hip)
  endif()
  set(file ${folder}/${backend}.${ending})
  file(CONFIGURE OUTPUT ${file} @ONLY CONTENT [[
// The kernels of @name@ for devices of back end @backend@.
#define HALOSCOPE_BACKEND @backend@
#include "haloscope/device/@launch@_launch.hpp"
#include "@header@"

namespace haloscope::device {
void add_@name@_to_@backend@(Kernels&);
void add_@name@_to_@backend@(Kernels& kernels) { @backend@::add_@name@(kernels); }
}  // namespace haloscope::device
]])
  set(${result} ${file} PARENT_SCOPE)
endfunction()

# Adds a source of device code to a target, without contraction of multiplications and additions, so that a device gives
# the bits of the CPU. HIP is compiled directly by hipcc: CMake's language HIP needs a complete ROCm installation. The
# objects of an object library leave out what other compilers made, so its users get that as a source.
function(haloscope_compile_for target backend file)
  set(scope PRIVATE)
  if(backend STREQUAL "cuda" AND NOT CMAKE_CUDA_COMPILER)
    message(FATAL_ERROR "This Haloscope was built with CUDA, so kernels of devices are compiled for it too: name CUDA among "
                        "the languages of project(), or call enable_language(CUDA)")
  elseif(backend STREQUAL "hip")
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${target}/hip.o)
    file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${target})
    add_custom_command(
      OUTPUT ${object} DEPFILE ${object}.d DEPENDS ${file} VERBATIM
      COMMAND ${HALOSCOPE_HIPCC} ${haloscope_hip_architectures} -std=c++20 -O3 -fPIC -ffp-contract=off
              "-I$<JOIN:$<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>,;-I>"
              -MD -MF ${object}.d -x hip -c ${file} -o ${object} COMMAND_EXPAND_LISTS)
    set(file ${object})
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "OBJECT_LIBRARY")
      set(scope PUBLIC)
    endif()
  elseif(backend STREQUAL "cuda")
    set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "-fmad=false")
    set_target_properties(${target} PROPERTIES CUDA_STANDARD 20 CUDA_ARCHITECTURES "${CMAKE_CUDA_ARCHITECTURES}")
  endif()
  target_sources(${target} ${scope} ${file})
endfunction()
