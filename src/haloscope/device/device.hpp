// Devices: memory, streams, events and kernels of an accelerator, the same for every back end. `cuda` and `hip` share
// one source (gpu_backend.hpp); `host` runs the same kernels on the CPU, each stream a thread, so that everything that
// is built on devices is tested where there is none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "haloscope/device/kernels.hpp"

namespace haloscope::device {

/// Where memory lives: on the device; in host memory that the device copies to and from by itself; in ordinary host
/// memory, where such a copy goes through a buffer of the driver and the calling thread waits for it.
enum class Space : std::uint8_t { device, pinned, pageable };
const char* to_string(Space space);

struct Info {
  std::string name;               ///< "NVIDIA H100 80GB HBM3"
  std::int64_t total_bytes = 0;   ///< device memory
  std::int64_t free_bytes = 0;    ///< of it, not in use by anyone
  int multiprocessors = 0;        ///< blocks of 1024 threads that surely run at once
  std::int64_t shared_bytes = 0;  ///< shared memory that one block may have
  std::string id;                 ///< the same for all processes that use this device, and only for this one
};

/// A point in a stream's work. Reusable: recording it again moves it. It may go before the work it marks is done.
class Event {
 public:
  virtual ~Event() = default;
  virtual bool reached() = 0;  ///< the work before the last record() has finished; true before the first one
  virtual void wait() = 0;     ///< the calling thread waits until then
};

/// Work that a capture has kept, to be done as a whole as often as wanted.
class Graph {
 public:
  virtual ~Graph() = default;
  /// Give it to the stream that captured it.
  virtual void launch() = 0;
};

/// Work that is done in the order given, beside the calling thread and other streams. A stream destroyed finishes
/// first. Calls never wait for the work, except copies to and from pageable memory.
class Stream {
 public:
  virtual ~Stream() = default;
  /// Any direction, also between two devices of the back end.
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  virtual void record(Event& event) = 0;
  virtual void wait(Event& event) = 0;  ///< later work of this stream starts after what the event marks now
  virtual void finish() = 0;            ///< the calling thread waits until all work is done
  /// From here on what this stream is given is kept, not done, and also what others are given once they have waited for
  /// an event of it. Each of those must be waited for by this one at last. Events recorded meanwhile order what is kept
  /// and tell the caller nothing.
  virtual void begin_capture() = 0;
  /// @throws Error where another stream was not waited for.
  virtual std::unique_ptr<Graph> end_capture() = 0;
};

/// What another process of the machine needs to reach memory of a device.
struct MemoryHandle {
  std::array<std::byte, 96> data{};
};

class Device {
 public:
  virtual ~Device() = default;
  virtual Info info() const = 0;
  /// @throws Error naming the bytes asked for and the free ones when there are too few.
  virtual void* allocate(Space space, std::size_t bytes) = 0;
  virtual void release(Space space, void* memory) = 0;
  /// @param memory  as allocate() returned it, in Space::device; it must live as long as anyone has it mapped.
  virtual MemoryHandle share(void* memory) = 0;
  /// Memory that another process shares, of any device of the back end; unmap() it before its owner releases it.
  /// @throws Error where the driver or the system refuses.
  virtual void* map(const MemoryHandle& handle) = 0;
  virtual void unmap(void* memory) = 0;
  /// @param urgent  its work goes before that of other streams wherever the device has room for either.
  virtual std::unique_ptr<Stream> stream(bool urgent = false) = 0;
  /// @param timed  may be given to seconds(); costs a little more.
  virtual std::unique_ptr<Event> event(bool timed = true) = 0;
  /// Seconds between two reached, timed events of this device.
  virtual double seconds(Event& from, Event& to) const = 0;
  virtual const Kernels& kernels() const = 0;
  /// A device makes itself the calling thread's current one where the driver has such a notion.
  virtual void use() = 0;
};

/// Memory of a device, given back when it goes. Move-only.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Device& device, Space space, std::size_t bytes)
      : device_(&device), space_(space), size_(bytes), data_(bytes > 0 ? device.allocate(space, bytes) : nullptr) {}
  Buffer(Buffer&& other) noexcept { *this = static_cast<Buffer&&>(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(device_, other.device_), std::swap(space_, other.space_), std::swap(size_, other.size_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr) device_->release(space_, data_);
  }
  std::byte* data() const { return static_cast<std::byte*>(data_); }
  std::size_t size() const { return size_; }

 private:
  Device* device_ = nullptr;
  Space space_ = Space::device;
  std::size_t size_ = 0;
  void* data_ = nullptr;
};

/// Pieces of copies (cut_copies()) in the memory of a device, ready to be launched in parts.
class PieceList {
 public:
  PieceList() = default;
  /// Waits until they are there.
  PieceList(Device& device, const std::vector<CopyLaunch::Piece>& pieces);
  /// The pieces from `first` up to, not including, `end`.
  CopyLaunch range(int first, int end) const {
    return {reinterpret_cast<const CopyLaunch::Piece*>(memory_.data()) + first, end - first};
  }
  CopyLaunch all() const { return range(0, static_cast<int>(memory_.size() / sizeof(CopyLaunch::Piece))); }

 private:
  Buffer memory_;
};

/// A back end of this build or of another one.
struct Backend {
  std::string name;
  std::string (*absent)();                     ///< why it cannot be used here and what would help; empty: it can
  int (*count)();                              ///< devices it has, 0 where it is absent
  std::unique_ptr<Device> (*open)(int index);  ///< null where the build lacks it
  bool on_cpu = false;                         ///< its streams are threads beside the rank's own
};

/// cuda, hip, host: in the order in which `auto` looks for a device.
const std::vector<Backend>& backends();
/// Make a back end of one's own known. @throws UsageError for a name that is taken.
void add_backend(const Backend& backend);
/// @param name  cuda, hip, host, or auto: the first of cuda and hip that has a device here, else host.
/// @throws UsageError for an unknown name, UnavailableError with the reason where the back end is absent.
const Backend& find_backend(const std::string& name);

}  // namespace haloscope::device
