// Memory that calls of MPI use after they have returned.
#pragma once

#include <memory>
#include <utility>

namespace haloscope {

/// What MPI reads and writes until calls complete. Where an exception ends the function before that, MPI may use the memory later:
/// it stays until the program ends.
template <class Memory>
class UntilComplete {
 public:
  template <class... Arguments>
  explicit UntilComplete(Arguments&&... arguments)
      : memory_(std::make_unique<Memory>(std::forward<Arguments>(arguments)...)) {}
  ~UntilComplete() {
    if (!complete_) static_cast<void>(memory_.release());
  }
  UntilComplete(const UntilComplete&) = delete;
  UntilComplete& operator=(const UntilComplete&) = delete;
  Memory* operator->() { return memory_.get(); }
  /// The calls have completed.
  void completed() { complete_ = true; }

 private:
  std::unique_ptr<Memory> memory_;
  bool complete_ = false;
};

}  // namespace haloscope
