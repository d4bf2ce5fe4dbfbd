# Back ends of real devices: one source each, compiled only with its option on. No contraction of multiplications and
# additions, so that a device computes the bits of the CPU. CUDA 13 needs CMake 3.28 or newer.
if(HALOSCOPE_CUDA)
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80 90)
  endif()
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
  target_sources(haloscope PRIVATE src/haloscope/device/cuda.cu)
  set_source_files_properties(src/haloscope/device/cuda.cu PROPERTIES COMPILE_OPTIONS "-fmad=false")
  set_target_properties(haloscope PROPERTIES CUDA_STANDARD 20 CUDA_ARCHITECTURES "${CMAKE_CUDA_ARCHITECTURES}")
  target_compile_definitions(haloscope PRIVATE HALOSCOPE_CUDA=1)
  target_link_libraries(haloscope PUBLIC CUDA::cudart_static ${CMAKE_DL_LIBS})  # runs, without a device, where no CUDA is installed
endif()
if(HALOSCOPE_HIP)
  # By hipcc itself: CMake's language HIP needs a whole ROCm installation, with its package files.
  set(HALOSCOPE_HIP_ARCHITECTURES gfx90a CACHE STRING "AMD GPUs to compile for")
  find_program(HALOSCOPE_HIPCC hipcc REQUIRED)
  find_library(HALOSCOPE_HIP_LIBRARY amdhip64 REQUIRED)
  list(TRANSFORM HALOSCOPE_HIP_ARCHITECTURES PREPEND --offload-arch= OUTPUT_VARIABLE hip_architectures)
  set(hip_source ${PROJECT_SOURCE_DIR}/src/haloscope/device/hip.hip)
  set(hip_object ${PROJECT_BINARY_DIR}/hip.o)
  add_custom_command(
    OUTPUT ${hip_object} DEPFILE ${hip_object}.d DEPENDS ${hip_source} VERBATIM
    COMMAND ${HALOSCOPE_HIPCC} ${hip_architectures} -std=c++20 -O3 -fPIC -ffp-contract=off -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/src -I${PROJECT_BINARY_DIR}/generated
            -MD -MF ${hip_object}.d -x hip -c ${hip_source} -o ${hip_object})
  target_sources(haloscope PRIVATE ${hip_object})
  target_compile_definitions(haloscope PRIVATE HALOSCOPE_HIP=1)
  target_link_libraries(haloscope PUBLIC ${HALOSCOPE_HIP_LIBRARY})
endif()
