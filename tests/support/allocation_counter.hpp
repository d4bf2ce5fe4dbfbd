#pragma once

#include <cstdint>

namespace haloscope::test {

/// Calls of operator new in this process so far.
std::int64_t allocations();

/// From now on, operator new finds no memory; or, with false, finds it again.
void refuse_allocations(bool refuse);

/// Bytes that it has returned and that have not been deleted yet.
std::int64_t held_bytes();
/// The max of them since the last call with `again`.
std::int64_t most_held_bytes(bool again = false);

}  // namespace haloscope::test
