// Kernels of blocks: pack, unpack, both in one kernel during the CPU's messages (Vanecek 2020, sections 3.2 to 3.6).
// All kernels call the same body to pack and the same body to unpack. Included once per back end, after its launches.
#pragma once

#include "haloscope/device/signals.hpp"
#include "vanecek2020/app/launches.hpp"

namespace haloscope::device::HALOSCOPE_BACKEND {

/// Returns the value of a block's first element, different for each iteration, side and block.
HALOSCOPE_FUNCTION double value_of(const BlocksLaunch& l, int side, int number) {
  return static_cast<double>(((l.iteration + 1) * l.sides + side) * l.numbers + number);
}

/// Calls `work` with a zero of the type.
template <class Work>
HALOSCOPE_FUNCTION void with_type(ElementType type, Work work) {
  switch (type) {
    case ElementType::f64:
      return work(double{});
    case ElementType::f32:
      return work(float{});
    case ElementType::i32:
      return work(std::int32_t{});
  }
}

/// Packs a part of elements T: thread t of n writes elements t, t + n, ...
template <class T>
HALOSCOPE_FUNCTION void pack_elements(const Team& team, const BlocksLaunch& l, const BlockEntry& e, std::int64_t begin,
                                      std::int64_t end) {
  const double value = value_of(l, e.side, e.number);
  T* const out = static_cast<T*>(e.out);
  team.each([&](int thread) {
    for (std::int64_t i = begin + thread; i < end; i += team.threads()) out[i] = element_at<T>(value, l.slope, i);
  });
}

/// Unpacks a part of elements T: thread t of n checks element (size / n) t, or elements t, t + n, ...
template <class T>
HALOSCOPE_FUNCTION void unpack_elements(const Team& team, const BlocksLaunch& l, int block, const BlockEntry& e,
                                        std::int64_t begin, std::int64_t end) {
  const double value = value_of(l, e.source, e.number);
  const T* const in = static_cast<const T*>(e.in);
  const auto look = [&](std::int64_t i) {
    const T expected = element_at<T>(value, l.slope, i), found = load_fresh(in + i);
    if (found != expected) l.faults[block] = {i, static_cast<double>(expected), static_cast<double>(found)};
  };
  team.each([&](int thread) {
    if (l.every)
      for (std::int64_t i = begin + thread; i < end; i += team.threads()) look(i);
    else if (begin < end)
      look(begin + (end - begin) / team.threads() * thread);
  });
}

HALOSCOPE_FUNCTION void pack_part(const Team& team, const BlocksLaunch& l, const BlockEntry& e, std::int64_t begin,
                                  std::int64_t end) {
  with_type(l.type, [&](auto zero) { pack_elements<decltype(zero)>(team, l, e, begin, end); });
}

HALOSCOPE_FUNCTION void unpack_part(const Team& team, const BlocksLaunch& l, int block, const BlockEntry& e,
                                    std::int64_t begin, std::int64_t end) {
  with_type(l.type, [&](auto zero) { unpack_elements<decltype(zero)>(team, l, block, e, begin, end); });
}

HALOSCOPE_FUNCTION void stamp(const Team& team, const BlocksLaunch& l, int block, std::uint64_t BlockStamps::*when) {
  if (l.stamps == nullptr) return;
  team.sync();
  team.one([&] { l.stamps[block].*when = clock_ticks(); });
}

struct PackBlocks {
  BlocksLaunch l;
  HALOSCOPE_FUNCTION void operator()(const Team& team) const {
    const int block = l.first + team.block();
    const BlockEntry e = l.entries[block];
    stamp(team, l, block, &BlockStamps::begin);
    pack_part(team, l, e, 0, e.elements);
    stamp(team, l, block, &BlockStamps::packed);
  }
};

struct UnpackBlocks {
  BlocksLaunch l;
  HALOSCOPE_FUNCTION void operator()(const Team& team) const {
    const int block = l.first + team.block();
    const BlockEntry e = l.entries[block];
    stamp(team, l, block, &BlockStamps::arrived);
    unpack_part(team, l, block, e, 0, e.elements);
    stamp(team, l, block, &BlockStamps::unpacked);
  }
};

struct QueueBlocks {
  BlocksLaunch l;
  BlocksQueue q;

  HALOSCOPE_FUNCTION bool await_bit(const Team& team, int block, std::uint32_t bit) const {
    const std::uint32_t* word = q.notices + block * q.stride;
    return await(team, q.stay, [&] { return (read_word<Reader::anyone>(word) & bit) != 0; });
  }
  /// Appends a task to the list, in the order in which blocks take the lock.
  HALOSCOPE_FUNCTION void append(int block, int chunk) const {
    for (int looks = 0; !take(q.lock, static_cast<std::uint32_t>(block) + 1); ++looks) rest(looks);
    const std::uint32_t at = read_word<Reader::device>(q.tail);
    const auto task = static_cast<std::uint32_t>(block * most_chunks + chunk);
    write_word<Reader::anyone>(q.posted + at * static_cast<std::uint32_t>(q.stride), task);
    write_word<Reader::device>(q.tail, at + 1 == q.tasks ? 0 : at + 1);
    write_word<Reader::device>(q.lock, 0u);
  }
  /// Counts a packed block. The last one resets the count: once all have packed, no block waits for the others.
  HALOSCOPE_FUNCTION void count_packed() const {
    if (add_to_word(q.packed, 1) == static_cast<std::uint32_t>(l.count)) write_word<Reader::device>(q.packed, 0u);
  }
  HALOSCOPE_FUNCTION void post(const Team& team, int block, int chunk) const {
    announce(team, [&] {
      if (q.lock != nullptr) return append(block, chunk);
      write_word<Reader::anyone>(q.posted + block * q.stride, static_cast<std::uint32_t>(chunk));
    });
  }
  HALOSCOPE_FUNCTION bool may_pack(const Team& team, int block) const {
    if (q.copies && !await_bit(team, block, copied)) return false;
    if (q.at_once == 0) return true;
    const int before = block + 1 - q.at_once;  // blocks that have to be done; they never wait for this one
    return await(team, q.stay, [&] { return static_cast<int>(read_word<Reader::device>(q.packed)) >= before; });
  }
  /// The remaining work of a block: nothing, all, or unpacking from a chunk on.
  enum Rest : std::uint32_t { nothing = 0, all = 1, from_chunk = 2 };
  HALOSCOPE_FUNCTION void leave(const Team& team, int block, std::uint32_t rest) const {
    team.one([&] { q.left[block] = rest; });
  }
  HALOSCOPE_FUNCTION std::uint32_t resumed(const Team& team, int block) const {
    const std::uint32_t rest = q.left[block];
    team.sync();
    team.one([&] { q.left[block] = nothing; });
    return rest;
  }
  HALOSCOPE_FUNCTION void operator()(const Team& team) const {
    const int block = team.block();
    const std::uint32_t rest = q.resumes ? resumed(team, block) : all;
    if (rest == nothing) return;
    if (rest == all && !pack(team, block)) return leave(team, block, all);
    unpack(team, block, rest == all ? 0 : static_cast<int>(rest - from_chunk));
  }
  HALOSCOPE_FUNCTION bool pack(const Team& team, int block) const {
    const BlockEntry e = l.entries[block];
    const int chunks = chunks_of(e.elements, q.chunks);
    if (!may_pack(team, block)) return false;
    stamp(team, l, block, &BlockStamps::begin);
    for (int c = 0; c < chunks; ++c) {
      pack_part(team, l, e, chunk_begin(e.elements, chunks, c), chunk_begin(e.elements, chunks, c + 1));
      if (l.detailed && c + 1 == chunks) stamp(team, l, block, &BlockStamps::posting);
      post(team, block, c);
    }
    stamp(team, l, block, &BlockStamps::packed);
    if (q.at_once > 0) team.one([&] { count_packed(); });
    return true;
  }
  HALOSCOPE_FUNCTION void unpack(const Team& team, int block, int first) const {
    const BlockEntry e = l.entries[block];
    const int chunks = chunks_of(e.elements, q.chunks);
    for (int c = first; c < chunks; ++c) {
      if (!await_bit(team, block, arrived(c))) return leave(team, block, from_chunk + static_cast<std::uint32_t>(c));
      if (c == 0) stamp(team, l, block, &BlockStamps::arrived);
      unpack_part(team, l, block, e, chunk_begin(e.elements, chunks, c), chunk_begin(e.elements, chunks, c + 1));
    }
    stamp(team, l, block, &BlockStamps::unpacked);
  }
};

inline void add_blocks(Kernels& kernels) {
  static const BlocksKernels table = [] {
    BlocksKernels k;
    k.pack = [](Stream& stream, const BlocksLaunch& l) { launch(stream, l.count, l.threads, 0, PackBlocks{l}); };
    k.unpack = [](Stream& stream, const BlocksLaunch& l) { launch(stream, l.count, l.threads, 0, UnpackBlocks{l}); };
    k.queue = [](Stream& stream, const BlocksLaunch& l, const BlocksQueue& q) {
      launch_resident(stream, l.count, l.threads, QueueBlocks{l, q});
    };
    k.resident = [](int threads) { return most_resident<QueueBlocks>(threads); };
    return k;
  }();
  kernels.of_guests.push_back({blocks_kernels_name, &table});
}

}  // namespace haloscope::device::HALOSCOPE_BACKEND
