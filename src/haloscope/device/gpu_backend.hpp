// The back ends of real devices, one source for CUDA and HIP: included by cuda.cu and hip.hip, which define
// HALOSCOPE_BACKEND (the namespace) first.
#pragma once

#include <cstdlib>
#include <cstring>
#include <utility>

#include "haloscope/device/builtin.hpp"
#include "haloscope/device/gpu_runtime.hpp"
#include "haloscope/device/team.hpp"
#include "haloscope/error.hpp"

namespace haloscope::device::HALOSCOPE_BACKEND {

using Status = HALOSCOPE_GPU(Error_t);

inline void check(Status status, const char* call) {
  if (status == HALOSCOPE_GPU(Success)) return;
  throw Error(Exit::failed, std::string(HALOSCOPE_GPU_NAME " call ") + call +
                                " failed: " + HALOSCOPE_GPU(GetErrorString)(status) +
                                "; an error of a kernel is often reported by a later call");
}
#define HALOSCOPE_CHECK(call, ...) check(HALOSCOPE_GPU(call)(__VA_ARGS__), #call)

class GpuEvent final : public Event {
 public:
  explicit GpuEvent(bool timed) {
    HALOSCOPE_CHECK(EventCreateWithFlags, &event_,
                    timed ? HALOSCOPE_GPU(EventDefault) : HALOSCOPE_GPU(EventDisableTiming));
  }
  ~GpuEvent() override { (void)HALOSCOPE_GPU(EventDestroy)(event_); }
  bool reached() override {
    const Status status = HALOSCOPE_GPU(EventQuery)(event_);
    if (status == HALOSCOPE_GPU(ErrorNotReady)) return false;
    check(status, "EventQuery");
    return true;
  }
  void wait() override { HALOSCOPE_CHECK(EventSynchronize, event_); }
  HALOSCOPE_GPU(Event_t) event() const { return event_; }

 private:
  HALOSCOPE_GPU(Event_t) event_{};
};

class GpuGraph final : public Graph {
 public:
  GpuGraph(HALOSCOPE_GPU(Graph_t) kept, HALOSCOPE_GPU(Stream_t) stream) : stream_(stream) {
    const Status made = HALOSCOPE_GPU(GraphInstantiateWithFlags)(&ready_, kept, 0);
    (void)HALOSCOPE_GPU(GraphDestroy)(kept);
    check(made, "GraphInstantiateWithFlags");
  }
  ~GpuGraph() override { (void)HALOSCOPE_GPU(GraphExecDestroy)(ready_); }
  void launch() override { HALOSCOPE_CHECK(GraphLaunch, ready_, stream_); }

 private:
  HALOSCOPE_GPU(GraphExec_t) ready_{};
  HALOSCOPE_GPU(Stream_t) stream_;
};

class GpuStream final : public Stream {
 public:
  /// Without a higher priority the few blocks of packing would queue behind the many of a sweep.
  explicit GpuStream(bool urgent) {
    int least = 0, greatest = 0;
    HALOSCOPE_CHECK(DeviceGetStreamPriorityRange, &least, &greatest);
    HALOSCOPE_CHECK(StreamCreateWithPriority, &stream_, HALOSCOPE_GPU(StreamNonBlocking), urgent ? greatest : least);
  }
  ~GpuStream() override {
    (void)HALOSCOPE_GPU(StreamSynchronize)(stream_);
    (void)HALOSCOPE_GPU(StreamDestroy)(stream_);
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    if (bytes > 0) HALOSCOPE_CHECK(MemcpyAsync, to, from, bytes, HALOSCOPE_GPU(MemcpyDefault), stream_);
  }
  void record(Event& event) override { HALOSCOPE_CHECK(EventRecord, static_cast<GpuEvent&>(event).event(), stream_); }
  void wait(Event& event) override {
    HALOSCOPE_CHECK(StreamWaitEvent, stream_, static_cast<GpuEvent&>(event).event(), 0);
  }
  void finish() override { HALOSCOPE_CHECK(StreamSynchronize, stream_); }
  void begin_capture() override {
    HALOSCOPE_CHECK(StreamBeginCapture, stream_, HALOSCOPE_GPU(StreamCaptureModeThreadLocal));
  }
  std::unique_ptr<Graph> end_capture() override {
    HALOSCOPE_GPU(Graph_t) kept{};
    HALOSCOPE_CHECK(StreamEndCapture, stream_, &kept);
    return std::make_unique<GpuGraph>(kept, stream_);
  }
  DeviceStream native() override { return {stream_}; }
  HALOSCOPE_GPU(Stream_t) stream() const { return stream_; }

 private:
  HALOSCOPE_GPU(Stream_t) stream_{};
};

template <class Body>
__global__ void run_body(const Body body) {
  body(Team());
}

/// More shared memory than a block has by default must be requested, kernel by kernel.
template <class Body>
void launch(Stream& stream, int blocks, int threads, std::size_t shared_bytes, const Body& body) {
  static std::size_t granted = 48u << 10;  // of this kernel
  if (shared_bytes > granted) {
    HALOSCOPE_CHECK(FuncSetAttribute, reinterpret_cast<const void*>(&run_body<Body>),
                    HALOSCOPE_GPU(FuncAttributeMaxDynamicSharedMemorySize), static_cast<int>(shared_bytes));
    granted = shared_bytes;
  }
  static const int most = [] {
    HALOSCOPE_GPU(FuncAttributes) attributes{};
    HALOSCOPE_CHECK(FuncGetAttributes, &attributes, reinterpret_cast<const void*>(&run_body<Body>));
    return attributes.maxThreadsPerBlock;
  }();
  if (threads > most)
    throw UsageError("a block of " + std::to_string(threads) +
                     " threads needs more registers than this device has; this "
                     "kernel runs with at most " +
                     std::to_string(most) + " threads, use a smaller --device-block");
  const auto native = static_cast<GpuStream&>(stream).stream();
  run_body<Body>
      <<<dim3(static_cast<unsigned>(blocks)), dim3(static_cast<unsigned>(threads)), shared_bytes, native>>>(body);
  check(HALOSCOPE_GPU(GetLastError)(), "<<<>>> (a kernel's launch)");
}

/// Refused by the driver where the blocks do not fit on the device all at once.
template <class Body>
void launch_resident(Stream& stream, int blocks, int threads, Body body) {
  void* arguments[] = {&body};
  HALOSCOPE_CHECK(LaunchCooperativeKernel, reinterpret_cast<const void*>(&run_body<Body>),
                  dim3(static_cast<unsigned>(blocks)), dim3(static_cast<unsigned>(threads)), arguments, 0,
                  static_cast<GpuStream&>(stream).stream());
}

template <class Body>
int most_resident(int threads) {
  int device = 0, multiprocessors = 0, blocks = 0;
  HALOSCOPE_CHECK(GetDevice, &device);
  HALOSCOPE_CHECK(DeviceGetAttribute, &multiprocessors, HALOSCOPE_GPU_MULTIPROCESSORS, device);
  HALOSCOPE_CHECK(OccupancyMaxActiveBlocksPerMultiprocessor, &blocks, run_body<Body>, threads, 0);
  return blocks * multiprocessors;
}

}  // namespace haloscope::device::HALOSCOPE_BACKEND

#include "haloscope/device/apps.hpp"

namespace haloscope::device::HALOSCOPE_BACKEND {

/// The global timer of NVIDIA's GPUs counts nanoseconds; AMD's says how fast its clock ticks, since HIP 5.4. Before, all
/// that HIP ran on was of the GFX9 family, whose clock has 100 MHz.
inline double clock_hz([[maybe_unused]] int index) {
#if defined(__HIPCC__) && HIP_VERSION < 50400000
  return 1e8;
#elif defined(__HIPCC__)
  int khz = 0;
  HALOSCOPE_CHECK(DeviceGetAttribute, &khz, hipDeviceAttributeWallClockRate, index);
  return 1e3 * khz;
#else
  return 1e9;
#endif
}

class GpuDevice final : public Device {
 public:
  explicit GpuDevice(int index) : index_(index) { HALOSCOPE_CHECK(GetDeviceProperties, &properties_, index); }
  Info info() const override {
    std::size_t free = 0, total = 0;
    select();
    HALOSCOPE_CHECK(MemGetInfo, &free, &total);
    int shared = 0;
    char bus[32] = "";
    HALOSCOPE_CHECK(DeviceGetPCIBusId, bus, sizeof bus, index_);
    HALOSCOPE_CHECK(DeviceGetAttribute, &shared, HALOSCOPE_GPU_MOST_SHARED, index_);
    return {properties_.name,
            static_cast<std::int64_t>(total),
            static_cast<std::int64_t>(free),
            properties_.multiProcessorCount,
            shared,
            clock_hz(index_),
            std::string(bus)};
  }
  void* allocate(Space space, std::size_t bytes) override {
    void* memory = nullptr;
    select();
    if (space == Space::pageable) return ::operator new(bytes);
    if (space != Space::device) {
      const auto kind = space == Space::mapped        ? HALOSCOPE_GPU_MAPPED
                        : space == Space::noncoherent ? HALOSCOPE_GPU_NONCOHERENT
                                                      : 0;
      HALOSCOPE_CHECK(HostMalloc, &memory, bytes, kind);
      return memory;
    }
    if (const Info now = info(); static_cast<std::int64_t>(bytes) > now.free_bytes) throw_too_large(bytes, now);
    HALOSCOPE_CHECK(Malloc, &memory, bytes);
    return memory;
  }
  void release(Space space, void* memory) override {
    if (space == Space::pageable)
      ::operator delete(memory);
    else
      (void)(space == Space::device ? HALOSCOPE_GPU(Free)(memory) : HALOSCOPE_GPU(HostFree)(memory));
  }
  MemoryHandle share(void* memory) override {
    HALOSCOPE_GPU(IpcMemHandle_t) native;
    HALOSCOPE_CHECK(IpcGetMemHandle, &native, memory);
    MemoryHandle handle;
    static_assert(sizeof native <= sizeof handle.data);
    std::memcpy(handle.data.data(), &native, sizeof native);
    return handle;
  }
  void* map(const MemoryHandle& handle) override {
    HALOSCOPE_GPU(IpcMemHandle_t) native;
    std::memcpy(&native, handle.data.data(), sizeof native);
    void* memory = nullptr;
    select();
    HALOSCOPE_CHECK(IpcOpenMemHandle, &memory, native, HALOSCOPE_GPU(IpcMemLazyEnablePeerAccess));
    return memory;
  }
  void unmap(void* memory) override { (void)HALOSCOPE_GPU(IpcCloseMemHandle)(memory); }
  std::unique_ptr<Stream> stream(bool urgent) override {
    select();
    return std::make_unique<GpuStream>(urgent);
  }
  std::unique_ptr<Event> event(bool timed) override {
    select();
    return std::make_unique<GpuEvent>(timed);
  }
  double seconds(Event& from, Event& to) const override {
    float milliseconds = 0;
    HALOSCOPE_CHECK(EventElapsedTime, &milliseconds, static_cast<GpuEvent&>(from).event(),
                    static_cast<GpuEvent&>(to).event());
    return milliseconds * 1e-3;
  }
  const Kernels& kernels() const override { return kernel_table(); }
  void record(DeviceStream stream, Event& event) override {
    HALOSCOPE_CHECK(EventRecord, static_cast<GpuEvent&>(event).event(),
                    static_cast<HALOSCOPE_GPU(Stream_t)>(stream.native));
  }
  void wait(DeviceStream stream, Event& event) override {
    HALOSCOPE_CHECK(StreamWaitEvent, static_cast<HALOSCOPE_GPU(Stream_t)>(stream.native),
                    static_cast<GpuEvent&>(event).event(), 0);
  }
  int use() override {
    int before = 0;
    HALOSCOPE_CHECK(GetDevice, &before);
    select();
    return before;
  }
  void use_again(int index) override { (void)HALOSCOPE_GPU(SetDevice)(index); }

 private:
  void select() const { HALOSCOPE_CHECK(SetDevice, index_); }

  int index_;
  HALOSCOPE_GPU_PROPERTIES properties_{};
};

/// Kernels are loaded at once, not when they are first launched: loading waits for kernels that run, and those that wait
/// for the CPU would then wait for ever.
inline void load_early() { setenv("CUDA_MODULE_LOADING", "EAGER", 0); }

inline int count() {
  load_early();
  int devices = 0;
  return HALOSCOPE_GPU(GetDeviceCount)(&devices) == HALOSCOPE_GPU(Success) ? devices : 0;
}

inline std::string absent() {
  load_early();
  int devices = 0;
  const Status status = HALOSCOPE_GPU(GetDeviceCount)(&devices);
  if (status != HALOSCOPE_GPU(Success))
    return std::string("the " HALOSCOPE_GPU_NAME " driver says '") + HALOSCOPE_GPU(GetErrorString)(status) +
           "'; is there a device, and its driver installed?";
  return devices > 0 ? "" : "there is no " HALOSCOPE_GPU_NAME " device on this machine";
}

#if defined(__HIPCC__)
inline int owner(const void* address) {
  hipPointerAttribute_t found{};
  if (hipPointerGetAttributes(&found, address) != hipSuccess) {
    (void)hipGetLastError();  // unknown to the driver: memory of the host
    return -1;
  }
#if HIP_VERSION >= 60000000
  const auto type = found.type;
#else
  const auto type = found.memoryType;
#endif
  return type == hipMemoryTypeDevice || found.isManaged != 0 ? found.device : -1;
}
#else
/// Asks the driver: the runtime's own call would give programs that use no device a context on one. Where nobody has loaded
/// the driver nobody has memory of a device.
inline int owner(const void* address) {
  using Ask = CUresult (*)(void* into, CUpointer_attribute attribute, CUdeviceptr address);
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) return -1;
  const auto ask = reinterpret_cast<Ask>(dlsym(driver, "cuPointerGetAttribute"));
  dlclose(driver);  // it stays loaded
  if (ask == nullptr) return -1;
  const auto at = reinterpret_cast<CUdeviceptr>(address);
  unsigned type = 0, managed = 0;
  int device = -1;
  if (ask(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at) != CUDA_SUCCESS) return -1;
  if (ask(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, at) != CUDA_SUCCESS) managed = 0;
  if (type != CU_MEMORYTYPE_DEVICE && managed == 0) return -1;
  return ask(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at) == CUDA_SUCCESS ? device : -1;
}
#endif

inline Backend backend(const char* name) {
  return {name,  absent, count, [](int index) -> std::unique_ptr<Device> { return std::make_unique<GpuDevice>(index); },
          false, owner};
}

}  // namespace haloscope::device::HALOSCOPE_BACKEND
