// Pinned host buffers that stage copies of any size to or from a device: two pieces of host memory.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>

#include "haloscope/device/device.hpp"
#include "haloscope/field/memory.hpp"

namespace haloscope::device {

/// Data pass in parts: while the host makes or reads one, the device copies the other. So host memory does not grow
/// with the data, and no copy goes through pageable memory.
class StagingBuffers {
 public:
  /// @param bytes  of each piece, >= 1. Nothing allocates afterwards.
  StagingBuffers(Device& device, std::size_t bytes);
  ~StagingBuffers();
  StagingBuffers(const StagingBuffers&) = delete;
  StagingBuffers& operator=(const StagingBuffers&) = delete;

  std::size_t bytes() const { return bytes_; }

  /// The next part of the rest, from its beginning: not empty, and at most bytes().
  using Cut = std::function<ByteRange(const ByteRange& rest)>;
  /// Calls make(part, here) for each part of `range`, in order, then copies it to the same bytes of `memory`. Waits
  /// until all have been copied.
  void send(Stream& stream, std::byte* memory, const ByteRange& range, const Cut& cut,
            const std::function<void(const ByteRange& part, std::byte* here)>& make);
  /// The reverse: calls look(part, here) for each part, in order, until it returns false.
  void fetch(Stream& stream, const std::byte* memory, const ByteRange& range, const Cut& cut,
             const std::function<bool(const ByteRange& part, const std::byte* here)>& look);

 private:
  struct Piece {
    Buffer memory;
    std::unique_ptr<Event> copied;  ///< the last copy from here or to here has ended
    ByteRange part;
  };
  void order(Stream& stream, const std::byte* memory, Piece& piece, const ByteRange& part);

  std::size_t bytes_;
  std::array<Piece, 2> pieces_;
};

}  // namespace haloscope::device
