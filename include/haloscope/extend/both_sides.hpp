#pragma once

#include "haloscope/extend/cxx20.hpp"

/// Marks functions that device kernels call too.
#if defined(__CUDACC__) || defined(__HIPCC__)
#define HALOSCOPE_ON_BOTH_SIDES __host__ __device__
#else
#define HALOSCOPE_ON_BOTH_SIDES
#endif
