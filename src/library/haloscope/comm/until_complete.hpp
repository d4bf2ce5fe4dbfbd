// Memory that calls of MPI use after they have returned.
#pragma once

#include <memory>
#include <utility>

namespace haloscope {

/// Memory that MPI reads and writes until calls complete. Where an exception ends the function before that, MPI may
/// use the memory later: it stays until the program ends.
template <class Memory>
class UntilComplete {
 public:
  template <class... Arguments>
  explicit UntilComplete(Arguments&&... arguments)
      : memory_(std::make_unique<Memory>(std::forward<Arguments>(arguments)...)) {}
  ~UntilComplete() {
    if (in_use_) static_cast<void>(memory_.release());
  }
  UntilComplete(const UntilComplete&) = delete;
  UntilComplete& operator=(const UntilComplete&) = delete;
  Memory* operator->() { return memory_.get(); }
  /// Marks the memory as in use, before the first call.
  void begin() { in_use_ = true; }
  /// Marks the calls as completed.
  void completed() { in_use_ = false; }

 private:
  std::unique_ptr<Memory> memory_;
  bool in_use_ = false;
};

}  // namespace haloscope
