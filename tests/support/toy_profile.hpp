// The machine profile of tests.
#pragma once

#include <string>

namespace haloscope::test {

inline std::string toy_profile() { return HALOSCOPE_DATA "/../../../tests/support/profiles/toy.json"; }

}  // namespace haloscope::test
