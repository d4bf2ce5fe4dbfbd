// Back end `cuda`.
#define HALOSCOPE_BACKEND cuda
#include "haloscope/device/gpu_backend.hpp"

namespace haloscope::device {
Backend cuda_backend() { return cuda::backend("cuda"); }
}  // namespace haloscope::device
