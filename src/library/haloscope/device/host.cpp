// Back end `host`: devices on the CPU. A stream is a thread, which runs the blocks of a kernel sequentially or shares
// them with separate threads.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <utility>

#include "haloscope/device/builtin.hpp"
#include "haloscope/device/callers_streams.hpp"
#include "haloscope/device/host_memory.hpp"
#include "haloscope/device/host_stream.hpp"
#include "haloscope/error.hpp"

#define HALOSCOPE_BACKEND host
#include "haloscope/device/host_launch.hpp"
#include "haloscope/device/kernel_table.hpp"

namespace haloscope::device {
namespace host {
namespace {

class HostDevice final : public Device {
 public:
  explicit HostDevice(int index) : index_(index), imitation_(imitation()), health_(health_of(index)) {
    if (imitation_.bytes == 0) imitation_.bytes = sysconf(_SC_PHYS_PAGES) / 2 * sysconf(_SC_PAGESIZE);
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
            imitated_clock_hz,
            "host " + std::to_string(index_),
            true,
            imitation_.longest_stay_s};
  }
  void* allocate(Space space, std::size_t bytes) override {
    if (space == Space::device && static_cast<std::int64_t>(bytes) > imitation_.bytes - used_)
      throw_too_large(bytes, info());
    if (space != Space::device) return new_host_memory(bytes);
    void* const memory = new_memory(bytes, index_);
    used_ += static_cast<std::int64_t>(bytes);
    return memory;
  }
  void release(Space space, void* memory) override {
    if (space != Space::device) return ::operator delete(memory, host_alignment);
    used_ -= static_cast<std::int64_t>(release_memory(memory));
  }
  MemoryHandle share(void* memory) override { return handle_of(memory); }
  void* map(const MemoryHandle& handle) override {
    if (imitation_.may_map && !imitation_.may_map()) throw Error(Exit::failed, "the system refuses to map memory");
    return map_memory(handle, index_);
  }
  void unmap(void* memory) override { release_memory(memory); }
  std::unique_ptr<Stream> stream(bool) override {
    return std::make_unique<HostStream>(imitation_, health_, ++streams_);
  }
  std::unique_ptr<Event> event(bool) override { return std::make_unique<HostEvent>(health_); }
  double seconds(Event& from, Event& to) const override {
    const auto at = [](Event& event) { return static_cast<HostEvent&>(event).marks()->at(); };
    return std::chrono::duration<double>(at(to) - at(from)).count();
  }
  const Kernels& kernels() const override { return kernels_; }
  std::string refuse_words() const override {
    return imitation_.words ? "" : "imitated device " + std::to_string(index_) + " has no such operations";
  }
  void record(DeviceStream stream, Event& event) override {
    CallersStreams::of(index_).record(stream, static_cast<HostEvent&>(event));
  }
  void wait(DeviceStream stream, Event& event) override {
    CallersStreams::of(index_).wait(stream, static_cast<HostEvent&>(event));
  }
  int use() override { return 0; }
  void use_again(int) override {}

 private:
  std::shared_ptr<Health> health_of(int index) const {
    if (!imitation_.works) return std::make_shared<Health>(nullptr, imitation_.on_call);
    return std::make_shared<Health>([works = imitation_.works, index] { return works(index); }, imitation_.on_call);
  }

  int index_;
  Imitation imitation_;
  std::shared_ptr<Health> health_;
  const Kernels kernels_ = kernel_table();
  std::int64_t used_ = 0;
  unsigned streams_ = 0;
};

}  // namespace
}  // namespace host

Backend host_backend() {
  return {"host",
          [] { return std::string(); },
          [] { return host::imitation().devices; },
          [](int index) -> std::unique_ptr<Device> { return std::make_unique<host::HostDevice>(index); },
          true,
          host::owner_of};
}

}  // namespace haloscope::device
