#pragma once

#include <cstdint>

namespace haloscope::test {

/// Calls of operator new in this process so far.
std::int64_t allocations();

}  // namespace haloscope::test
