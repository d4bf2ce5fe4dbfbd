#include "haloscope/device/staging_buffers.hpp"

namespace haloscope::device {

StagingBuffers::StagingBuffers(Device& device, std::size_t bytes) : bytes_(bytes) {
  for (Piece& piece : pieces_) {
    piece.memory = Buffer(device, Space::pinned, bytes);
    piece.copied = device.event(false);
  }
}

/// Waits: a copy may be in flight where a caller has stopped reading.
StagingBuffers::~StagingBuffers() {
  for (Piece& piece : pieces_) call_even_if_lost([&] { piece.copied->wait(); });
}

void StagingBuffers::send(Stream& stream, std::byte* memory, const ByteRange& range, const Cut& cut,
                          const std::function<void(const ByteRange& part, std::byte* here)>& make) {
  ByteRange rest = range;
  for (std::size_t turn = 0; rest.size() > 0; turn = 1 - turn) {
    Piece& piece = pieces_[turn];
    const ByteRange part = cut(rest);
    piece.copied->wait();
    make(part, piece.memory.data());
    stream.copy(memory + part.begin, piece.memory.data(), part.size());
    stream.record(*piece.copied);
    rest.begin = part.end;
  }
  stream.finish();
}

void StagingBuffers::order(Stream& stream, const std::byte* memory, Piece& piece, const ByteRange& part) {
  piece.part = part;
  if (part.size() == 0) return;
  stream.copy(piece.memory.data(), memory + part.begin, part.size());
  stream.record(*piece.copied);
}

void StagingBuffers::fetch(Stream& stream, const std::byte* memory, const ByteRange& range, const Cut& cut,
                           const std::function<bool(const ByteRange& part, const std::byte* here)>& look) {
  ByteRange rest = range;
  const auto next = [&] {
    const ByteRange part = rest.size() > 0 ? cut(rest) : rest;
    rest.begin = part.end;
    return part;
  };
  bool goes_on = true;
  order(stream, memory, pieces_[0], next());
  for (std::size_t turn = 0; goes_on && pieces_[turn].part.size() > 0; turn = 1 - turn) {
    Piece& piece = pieces_[turn];
    order(stream, memory, pieces_[1 - turn], next());
    piece.copied->wait();
    goes_on = look(piece.part, piece.memory.data());
  }
}

}  // namespace haloscope::device
