// haloscope-rank on imitated devices with the faults in HALOSCOPE_TEST_DEVICE.
#include "faulty_device.hpp"
#include "haloscope/extend/main.hpp"

int main(int argc, char** argv) {
  haloscope::test::imitate_as_environment_says();
  return haloscope::rank_main(argc, argv);
}
