// hydro3d on a device whose fields pass through staging buffers.
#include "staging_rig.hpp"

namespace haloscope::test {
namespace {

TEST(DeviceHatch, ItsSizeChangesNoByteOfManyFieldsOnCellsAndNodes) {
  Choice c = device_choice({"hydro3d", "fused", Real::f64, {9, 8, 11}}, false);
  c.grid.periodic = {false, false, false};
  c.set["initial"] = "random";
  expect_same_through(c, {3000, 100000, usual_hatch_bytes});
}

}  // namespace
}  // namespace haloscope::test
