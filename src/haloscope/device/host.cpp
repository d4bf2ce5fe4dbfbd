// Back end `host`: devices made of the CPU. A stream is a thread and runs the blocks of a kernel one after the other.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <utility>

#include "haloscope/core/error.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/device/builtin.hpp"
#include "haloscope/device/host_stream.hpp"
#include "haloscope/field/memory.hpp"

#define HALOSCOPE_BACKEND host
#include "haloscope/device/team.hpp"

namespace haloscope::device::host {

/// What a GPU does not promise is not there either: blocks run in one order and at the next launch in the other, and
/// each finds its shared memory full of NaN.
template <class Body>
void launch(Stream& stream, int blocks, int threads, std::size_t shared_bytes, Body body) {
  static std::atomic<unsigned> launches{0};
  static_cast<HostStream&>(stream).enqueue([=, backward = launches++ % 2 == 1] {
    std::vector<std::byte> shared(shared_bytes);
    for (int i = 0; i < blocks; ++i) {
      std::fill(shared.begin(), shared.end(), std::byte{0xff});
      body(Team(backward ? blocks - 1 - i : i, threads, shared.data()));
    }
  });
}

}  // namespace haloscope::device::host

#include "haloscope/device/kernels_fill.hpp"

namespace haloscope::device {
namespace host {

// ---- streams --------------------------------------------------------------------------------------------------------

HostStream::HostStream(double delay_us, unsigned seed)
    : delay_us_(delay_us), random_(seed), thread_([this] { serve(); }) {}

HostStream::~HostStream() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void HostStream::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closing_ || !work_.empty(); });
    if (work_.empty()) return;
    const Work work = std::move(work_.front());
    work_.pop_front();
    busy_ = true;
    lock.unlock();
    if (delay_us_ > 0) {
      const double us = delay_us_ * static_cast<double>(random_()) / static_cast<double>(std::minstd_rand::max());
      std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(us));
    }
    work();
    lock.lock();
    busy_ = false;
    if (work_.empty()) changed_.notify_all();
  }
}

void HostStream::enqueue(Work work) {
  if (!capture_) return push(std::move(work));
  keep([this, work = std::move(work)] { push(work); });
}

void HostStream::push(Work work) {
  {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
  }
  changed_.notify_all();
}

void HostStream::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return work_.empty() && !busy_; });
}

void HostStream::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) enqueue([=] { std::memcpy(to, from, bytes); });
}

void HostStream::mark(HostEvent& event) {
  push([marks = event.marks(), mark = event.marks()->next()] { marks->reach(mark); });
}

void HostStream::pass(HostEvent& event) {
  push([marks = event.marks(), mark = event.marks()->last()] { marks->wait_for(mark); });
}

void HostStream::record(Event& given) {
  auto& event = static_cast<HostEvent&>(given);
  event.capture = capture_;
  if (!capture_) return mark(event);
  keep([this, &event] { mark(event); });
  event.stream = this;
  event.given = capture_->given[this];
}

void HostStream::wait(Event& given) {
  auto& event = static_cast<HostEvent&>(given);
  const auto theirs = event.capture.lock();
  if (!capture_) capture_ = theirs;  // from here on this stream takes part
  if (!capture_) return pass(event);
  keep([this, &event] { pass(event); });
  if (theirs == capture_ && this == capture_->origin) {
    int& awaited = capture_->awaited[event.stream];
    awaited = std::max(awaited, event.given);
  }
}

// ---- captures -------------------------------------------------------------------------------------------------------

namespace {

class HostGraph final : public Graph {
 public:
  explicit HostGraph(std::vector<std::function<void()>> calls) : calls_(std::move(calls)) {}
  void launch() override {
    for (const auto& call : calls_) call();
  }

 private:
  std::vector<std::function<void()>> calls_;
};

}  // namespace

void HostStream::keep(std::function<void()> call) {
  capture_->calls.push_back(std::move(call));
  ++capture_->given[this];
}

void HostStream::begin_capture() {
  capture_ = std::make_shared<HostCapture>();
  capture_->origin = this;
}

std::unique_ptr<Graph> HostStream::end_capture() {
  const auto capture = std::exchange(capture_, nullptr);
  bool whole = true;
  for (const auto& [stream, given] : capture->given) {
    whole &= stream == this || capture->awaited[stream] == given;
    stream->capture_ = nullptr;
  }
  if (!whole) throw Error(Exit::failed, "a capture ends before a stream that took part in it was waited for");
  return std::make_unique<HostGraph>(std::move(capture->calls));
}

// ---- devices --------------------------------------------------------------------------------------------------------

namespace {

/// What the environment says of the devices to be imitated:
/// HALOSCOPE_HOST_DEVICE="devices=2,bytes=1000000,delay_us=50".
struct Imitation {
  int devices = 1;
  std::int64_t bytes = sysconf(_SC_PHYS_PAGES) / 2 * sysconf(_SC_PAGESIZE);
  double delay_us = 0;
};

Imitation imitation() {
  Imitation result;
  const char* text = std::getenv("HALOSCOPE_HOST_DEVICE");
  if (text == nullptr || *text == '\0') return result;
  for (const std::string& word : split(text, ',')) {
    const auto equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const char* const number = equals == std::string::npos ? "" : word.c_str() + equals + 1;
    char* end = nullptr;
    const double value = std::strtod(number, &end);
    const double most = name == "devices" ? 64 : name == "delay_us" ? 1e6 : 1e15;
    if (end == number || *end != '\0' || !(value >= (name == "devices" ? 1 : 0) && value <= most) ||
        !has({"devices", "bytes", "delay_us"}, name))
      throw UsageError("HALOSCOPE_HOST_DEVICE has '" + word + "'; write devices=N (1 to 64), bytes=N and delay_us=N, " +
                       "separated by commas");
    if (name == "devices") result.devices = static_cast<int>(value);
    if (name == "bytes") result.bytes = static_cast<std::int64_t>(value);
    if (name == "delay_us") result.delay_us = value;
  }
  return result;
}

class HostDevice final : public Device {
 public:
  explicit HostDevice(int index) : index_(index), imitation_(imitation()) {
    if (index < 0 || index >= imitation_.devices)
      throw UsageError("device " + std::to_string(index) + " of back end host does not exist; it has " +
                       std::to_string(imitation_.devices) + " (HALOSCOPE_HOST_DEVICE=devices=N makes more)");
  }

  Info info() const override {
    return {"imitated device " + std::to_string(index_),
            imitation_.bytes,
            imitation_.bytes - used_,
            1,
            160 << 10,
            "host " + std::to_string(index_)};
  }
  void* allocate(Space space, std::size_t bytes) override {
    if (space == Space::device && static_cast<std::int64_t>(bytes) > imitation_.bytes - used_)
      throw_too_large(bytes, info());
    if (space != Space::device) return ::operator new (bytes, std::align_val_t{cache_line});
    const SharedFile file{memfd_create("haloscope-device", MFD_CLOEXEC), bytes};
    void* const memory = file.number < 0 || ftruncate(file.number, static_cast<off_t>(bytes)) != 0
                             ? MAP_FAILED
                             : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.number, 0);
    if (memory == MAP_FAILED)
      throw Error(Exit::failed, "the system has no " + std::to_string(bytes) +
                                    " bytes for the imitated device: " + std::strerror(errno) + "; use fewer cells");
    files_[memory] = file;
    used_ += static_cast<std::int64_t>(bytes);
    return memory;
  }
  void release(Space space, void* memory) override {
    if (space != Space::device) return ::operator delete (memory, std::align_val_t{cache_line});
    const auto file = files_.extract(memory).mapped();
    munmap(memory, file.bytes);
    close(file.number);
    used_ -= static_cast<std::int64_t>(file.bytes);
  }
  MemoryHandle share(void* memory) override {
    const SharedFile& file = files_.at(memory);
    const Shared shared{getpid(), file.number, file.bytes};
    MemoryHandle handle;
    std::memcpy(handle.data.data(), &shared, sizeof shared);
    return handle;
  }
  void* map(const MemoryHandle& handle) override {
    Shared shared;
    std::memcpy(&shared, handle.data.data(), sizeof shared);
    const std::string path = "/proc/" + std::to_string(shared.process) + "/fd/" + std::to_string(shared.number);
    const SharedFile file{open(path.c_str(), O_RDWR | O_CLOEXEC), shared.bytes};
    void* const memory =
        file.number < 0 ? MAP_FAILED : mmap(nullptr, file.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.number, 0);
    if (memory == MAP_FAILED)
      throw Error(Exit::failed, "cannot map the device memory of process " + std::to_string(shared.process) + ": " +
                                    std::strerror(errno) + "; use transport staged");
    files_[memory] = file;
    return memory;
  }
  void unmap(void* memory) override {
    const auto file = files_.extract(memory).mapped();
    munmap(memory, file.bytes);
    close(file.number);
  }
  std::unique_ptr<Stream> stream(bool) override {
    return std::make_unique<HostStream>(imitation_.delay_us, ++streams_);
  }
  std::unique_ptr<Event> event(bool) override { return std::make_unique<HostEvent>(); }
  double seconds(Event& from, Event& to) const override {
    const auto at = [](Event& event) { return static_cast<HostEvent&>(event).marks()->at(); };
    return std::chrono::duration<double>(at(to) - at(from)).count();
  }
  const Kernels& kernels() const override { return kernel_table(); }
  void use() override {}

 private:
  struct SharedFile {  // device memory is a file in memory, so that other processes can map it
    int number = -1;
    std::size_t bytes = 0;
  };
  struct Shared {
    pid_t process;
    int number;
    std::size_t bytes;
  };
  std::map<void*, SharedFile> files_;
  int index_;
  Imitation imitation_;
  std::int64_t used_ = 0;
  unsigned streams_ = 0;
};

}  // namespace
}  // namespace host

Backend host_backend() {
  return {"host", [] { return std::string(); }, [] { return host::imitation().devices; },
          [](int index) -> std::unique_ptr<Device> { return std::make_unique<host::HostDevice>(index); }};
}

}  // namespace haloscope::device
