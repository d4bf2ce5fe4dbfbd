// Scalar types of kernels.
#pragma once

#include "haloscope/extend/cxx20.hpp"

#include <cstdint>

#include "haloscope/extend/words.hpp"

namespace haloscope {

enum class Real : std::uint8_t { f64, f32 };
HALOSCOPE_WORDS(Real, "scalar type", "f64", "f32");

}  // namespace haloscope
