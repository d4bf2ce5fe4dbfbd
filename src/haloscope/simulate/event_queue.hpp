// The events that are still to come, earliest first: a heap of four children a node, which fits two nodes a cache line.
#pragma once

#include <cstdint>
#include <vector>

namespace haloscope::simulate {

/// `actor` goes on at `time`; an event of an older `version` than its actor's is void.
struct Event {
  double time = 0;
  std::int32_t actor = 0;
  std::uint32_t version = 0;
  /// Ties go to the lower actor, so that a run does not depend on how events came into the queue.
  bool before(const Event& other) const { return time < other.time || (time == other.time && actor < other.actor); }
};

class EventQueue {
 public:
  void reserve(std::size_t count) { heap_.reserve(count); }
  bool empty() const { return heap_.empty(); }

  void push(const Event& event) {
    std::size_t at = heap_.size();
    heap_.push_back(event);
    while (at > 0) {
      const std::size_t parent = (at - 1) / 4;
      if (!event.before(heap_[parent])) break;
      heap_[at] = heap_[parent];
      at = parent;
    }
    heap_[at] = event;
  }

  Event pop() {
    const Event first = heap_.front(), last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink(last);
    return first;
  }

 private:
  void sink(const Event& event) {
    const std::size_t size = heap_.size();
    std::size_t at = 0;
    for (;;) {
      const std::size_t child = 4 * at + 1;
      if (child >= size) break;
      const std::size_t end = child + 4 < size ? child + 4 : size;
      std::size_t least = child;
      for (std::size_t c = child + 1; c < end; ++c)
        if (heap_[c].before(heap_[least])) least = c;
      if (!heap_[least].before(event)) break;
      heap_[at] = heap_[least];
      at = least;
    }
    heap_[at] = event;
  }

  std::vector<Event> heap_;
};

}  // namespace haloscope::simulate
