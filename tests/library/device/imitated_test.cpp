// Imitated devices as programs use them: memory that is recognised by its address, and streams as a driver orders them.
#include "haloscope/imitated.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "faulty_device.hpp"
#include "haloscope/device/device.hpp"
#include "haloscope/error.hpp"

namespace haloscope {
namespace {

TEST(ImitatedDevice, MemoryIsKnownByItsAddress) {
  const test::Imitated two("devices=2");
  constexpr std::size_t bytes = 3 << 12;
  for (const int device : {0, 1}) {
    auto* const memory = static_cast<std::byte*>(imitated::allocate(bytes, device));
    for (const std::byte* at : {memory, memory + 1, memory + bytes - 1}) {
      const device::Place place = device::place_of(at);
      ASSERT_NE(place.backend, nullptr);
      EXPECT_EQ(place.backend->name, "host");
      EXPECT_EQ(place.index, device);
    }
    imitated::release(memory);
    EXPECT_EQ(device::place_of(memory).backend, nullptr);
  }
  const std::vector<double> on_host(5);
  EXPECT_EQ(device::place_of(on_host.data()).backend, nullptr);
  EXPECT_THROW(imitated::release(const_cast<double*>(on_host.data())), UsageError);
  EXPECT_THROW(imitated::allocate(bytes, 2), UsageError);
  EXPECT_THROW(imitated::make_stream(2), UsageError);
  EXPECT_THROW(imitated::free_stream({}), UsageError);
}

/// Nothing else orders the writes of these kernels.
TEST(ImitatedDevice, TheDefaultStreamComesAfterAllOthersAndBeforeWhatTheyGetNext) {
  const DeviceStream one = imitated::make_stream(), two = imitated::make_stream();
  std::vector<int> order;
  const auto add = [&](int number) {
    return [&, number] {
      std::this_thread::sleep_for(std::chrono::microseconds(number < 3 ? 500 : 0));
      order.push_back(number);
    };
  };
  imitated::launch(one, add(1));
  imitated::launch({}, add(2));
  imitated::launch(two, add(3));
  imitated::launch({}, add(4));
  imitated::finish({});
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 4}));
  imitated::free_stream(one);
  imitated::free_stream(two);
}

}  // namespace
}  // namespace haloscope
