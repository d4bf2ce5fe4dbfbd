// Execution of a kernel's blocks by back end `host`. Included once per translation unit that launches kernels on it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include "haloscope/device/host_stream.hpp"
#include "haloscope/device/team.hpp"

namespace haloscope::device::HALOSCOPE_BACKEND {

/// Breaks assumptions that a GPU does not guarantee: blocks run in one order and at the next launch in the reverse
/// order, several concurrently where OS threads share them, and each finds its shared memory full of NaN.
template <class Body>
void launch(Stream& base, int blocks, int threads, std::size_t shared_bytes, Body body) {
  static std::atomic<unsigned> launches{0};
  auto& stream = static_cast<HostStream&>(base);
  const int sharing = std::clamp(blocks, 1, stream.threads());
  stream.enqueue([=, backward = launches++ % 2 == 1] {
    const auto run = [&](int first) {
      std::vector<std::byte> shared(shared_bytes);
      for (int i = first; i < blocks; i += sharing) {
        std::fill(shared.begin(), shared.end(), std::byte{0xff});
        body(Team(backward ? blocks - 1 - i : i, threads, shared.data()));
      }
    };
    std::vector<std::thread> others;
    for (int t = 1; t < sharing; ++t) others.emplace_back(run, t);
    run(0);
    for (std::thread& other : others) other.join();
  });
}

/// Runs each block on a thread of the system: blocks wait for the CPU, and for each other.
template <class Body>
void launch_resident(Stream& base, int blocks, int threads, Body body) {
  auto& stream = static_cast<HostStream&>(base);
  stream.enqueue([=, before = host::imitation().before_block] {
    const auto run = [&](int block) {
      if (before) before(block);
      body(Team(block, threads, nullptr));
    };
    std::vector<std::thread> others;
    for (int block = 1; block < blocks; ++block) others.emplace_back(run, block);
    run(0);
    for (std::thread& other : others) other.join();
  });
}

template <class Body>
int most_resident(int) {
  return host::imitation().resident;
}

}  // namespace haloscope::device::HALOSCOPE_BACKEND

#include "haloscope/device/launch.hpp"
#include "haloscope/device/pass_kernel.hpp"
