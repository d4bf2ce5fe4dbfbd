// Work that is enqueued behind a StreamBlocker is there before the stream comes to it.
#include "haloscope/device/stream_blocker.hpp"

#include <gtest/gtest.h>

#include "device_here.hpp"

namespace haloscope::device {
namespace {

TEST(StreamBlocker, KeepsAStreamBusyUntilMoreHasBeenGivenAndEndsByItself) {
  Device& device = test::here();
  const auto stream = device.stream();
  const auto begin = device.event(), end = device.event();
  const StreamBlocker hold(device, 0.3);
  for (int turn = 0; turn < 2; ++turn) {
    hold.on(*stream);
    stream->record(*begin);
    stream->record(*end);
    EXPECT_FALSE(begin->reached());  // within 0.3 s
    end->wait();
    EXPECT_TRUE(begin->reached());
  }
}

}  // namespace
}  // namespace haloscope::device
