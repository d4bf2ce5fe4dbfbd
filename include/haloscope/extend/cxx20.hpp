// Check of the C++ standard, included first by every C++ header of Haloscope: a compiler that is set to an older
// standard prints one clear line.
#pragma once

#if __cplusplus < 202002L && !(defined(_MSVC_LANG) && _MSVC_LANG >= 202002L)
#error \
    "This C++ header of Haloscope needs C++20: compile with -std=c++20; haloscope/cxx11.hpp and the C interface, \
haloscope/exchange.h, are for older standards"
#include "haloscope/nothing more is compiled"  // ends the compilation before hundreds of other errors
#endif
