// The kernel of an exchange. Included once per back end, after its launches.
#pragma once

#include "haloscope/device/copy_kernel.hpp"
#include "haloscope/device/exchange.hpp"
#include "haloscope/device/signals.hpp"

namespace haloscope::device::HALOSCOPE_BACKEND {

/// Blocks share the pieces of all parts evenly, regardless of the part. Each packs all its pieces before it waits for
/// anything, so ranks cannot wait for each other's packing.
struct ExchangeBlocks {
  static constexpr int threads = CopyBlocks::threads;
  static constexpr int nothing_came = -1;
  ExchangeLaunch l;

  HALOSCOPE_FUNCTION void tell_progress(const Team& team, Progress how) const {
    team.one([&] {
      write_word<Reader::anyone>(l.progress + team.block() * signal_words, signal(l.exchange, static_cast<int>(how)));
    });
  }
  /// The block's first piece from piece `first` on.
  HALOSCOPE_FUNCTION int own_piece(const Team& team, int first) const {
    const int ahead = (team.block() - first) % l.blocks;
    return first + (ahead < 0 ? ahead + l.blocks : ahead);
  }
  /// Copies the block's pieces of a part. @return their number.
  template <Source source>
  HALOSCOPE_FUNCTION int move(const Team& team, const ExchangeLaunch::Part& part) const {
    int count = 0;
    for (int p = own_piece(team, part.first); p < part.end; p += l.blocks, ++count)
      copy_piece<source>(team, l.pieces[p]);
    return count;
  }
  /// Signals the CPU, from the block that packs a part's last piece.
  HALOSCOPE_FUNCTION void report(const Team& team, int part, int count) const {
    announce(team, [&] {
      const auto all = static_cast<std::uint32_t>(l.parts[part].end - l.parts[part].first);
      if (add_to_word(l.moved + part, static_cast<std::uint32_t>(count)) != all * l.exchange) return;
      int place = part;
      if (l.tasks != nullptr)
        place = static_cast<int>(add_to_word(l.tasks, 1) - 1 - static_cast<std::uint32_t>(l.sent) * (l.exchange - 1));
      write_word<Reader::anyone>(l.packed + place * signal_words, signal(l.exchange, part));
    });
  }
  /// Announces that the kernel leaves, unless the part has arrived. Both sides write before they read: the host sees
  /// that the kernel has left, or this block sees the host's word.
  template <class Ready>
  HALOSCOPE_FUNCTION bool leave(const Team& team, Ready ready) const {
    tell_progress(team, Progress::left);
    return !team.agree([&] {
      fence();
      return ready();
    });
  }
  /// Waits for the part that arrives as number `turn`, or returns nothing_came: all blocks leave. The host's memory is
  /// far, and many blocks that read it would keep its link busy: the first one does, and signals the others, which wait
  /// for its word alone.
  HALOSCOPE_FUNCTION int await_part(const Team& team, int turn) const {
    const bool looks = team.block() == 0;
    std::uint64_t word = signal(l.exchange, nothing_came);
    const auto ready = [&] {
      const std::uint64_t seen = looks ? read_word<Reader::anyone>(l.arrived + turn * signal_words)
                                       : read_word<Reader::device>(l.relayed + turn);
      if (exchange_of(seen) == l.exchange) word = seen;
      return exchange_of(seen) == l.exchange;
    };
    const bool left = !await(team, looks ? l.stay : Stay{}, ready) && leave(team, ready);
    if (looks) team.one([&] { write_word<Reader::device>(l.relayed + turn, word); });
    return left ? nothing_came : team.tell([&] { return of_signal(word); });
  }
  HALOSCOPE_FUNCTION void operator()(const Team& team) const {
    tell_progress(team, Progress::packs);
    for (int part = 0; part < l.sent; ++part)
      if (const int count = move<Source::steady>(team, l.parts[part]); count > 0) report(team, part, count);
    tell_progress(team, Progress::waits);
    for (int turn = 0; turn < l.received; ++turn) {
      const int part = await_part(team, turn);
      if (part == nothing_came) return tell_progress(team, Progress::left);
      move<Source::fresh>(team, l.parts[l.sent + part]);
    }
    tell_progress(team, Progress::ended);
  }
};

inline ExchangeKernels exchange_kernels() {
  ExchangeKernels k;
  k.run = [](Stream& stream, const ExchangeLaunch& l) {
    launch_resident(stream, l.blocks, ExchangeBlocks::threads, ExchangeBlocks{l});
  };
  k.resident = [] { return most_resident<ExchangeBlocks>(ExchangeBlocks::threads); };
  return k;
}

}  // namespace haloscope::device::HALOSCOPE_BACKEND
