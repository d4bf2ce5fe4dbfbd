// A kernel that answers the CPU with the device's clock. Included once per back end, after its launches.
#pragma once

#include "haloscope/device/signals.hpp"

namespace haloscope::device::HALOSCOPE_BACKEND {

struct AnswerWithClock {
  static constexpr int threads = 1;
  std::uint64_t* word;
  Stay stay;
  HALOSCOPE_FUNCTION void operator()(const Team& team) const {
    team.one([&] { write_word<Reader::anyone>(word, clock_ticks()); });
    if (!await<look_again>(team, stay, [&] { return read_word<Reader::anyone>(word) == 0; })) return;
    team.one([&] { write_word<Reader::anyone>(word, clock_ticks()); });
  }
};

inline void launch_clock(Stream& stream, std::uint64_t* word, const Stay& stay) {
  launch_resident(stream, 1, AnswerWithClock::threads, AnswerWithClock{word, stay});
}

}  // namespace haloscope::device::HALOSCOPE_BACKEND
