// Every C++ header of Haloscope begins with this one: one clear line for a compiler that is set to an older standard.
#pragma once

#if __cplusplus < 202002L && !(defined(_MSVC_LANG) && _MSVC_LANG >= 202002L)
#error \
    "The C++ headers of Haloscope need C++20: compile with -std=c++20; older standards have the C \
interface, haloscope/exchange.h"
#include "haloscope/nothing more is compiled"  // this ends the compilation, so that no hundred errors follow
#endif
