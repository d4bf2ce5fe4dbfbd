// Devices: memory, streams, events and kernels of an accelerator, the same for every back end. `cuda` and `hip` share
// one source (gpu_backend.hpp). `host` runs the same kernels on the CPU, each stream a thread, so that machines without
// a GPU can test everything built on devices.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "haloscope/device/kernels.hpp"
#include "haloscope/device/stay.hpp"
#include "haloscope/error.hpp"
#include "haloscope/view.hpp"

namespace haloscope::device {

/// Memory spaces: the device; pinned host memory, for copies; ordinary host memory, whose copies go through a buffer of
/// the driver while the calling thread waits; host memory that kernels access themselves: `mapped`, where each side
/// sees immediately the other's writes, and `noncoherent`, only once the kernel has ended (the same as mapped on
/// NVIDIA's GPUs).
enum class Space : std::uint8_t { device, pinned, pageable, mapped, noncoherent };
const char* to_string(Space space);

struct Info {
  std::string name;               ///< "NVIDIA H100 80GB HBM3"
  std::int64_t total_bytes = 0;   ///< device memory
  std::int64_t free_bytes = 0;    ///< of it, unused by all processes
  int multiprocessors = 0;        ///< blocks of 1024 threads that are guaranteed to run concurrently
  std::int64_t shared_bytes = 0;  ///< shared memory that one block may have
  double clock_hz = 1e9;          ///< ticks a second of the clock that kernels read
  std::string id;                 ///< the same for all processes that use this device, and only for this one
  /// Kernels are loaded before they are first launched, which otherwise may wait for kernels that run.
  bool loads_early = false;
  /// A kernel that waits for the CPU leaves after this: drivers end kernels that stay for seconds where a screen is
  /// attached to a device, and a program that waits for the device as a whole continues.
  double longest_stay_s = 1;
  /// For kernels that wait until `stop` is not 0. @param stop  in mapped memory.
  Stay stay(const std::uint32_t* stop) const { return {stop, static_cast<std::uint64_t>(longest_stay_s * clock_hz)}; }
};

/// A point in a stream's work. Reusable: recording it again moves it. It may be destroyed before its work is done.
class Event {
 public:
  virtual ~Event() = default;
  virtual bool reached() = 0;  ///< the work before the last record() has finished; true before the first one
  virtual void wait() = 0;     ///< waits on the calling thread until then
};

/// Work recorded by a capture, to be launched as a whole any number of times.
class Graph {
 public:
  virtual ~Graph() = default;
  /// Launches it on the stream that captured it.
  virtual void launch() = 0;
};

/// Work done in the order in which it is enqueued, concurrently with the calling thread and other streams. The
/// destructor finishes it. Calls never wait for the work, except copies to and from pageable memory.
class Stream {
 public:
  virtual ~Stream() = default;
  /// Any direction, also between two devices of the back end.
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  virtual void record(Event& event) = 0;
  virtual void wait(
      Event& event) = 0;  ///< delays later work of this stream until the work that the event marks now has finished
  /// Writes a value to a word in Space::mapped once the work before has finished: the host sees that work's results
  /// then. Requires that Device::refuse_words() returns "".
  virtual void write(std::uint64_t* word, std::uint64_t value) = 0;
  /// Delays later work of this stream until a word in Space::mapped has this value or a higher one; the host writes it,
  /// before any of its calls that wait for the stream.
  virtual void wait(const std::uint64_t* word, std::uint64_t value) = 0;
  virtual void finish() = 0;          ///< waits on the calling thread until all work is done
  virtual DeviceStream native() = 0;  ///< for work that callers enqueue on it
  /// From here on, work enqueued on this stream is recorded, not done; so is work enqueued on other streams after they
  /// have waited for an event of this one. This stream must wait for each of them before the capture ends. Events
  /// recorded meanwhile order the captured work; their state means nothing to the caller.
  virtual void begin_capture() = 0;
  /// @throws Error where another stream was not waited for.
  virtual std::unique_ptr<Graph> end_capture() = 0;
};

/// A handle by which another process of the machine can map memory of a device.
struct MemoryHandle {
  std::array<std::byte, 96> data{};
};

class Device {
 public:
  virtual ~Device() = default;
  virtual Info info() const = 0;
  /// @throws Error naming the requested and the free bytes when there are too few.
  virtual void* allocate(Space space, std::size_t bytes) = 0;
  virtual void release(Space space, void* memory) = 0;
  /// @param memory  as allocate() returned it, in Space::device; it must live as long as any process maps it.
  virtual MemoryHandle share(void* memory) = 0;
  /// Maps memory that another process shares, of any device of the back end; unmap() it before its owner releases it.
  /// @throws Error where the driver or the system refuses.
  virtual void* map(const MemoryHandle& handle) = 0;
  virtual void unmap(void* memory) = 0;
  /// @param urgent  where the device has room for either, its work precedes the work of other streams.
  virtual std::unique_ptr<Stream> stream(bool urgent = false) = 0;
  /// @param timed  the event can be passed to seconds(); costs a little more.
  virtual std::unique_ptr<Event> event(bool timed = true) = 0;
  /// Seconds between two reached, timed events of this device.
  virtual double seconds(Event& from, Event& to) const = 0;
  virtual const Kernels& kernels() const = 0;
  /// Returns the reason why its streams cannot write words and wait for them, with the remedy; "": they can.
  virtual std::string refuse_words() const = 0;
  /// For a third-party stream: the event marks the work enqueued on it up to here ...
  virtual void record(DeviceStream stream, Event& event) = 0;
  /// ... or its later work starts after the work that the event marks now.
  virtual void wait(DeviceStream stream, Event& event) = 0;
  /// Makes the device current on the calling thread where the driver has such a notion. @return the number of the
  /// previous one.
  virtual int use() = 0;
  /// Makes the device of this number current again.
  virtual void use_again(int index) = 0;
};

/// Runs a release: a lost device reports its loss from every call, which no longer matters then.
template <class F>
void call_even_if_lost(F call) {
  try {
    call();
  } catch (const Error&) {
  }
}

/// Makes a device current on the calling thread as long as this lives; then the previous one. Null: nothing changes.
class Current {
 public:
  explicit Current(Device* device) : device_(device), before_(device != nullptr ? device->use() : 0) {}
  ~Current() {
    if (device_ != nullptr) device_->use_again(before_);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  Device* device_;
  int before_;
};

/// Memory of a device, released on destruction. Move-only.
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

/// Device memory that holds a copy of `bytes` bytes. Waits until it does.
Buffer copied_to(Device& device, const void* data, std::size_t bytes);

/// Pieces of copies (cut_copies()) in the memory of a device, ready to be launched in parts.
class PieceList {
 public:
  PieceList() = default;
  /// Waits until the pieces have been copied.
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
  std::string (*absent)();  ///< the reason why it cannot be used here, with the remedy; empty: it can
  int (*count)();           ///< devices it has, 0 where it is absent
  std::unique_ptr<Device> (*open)(int index);  ///< null where the build lacks it
  bool on_cpu = false;                         ///< its streams are threads on the rank's cores
  /// Number of the device whose memory holds an address; -1: none. Null: it never finds any.
  int (*owner)(const void* address) = nullptr;
};

/// cuda, hip, host: in the order in which `auto` searches for a device.
const std::vector<Backend>& backends();
/// Registers a back end. @throws UsageError for a name that is taken.
void add_backend(const Backend& backend);
/// @param name  cuda, hip, host, or auto: the first of cuda and hip that has a device here, otherwise host.
/// @throws UsageError for an unknown name, UnavailableError with the reason where the back end is absent.
const Backend& find_backend(const std::string& name);

/// A device, by its back end and its number there.
struct Place {
  const Backend* backend = nullptr;  ///< null: no device, but the host
  int index = -1;
};
/// The device whose memory holds an address, which this library need not have returned.
Place place_of(const void* address);

}  // namespace haloscope::device
