// haloscope-rank on imitated devices with the faults in HALOSCOPE_TEST_DEVICE.
#include "faulty_device.hpp"
#include "haloscope/extend/main.hpp"
#include "haloscope/rank/request_kinds.hpp"

int main(int argc, char** argv) {
  haloscope::test::imitate_from_environment();
  haloscope::add_request_kinds_of_build();
  return haloscope::rank_main(argc, argv);
}
