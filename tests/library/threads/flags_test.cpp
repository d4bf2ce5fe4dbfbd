// The flag protocols of shared memory between ranks that are threads. The data between the flags is plain memory, so a
// missing release or acquire is a race that ThreadSanitizer reports, and a wrong count gives wrong values.
#include "haloscope/transport/shared/flags.hpp"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace haloscope {
namespace {

constexpr int length = 40, messages = 300;

/// One message from a rank to its neighbour, sent again and again.
struct Channel {
  alignas(flags_apart) Flag announced = 0;
  alignas(flags_apart) Flag granted = 0;
  std::array<std::array<std::uint64_t, length>, 2> memory{};  ///< the halo, the field, or the two buffers
  FlagSender sender() { return {&granted, &announced}; }
  FlagReceiver receiver() { return {&announced, &granted}; }
};

/// A rank's own clock of delays.
class Delays {
 public:
  explicit Delays(unsigned seed) : random_(seed) {}
  void operator()() {
    if (random_() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random_() % 60));
  }

 private:
  std::minstd_rand random_;
};

template <class Ready>
void until(Ready ready) {
  for (Spin spin(true); !ready();) spin.again();
}

std::uint64_t value(int rank, std::uint64_t n, int i) { return (n * 64 + rank) * length + i; }

using Body = std::function<void(int rank, Channel& out, Channel& in, Delays& delay)>;

/// Ranks in a ring, each sending to the next one and receiving from the one before.
void run_ring(int ranks, const Body& body) {
  std::vector<std::unique_ptr<Channel>> channels;
  for (int r = 0; r < ranks; ++r) channels.push_back(std::make_unique<Channel>());
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      Delays delay(17 * ranks + r);
      body(r, *channels[r], *channels[(r + ranks - 1) % ranks], delay);
    });
  for (auto& t : threads) t.join();
}

void write(std::array<std::uint64_t, length>& to, int rank, std::uint64_t n) {
  for (int i = 0; i < length; ++i) to[i] = value(rank, n, i);
}

int wrong(const std::array<std::uint64_t, length>& from, int rank, std::uint64_t n) {
  int count = 0;
  for (int i = 0; i < length; ++i) count += from[i] != value(rank, n, i);
  return count;
}

class Flags : public testing::TestWithParam<int> {
 protected:
  int before(int rank) const { return (rank + GetParam() - 1) % GetParam(); }
};

TEST_P(Flags, SE1_PushStoresOnlyIntoHalosThatAreFreeAndAreReadWhole) {
  std::atomic<int> errors = 0;
  run_ring(GetParam(), [&](int rank, Channel& out, Channel& in, Delays& delay) {
    FlagSender sender = out.sender();
    FlagReceiver receiver = in.receiver();
    for (std::uint64_t n = 1; n <= messages; ++n) {
      in.memory[0].fill(~std::uint64_t{0});  // poisoned before it is granted
      receiver.grant(n);
      delay();
      until([&] { return sender.may_push(n); });
      write(out.memory[0], rank, n);
      sender.announce(n);
      delay();
      until([&] { return receiver.arrived(n); });
      errors += wrong(in.memory[0], before(rank), n);
      delay();
    }
  });
  EXPECT_EQ(errors, 0);
}

TEST_P(Flags, SE1_PullReadsOnlyWhatIsReadyAndIsOverwrittenOnlyAfterwards) {
  std::atomic<int> errors = 0;
  run_ring(GetParam(), [&](int rank, Channel& out, Channel& in, Delays& delay) {
    FlagSender sender = out.sender();
    FlagReceiver receiver = in.receiver();
    for (std::uint64_t n = 1; n <= messages; ++n) {
      write(out.memory[0], rank, n);
      sender.announce(n);
      delay();
      until([&] { return receiver.arrived(n); });
      errors += wrong(in.memory[0], before(rank), n);
      delay();
      receiver.grant(n);
      until([&] { return sender.was_read(n); });
    }
  });
  EXPECT_EQ(errors, 0);
}

TEST_P(Flags, SE4_PackedAlternatesTwoBuffersWithoutOverwritingUnreadOnes) {
  std::atomic<int> errors = 0;
  run_ring(GetParam(), [&](int rank, Channel& out, Channel& in, Delays& delay) {
    FlagSender sender = out.sender();
    FlagReceiver receiver = in.receiver();
    for (std::uint64_t n = 1; n <= messages; ++n) {
      write(out.memory[buffer_of(n)], rank, n);
      sender.announce(n);
      delay();
      until([&] { return receiver.arrived(n); });
      delay();
      errors += wrong(in.memory[buffer_of(n)], before(rank), n);
      receiver.grant(n);
      until([&] { return sender.may_pack_after(n); });
    }
  });
  EXPECT_EQ(errors, 0);
}

/// A sender that only the flags hold back: it runs ahead as far as they let it.
TEST_P(Flags, SE4_PackedSenderIsAtMostTwoMessagesAhead) {
  std::atomic<int> errors = 0, furthest = 0;
  std::atomic<std::uint64_t> read = 0;
  Channel channel;
  std::thread receiver([&] {
    Delays delay(3);
    FlagReceiver end = channel.receiver();
    for (std::uint64_t n = 1; n <= messages; ++n) {
      until([&] { return end.arrived(n); });
      delay();
      errors += wrong(channel.memory[buffer_of(n)], 0, n);
      read = n;
      end.grant(n);
    }
  });
  FlagSender end = channel.sender();
  for (std::uint64_t n = 1; n <= messages; ++n) {
    write(channel.memory[buffer_of(n)], 0, n);
    end.announce(n);
    furthest = std::max<int>(furthest, static_cast<int>(n - read));
    until([&] { return end.may_pack_after(n); });
  }
  receiver.join();
  EXPECT_EQ(errors, 0);
  EXPECT_LE(furthest, 2);
}

INSTANTIATE_TEST_SUITE_P(Ranks, Flags, testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace haloscope
