// A device back end that is not part of this library, registered by its name: its devices count their openings.
#include "haloscope/core/backend_names.hpp"
#include "haloscope/device/device.hpp"
#include "step_rig.hpp"

namespace haloscope::test {
namespace {

int opened = 0;

std::unique_ptr<device::Device> open_counted(int index) {
  ++opened;
  return device::find_backend("host").open(index);
}

const device::Backend counted_backend{"test-counted", [] { return std::string(); }, [] { return 1; }, open_counted,
                                      true};

class AddedBackend : public testing::Test {
 protected:
  static void SetUpTestSuite() { device::add_backend(counted_backend); }
};

TEST_F(AddedBackend, HoldsTheFieldsOfAChoiceThatNamesIt) {
  Choice c = flat_choice("laplace2d", {true, false}, {29, 23, 1});
  c.strategy = "reference";
  const std::uint64_t expected = checksum_of(c);
  c.strategy = "ordered/staged";
  c.device = "test-counted";
  for (const char* schedule : {"bulk", "streams"}) {
    c.schedule = schedule;
    const int before = opened;
    EXPECT_EQ(checksum_of(c), expected) << schedule;
    EXPECT_EQ(opened, before + 1);
  }
}

TEST_F(AddedBackend, IsListedAndFoundOnce) {
  EXPECT_EQ(backend_names().back(), "test-counted");
  EXPECT_EQ(device::find_backend("test-counted").count(), 1);
  EXPECT_THROW(device::add_backend(counted_backend), UsageError);
}

}  // namespace
}  // namespace haloscope::test
