// Data that pass staging buffers, in either direction and in parts of any size, arrive as they were sent.
#include "haloscope/device/staging_buffers.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "device_here.hpp"

namespace haloscope::device::test {
namespace {

/// Parts of 1 byte up to the size of a staging buffer, in turn.
StagingBuffers::Cut cut_for(const StagingBuffers& hatch) {
  return [most = hatch.bytes(), turn = std::size_t{0}](const ByteRange& rest) mutable {
    const std::size_t bytes = std::min(rest.size(), 1 + turn++ * 7 % most);
    return ByteRange{rest.begin, rest.begin + bytes};
  };
}

std::vector<std::byte> bytes_of(const std::vector<int>& numbers) {
  std::vector<std::byte> bytes;
  for (const int number : numbers) bytes.push_back(static_cast<std::byte>(number * 37));
  return bytes;
}

void expect_same_after_a_round_trip(Device& device) {
  const auto stream = device.stream();
  const std::vector<std::byte> sent = bytes_of(counted(1009));
  for (const std::size_t size : {std::size_t{1}, std::size_t{64}, std::size_t{2000}}) {
    StagingBuffers hatch(device, size);
    const Buffer memory = on_device(device, std::vector<std::byte>(sent.size()));
    hatch.send(*stream, memory.data(), {3, 1000}, cut_for(hatch), [&](const ByteRange& part, std::byte* here) {
      std::copy_n(sent.begin() + static_cast<std::ptrdiff_t>(part.begin), part.size(), here);
    });
    std::vector<std::byte> expected(sent.size()), found(sent.size());
    std::copy(sent.begin() + 3, sent.begin() + 1000, expected.begin() + 3);
    EXPECT_EQ(from_device<std::byte>(device, memory), expected);
    std::size_t next = 5;
    hatch.fetch(*stream, memory.data(), {5, 900}, cut_for(hatch), [&](const ByteRange& part, const std::byte* here) {
      EXPECT_EQ(part.begin, next);
      next = part.end;
      std::copy_n(here, part.size(), found.begin() + static_cast<std::ptrdiff_t>(part.begin));
      return true;
    });
    EXPECT_EQ(next, 900u);
    EXPECT_TRUE(std::equal(found.begin() + 5, found.begin() + 900, expected.begin() + 5));
  }
}

TEST(StagingBuffers, BytesComeBackAsTheyWereSent) { expect_same_after_a_round_trip(here()); }

TEST(StagingBuffers, BytesComeBackAsTheyWereSentWhereStreamsAreSlow) {
  const Imitated slow("delay_us=300");
  expect_same_after_a_round_trip(*Imitated::open());
}

TEST(StagingBuffers, WhoeverStopsLookingFindsItReadyAgain) {
  const Imitated slow("delay_us=300");
  const auto device = Imitated::open();
  const auto stream = device->stream();
  const std::vector<std::byte> sent = bytes_of(counted(100));
  const Buffer memory = on_device(*device, sent);
  StagingBuffers hatch(*device, 10);
  const auto cut = [](const ByteRange& rest) { return ByteRange{rest.begin, rest.begin + 10}; };
  int looks = 0;
  hatch.fetch(*stream, memory.data(), {0, 100}, cut, [&](const ByteRange&, const std::byte*) { return ++looks < 3; });
  EXPECT_EQ(looks, 3);
  const auto ones = [](const ByteRange& part, std::byte* to) { std::fill_n(to, part.size(), std::byte{1}); };
  hatch.send(*stream, memory.data(), {20, 60}, cut, ones);
  std::vector<std::byte> expected = sent;
  std::fill(expected.begin() + 20, expected.begin() + 60, std::byte{1});
  EXPECT_EQ(from_device<std::byte>(*device, memory), expected);
}

TEST(StagingBuffers, NothingPassesWhereThereIsNothing) {
  StagingBuffers hatch(here(), 10);
  const auto stream = here().stream();
  const auto never = [](const ByteRange& rest) { return ADD_FAILURE(), rest; };
  hatch.send(*stream, nullptr, {7, 7}, never, [](const ByteRange&, std::byte*) { ADD_FAILURE(); });
  hatch.fetch(*stream, nullptr, {7, 7}, never, [](const ByteRange&, const std::byte*) { return ADD_FAILURE(), false; });
}

}  // namespace
}  // namespace haloscope::device::test
