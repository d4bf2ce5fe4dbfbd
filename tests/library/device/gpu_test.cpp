// Errors that back ends of GPUs leave in their runtimes. Runs without a GPU too, where every call fails.
#include <gtest/gtest.h>

#include <utility>

#include "haloscope/device/device.hpp"
#include "haloscope/error.hpp"

// Functions of the runtimes that the library was built for.
extern "C" {
int cudaGetLastError() __attribute__((weak));
int hipGetLastError() __attribute__((weak));
}

namespace haloscope::device {
namespace {

/// A runtime stores the code of a failed call until the next query, which may be the user's, after a successful launch.
TEST(GpuBackends, NoFailureIsLeftForOthersToFind) {
  int looked = 0;
  using Runtime = std::pair<const char*, int (*)()>;
  for (const auto& [name, last_error] : {Runtime{"cuda", cudaGetLastError}, Runtime{"hip", hipGetLastError}}) {
    if (last_error == nullptr) continue;
    last_error();
    if (last_error() != 0) continue;  // without a driver, this call fails as all others do
    ++looked;
    for (const Backend& backend : backends()) {
      if (backend.name != name) continue;
      (void)backend.absent();
      EXPECT_EQ(last_error(), 0) << name;
      (void)backend.count();
      EXPECT_EQ(last_error(), 0) << name;
      EXPECT_THROW((void)backend.open(1000), Error);
      EXPECT_EQ(last_error(), 0) << name;
    }
  }
  if (looked == 0) GTEST_SKIP() << "no back end of cards, or no driver of one";
}

}  // namespace
}  // namespace haloscope::device
