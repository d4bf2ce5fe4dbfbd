// Back end `hip`.
#define HALOSCOPE_BACKEND hip
#include "haloscope/device/gpu_backend.hpp"

namespace haloscope::device {
Backend hip_backend() { return hip::backend("hip"); }
}  // namespace haloscope::device
