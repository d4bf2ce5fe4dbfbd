// Names of calls that differ between CUDA and HIP.
#pragma once

#if defined(__HIPCC__)
#include <hip/hip_runtime.h>
#define HALOSCOPE_GPU(call) hip##call
#define HALOSCOPE_GPU_NAME "HIP"
#define HALOSCOPE_GPU_PROPERTIES hipDeviceProp_t
#define HALOSCOPE_GPU_MOST_SHARED hipDeviceAttributeMaxSharedMemoryPerBlock
#define HALOSCOPE_GPU_MULTIPROCESSORS hipDeviceAttributeMultiprocessorCount
#define HALOSCOPE_GPU_MAPPED (hipHostMallocMapped | hipHostMallocCoherent)
#define HALOSCOPE_GPU_NONCOHERENT (hipHostMallocMapped | hipHostMallocNonCoherent)
#else
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#define HALOSCOPE_GPU(call) cuda##call
#define HALOSCOPE_GPU_NAME "CUDA"
#define HALOSCOPE_GPU_PROPERTIES cudaDeviceProp
#define HALOSCOPE_GPU_MOST_SHARED cudaDevAttrMaxSharedMemoryPerBlockOptin
#define HALOSCOPE_GPU_MULTIPROCESSORS cudaDevAttrMultiProcessorCount
#define HALOSCOPE_GPU_MAPPED cudaHostAllocMapped
#define HALOSCOPE_GPU_NONCOHERENT cudaHostAllocMapped
#define cudaHostMalloc cudaHostAlloc
#define cudaHostFree cudaFreeHost
#endif
