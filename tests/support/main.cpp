// Runs GoogleTest with the apps of this build.
#include <gtest/gtest.h>

#include "haloscope/apps/built_in.hpp"

int main(int argc, char** argv) {
  haloscope::add_built_in_apps();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
