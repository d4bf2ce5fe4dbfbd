// The queue of pending events, earliest first: a heap of four children a node, which lie in one cache line.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace haloscope::simulate {

/// `actor` resumes at `time`, >= 0; an event of an older `version` than its actor's is void.
struct Event {
  double time = 0;
  std::int32_t actor = 0;
  std::uint32_t version = 0;
  /// Ties go to the lower actor, so that a run does not depend on the order in which events entered the queue. Without
  /// a branch, which no processor could predict: bits of times >= 0 are in the order of the times.
  bool before(const Event& other) const {
    const auto mine = std::bit_cast<std::uint64_t>(time), its = std::bit_cast<std::uint64_t>(other.time);
    return (mine < its) | ((mine == its) & (actor < other.actor));
  }
};

class EventQueue {
 public:
  void reserve(std::size_t count) { lines_.reserve((root + count) / width + 1); }
  bool empty() const { return end_ == root; }
  /// The event that pop() would return; there must be one.
  const Event& next() const { return lines_.front()[root]; }

  void push(const Event& event) {
    if (end_ == width * lines_.size()) lines_.emplace_back();
    std::size_t place = end_++;
    while (place > root) {
      const std::size_t parent = place / width + root - 1;
      if (!event.before(at(parent))) break;
      at(place) = at(parent);
      place = parent;
    }
    at(place) = event;
  }

  Event pop() {
    const Event first = next(), last = at(--end_);
    if (!empty()) sink(last);
    return first;
  }

 private:
  static constexpr std::size_t width = 4, root = width - 1;  // position of the root, so that its children begin a line
  struct alignas(width * sizeof(Event)) Line : std::array<Event, width> {};

  Event& at(std::size_t place) { return lines_[place / width][place % width]; }

  void sink(const Event& event) {
    std::size_t place = root;
    for (;;) {
      const std::size_t child = width * (place - (root - 1));
      if (child >= end_) break;
      const std::size_t least = child + least_of(lines_[child / width], end_ - child);
      if (!at(least).before(event)) break;
      at(place) = at(least);
      place = least;
    }
    at(place) = event;
  }

  /// Returns the earliest of the first `count` events of a line.
  static std::size_t least_of(const Line& line, std::size_t count) {
    if (count >= width) {
      const std::size_t low = line[1].before(line[0]), high = 2 + line[3].before(line[2]);
      return line[high].before(line[low]) ? high : low;
    }
    std::size_t least = 0;
    for (std::size_t c = 1; c < count; ++c)
      if (line[c].before(line[least])) least = c;
    return least;
  }

  std::vector<Line> lines_{1};
  std::size_t end_ = root;
};

}  // namespace haloscope::simulate
