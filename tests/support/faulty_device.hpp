// Devices of back end host with faults, which the back end itself does not have.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "haloscope/core/names.hpp"
#include "haloscope/device/host_stream.hpp"

namespace haloscope::test {

/// A stream sleeps for a random time up to `most_us` before each piece of work.
inline std::function<std::function<void()>(unsigned)> slow_streams(double most_us) {
  return [most_us](unsigned stream) {
    return [random = std::minstd_rand(stream), us = std::uniform_real_distribution<>(0, most_us)]() mutable {
      std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(us(random)));
    };
  };
}

/// Device `mortal` fails after this many copies and launches.
inline std::function<bool(int)> lost_device(int mortal, std::int64_t pieces) {
  return [mortal, left = std::make_shared<std::atomic<std::int64_t>>(pieces)](int device) {
    return device != mortal || left->fetch_sub(1) > 0;
  };
}

/// A block of a kernel that waits for the CPU sleeps for a random time up to `most_us` before it begins.
inline std::function<void(int)> slow_blocks(double most_us) {
  return [most_us](int block) {
    thread_local std::minstd_rand random(static_cast<unsigned>(block) + std::random_device{}());
    std::this_thread::sleep_for(
        std::chrono::duration<double, std::micro>(std::uniform_real_distribution<>(0, most_us)(random)));
  };
}

/// A capture is refused its call of this number, counted from 0 over all captures.
inline std::function<bool()> refused_call(std::int64_t number) {
  return [left = std::make_shared<std::atomic<std::int64_t>>(number)] { return left->fetch_sub(1) != 0; };
}

/// The thread that calls it is late by a random time, up to 1 ms, on one call in three.
class Lateness {
 public:
  explicit Lateness(unsigned seed) : random_(seed) {}
  void operator()() {
    const double us = std::uniform_real_distribution<>(-2000, 1000)(random_);
    if (us > 0) std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(us));
  }

 private:
  std::minstd_rand random_;
};

/// @param text  as of parse_imitation(), and `delay_us=20` (slow streams), `block_delay_us=20` (slow blocks), `lost=3`
///         (the last device is lost), `refused_call=3` (of a capture), `maps=0` (none of other processes' memory),
///         `words=0` (streams write none and wait for none), `stay_us=50` (kernels that wait leave after this).
inline device::host::Imitation faulty(const std::string& text) {
  double delay_us = 0, block_delay_us = 0, stay_us = -1;
  std::int64_t lost = -1, refused = -1;
  bool maps = true, words = true;
  std::vector<std::string> plain;
  for (const std::string& word : split(text, ',')) {
    if (word.starts_with("delay_us="))
      delay_us = std::stod(word.substr(9));
    else if (word.starts_with("block_delay_us="))
      block_delay_us = std::stod(word.substr(15));
    else if (word.starts_with("stay_us="))
      stay_us = std::stod(word.substr(8));
    else if (word.starts_with("lost="))
      lost = std::stoll(word.substr(5));
    else if (word.starts_with("refused_call="))
      refused = std::stoll(word.substr(13));
    else if (word == "maps=0")
      maps = false;
    else if (word == "words=0")
      words = false;
    else
      plain.push_back(word);
  }
  device::host::Imitation result = device::host::parse_imitation(join(plain, ","));
  if (delay_us > 0) result.before_work = slow_streams(delay_us);
  if (block_delay_us > 0) result.before_block = slow_blocks(block_delay_us);
  if (stay_us >= 0) result.longest_stay_s = 1e-6 * stay_us;
  result.words = words;
  if (!maps) result.may_map = [] { return false; };
  if (refused >= 0) result.may_keep = refused_call(refused);
  if (lost >= 0) result.works = lost_device(result.devices - 1, lost);
  return result;
}

/// Sets the imitation of back end host as long as this lives.
class Imitated {
 public:
  explicit Imitated(const std::string& text) : before_(device::host::imitation()) {
    device::host::imitate(faulty(text));
  }
  ~Imitated() { device::host::imitate(before_); }
  Imitated(const Imitated&) = delete;
  Imitated& operator=(const Imitated&) = delete;

 private:
  device::host::Imitation before_;
};

/// Changes the imitation that is set.
template <class Change>
void change_imitation(Change change) {
  device::host::Imitation now = device::host::imitation();
  change(now);
  device::host::imitate(now);
}

/// Devices that fail on request.
class Doom {
 public:
  /// @param text  as of Imitated
  explicit Doom(const std::string& text) : imitated_(text) {
    change_imitation(
        [&](device::host::Imitation& now) { now.works = [left = left_](int) { return left->fetch_sub(1) > 0; }; });
  }
  /// Lets them fail after this many copies and launches.
  void come(std::int64_t pieces) { *left_ = pieces; }

 private:
  std::shared_ptr<std::atomic<std::int64_t>> left_ = std::make_shared<std::atomic<std::int64_t>>(std::int64_t{1} << 40);
  Imitated imitated_;
};

/// Imitates the devices in environment variable HALOSCOPE_TEST_DEVICE, if it is set.
inline void imitate_from_environment() {
  if (const char* text = std::getenv("HALOSCOPE_TEST_DEVICE")) device::host::imitate(faulty(text));
}

}  // namespace haloscope::test
