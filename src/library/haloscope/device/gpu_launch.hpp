// Streams of real devices and launches of kernels on them, one source for CUDA and HIP. HALOSCOPE_BACKEND (the
// namespace) is defined first.
#pragma once

#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "haloscope/device/device.hpp"
#include "haloscope/device/gpu_runtime.hpp"
#include "haloscope/device/team.hpp"
#include "haloscope/error.hpp"

namespace haloscope::device::HALOSCOPE_BACKEND {

using Status = HALOSCOPE_GPU(Error_t);

/// Returns a call's status, and clears the copy of a failure that the runtime stores: the next caller that queries it,
/// as after a launch, would take it for a failure of that caller.
inline Status settled(Status status) {
  if (status != HALOSCOPE_GPU(Success)) (void)HALOSCOPE_GPU(GetLastError)();
  return status;
}

inline void check(Status status, const char* call) {
  if (settled(status) == HALOSCOPE_GPU(Success)) return;
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
  ~GpuEvent() override { (void)settled(HALOSCOPE_GPU(EventDestroy)(event_)); }
  bool reached() override {
    const Status status = settled(HALOSCOPE_GPU(EventQuery)(event_));
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
    (void)settled(HALOSCOPE_GPU(GraphDestroy)(kept));
    check(made, "GraphInstantiateWithFlags");
  }
  ~GpuGraph() override { (void)settled(HALOSCOPE_GPU(GraphExecDestroy)(ready_)); }
  void launch() override { HALOSCOPE_CHECK(GraphLaunch, ready_, stream_); }

 private:
  HALOSCOPE_GPU(GraphExec_t) ready_{};
  HALOSCOPE_GPU(Stream_t) stream_;
};

#if defined(__HIPCC__)
inline void write_word(hipStream_t stream, std::uint64_t* word, std::uint64_t value) {
  HALOSCOPE_CHECK(StreamWriteValue64, stream, word, value, 0);
}
inline void await_word(hipStream_t stream, const std::uint64_t* word, std::uint64_t value) {
  HALOSCOPE_CHECK(StreamWaitValue64, stream, const_cast<std::uint64_t*>(word), value, hipStreamWaitValueGte);
}
inline std::string refuse_words(int index) {
  int can = 0;
  HALOSCOPE_CHECK(DeviceGetAttribute, &can, hipDeviceAttributeCanUseStreamWaitValue, index);
  return can != 0 ? "" : "this device or its driver does not let streams wait for values in memory";
}
#else
/// A function of the driver, if the program has loaded it; null: not.
template <class Function>
Function driver_call(const char* name) {
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) return nullptr;
  const auto found = reinterpret_cast<Function>(dlsym(driver, name));
  dlclose(driver);  // the driver stays loaded
  return found;
}

/// The driver's operations of streams on words; the runtime has none.
using WordCall = CUresult (*)(CUstream stream, CUdeviceptr word, cuuint64_t value, unsigned flags);
inline WordCall write_call() { return driver_call<WordCall>("cuStreamWriteValue64_v2"); }
inline WordCall wait_call() { return driver_call<WordCall>("cuStreamWaitValue64_v2"); }
inline void call_on_word(WordCall call, const char* name, cudaStream_t stream, const std::uint64_t* word,
                         std::uint64_t value, unsigned flags) {
  const CUresult status =
      call == nullptr ? CUDA_ERROR_NOT_SUPPORTED : call(stream, reinterpret_cast<CUdeviceptr>(word), value, flags);
  if (status != CUDA_SUCCESS)
    throw Error(Exit::failed, std::string("CUDA call ") + name + " failed: code " + std::to_string(status) +
                                  " of the driver; an error of a kernel is often reported by a later call");
}
inline void write_word(cudaStream_t stream, std::uint64_t* word, std::uint64_t value) {
  static const WordCall call = write_call();
  call_on_word(call, "StreamWriteValue64", stream, word, value, CU_STREAM_WRITE_VALUE_DEFAULT);
}
inline void await_word(cudaStream_t stream, const std::uint64_t* word, std::uint64_t value) {
  static const WordCall call = wait_call();
  call_on_word(call, "StreamWaitValue64", stream, word, value, CU_STREAM_WAIT_VALUE_GEQ);
}
inline std::string refuse_words(int index) {
  const auto find = driver_call<CUresult (*)(CUdevice*, int)>("cuDeviceGet");
  const auto ask = driver_call<CUresult (*)(int*, CUdevice_attribute, CUdevice)>("cuDeviceGetAttribute");
  if (write_call() == nullptr || wait_call() == nullptr || find == nullptr || ask == nullptr)
    return "its driver does not let streams wait for values in memory; use the driver of CUDA 11.7 or a newer one";
  CUdevice device = 0;
  int can = 0;
  const bool answered = find(&device, index) == CUDA_SUCCESS &&
                        ask(&can, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, device) == CUDA_SUCCESS;
  return answered && can != 0 ? "" : "this device or its driver does not let streams wait for 64-bit values in memory";
}
#endif

/// A variable of the environment that makes every launch wait for its kernel: a launch behind a waiting stream would
/// never return. Null: none is set.
inline const char* blocking_launches() {
  for (const char* name : {"CUDA_LAUNCH_BLOCKING", "HIP_LAUNCH_BLOCKING", "AMD_SERIALIZE_KERNEL"})
    if (const char* const value = std::getenv(name); value != nullptr && std::atoi(value) != 0) return name;
  return nullptr;
}

template <class Body>
__global__ void run_body(const Body body) {
  body(Team());
}

/// As run_body, for a body that specifies its max threads per block: each may then have more registers.
template <class Body>
__global__ void __launch_bounds__(Body::most_threads, 1) bounded_run_body(const Body body) {
  body(Team());
}

template <class Body>
const void* kernel_of() {
  if constexpr (requires { Body::most_threads; })
    return reinterpret_cast<const void*>(&bounded_run_body<Body>);
  else
    return reinterpret_cast<const void*>(&run_body<Body>);
}

/// Limits of one launch of a kernel on a device.
struct KernelLimits {
  int threads = 0;
  std::size_t shared_bytes = 0;
};

/// All kernels of this back end, by number.
inline std::vector<const void*>& all_kernels() {
  static std::vector<const void*> all;
  return all;
}
/// Takes a kernel's address from that list alone: no kernel is launched that is not in it.
template <class Body>
struct KernelOf {
  static inline const std::size_t number = [] {
    all_kernels().push_back(kernel_of<Body>());
    return all_kernels().size() - 1;
  }();
  static const void* address() { return all_kernels()[number]; }
};

/// Loads all kernels on the current device and requests all of its shared memory, so that no launch has to: a launch
/// may be captured, or other kernels may be waiting for the CPU.
inline std::vector<KernelLimits> load_kernels(int index) {
  int most = 0;
  HALOSCOPE_CHECK(DeviceGetAttribute, &most, HALOSCOPE_GPU_MOST_SHARED, index);
  std::vector<KernelLimits> limits;
  for (const void* kernel : all_kernels()) {
    HALOSCOPE_GPU(FuncAttributes) attributes{};
    HALOSCOPE_CHECK(FuncGetAttributes, &attributes, kernel);
    const int dynamic = most - static_cast<int>(attributes.sharedSizeBytes);
    const Status granted = settled(
        HALOSCOPE_GPU(FuncSetAttribute)(kernel, HALOSCOPE_GPU(FuncAttributeMaxDynamicSharedMemorySize), dynamic));
    limits.push_back({attributes.maxThreadsPerBlock,
                      granted == HALOSCOPE_GPU(Success) ? static_cast<std::size_t>(dynamic) : std::size_t{48} << 10});
  }
  return limits;
}

class GpuStream final : public Stream {
 public:
  /// Without a higher priority the few blocks of packing would queue behind the many of a sweep.
  /// @param limits  of the kernels on its device; they outlive it.
  GpuStream(bool urgent, const std::vector<KernelLimits>& limits) : limits_(limits) {
    int least = 0, greatest = 0;
    HALOSCOPE_CHECK(DeviceGetStreamPriorityRange, &least, &greatest);
    HALOSCOPE_CHECK(StreamCreateWithPriority, &stream_, HALOSCOPE_GPU(StreamNonBlocking), urgent ? greatest : least);
  }
  ~GpuStream() override {
    (void)settled(HALOSCOPE_GPU(StreamSynchronize)(stream_));
    (void)settled(HALOSCOPE_GPU(StreamDestroy)(stream_));
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    if (bytes > 0) HALOSCOPE_CHECK(MemcpyAsync, to, from, bytes, HALOSCOPE_GPU(MemcpyDefault), stream_);
  }
  void record(Event& event) override { HALOSCOPE_CHECK(EventRecord, static_cast<GpuEvent&>(event).event(), stream_); }
  void wait(Event& event) override {
    HALOSCOPE_CHECK(StreamWaitEvent, stream_, static_cast<GpuEvent&>(event).event(), 0);
  }
  void write(std::uint64_t* word, std::uint64_t value) override { write_word(stream_, word, value); }
  void wait(const std::uint64_t* word, std::uint64_t value) override { await_word(stream_, word, value); }
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
  const KernelLimits& limits(std::size_t kernel) const { return limits_[kernel]; }

 private:
  HALOSCOPE_GPU(Stream_t) stream_{};
  const std::vector<KernelLimits>& limits_;
};

/// @throws UsageError for a block that needs more than the device has.
template <class Body>
void launch(Stream& base, int blocks, int threads, std::size_t shared_bytes, Body body) {
  auto& stream = static_cast<GpuStream&>(base);
  const auto [max_threads, shared] = stream.limits(KernelOf<Body>::number);
  if (shared_bytes > shared)
    throw UsageError("a block needs " + std::to_string(shared_bytes) + " bytes of shared memory, and this device has " +
                     std::to_string(shared) + " for one of this kernel; use a smaller --device-block");
  if (threads > max_threads)
    throw UsageError("a block of " + std::to_string(threads) +
                     " threads needs more registers than this device has; this "
                     "kernel runs with at most " +
                     std::to_string(max_threads) + " threads, use a smaller --device-block");
  void* arguments[] = {&body};
  HALOSCOPE_CHECK(LaunchKernel, KernelOf<Body>::address(), dim3(static_cast<unsigned>(blocks)),
                  dim3(static_cast<unsigned>(threads)), arguments, shared_bytes, stream.stream());
}

/// The driver refuses it where the blocks do not all fit on the device concurrently.
template <class Body>
void launch_resident(Stream& stream, int blocks, int threads, Body body) {
  void* arguments[] = {&body};
  HALOSCOPE_CHECK(LaunchCooperativeKernel, KernelOf<Body>::address(), dim3(static_cast<unsigned>(blocks)),
                  dim3(static_cast<unsigned>(threads)), arguments, 0, static_cast<GpuStream&>(stream).stream());
}

template <class Body>
int most_resident(int threads) {
  int device = 0, multiprocessors = 0, blocks = 0;
  HALOSCOPE_CHECK(GetDevice, &device);
  HALOSCOPE_CHECK(DeviceGetAttribute, &multiprocessors, HALOSCOPE_GPU_MULTIPROCESSORS, device);
  HALOSCOPE_CHECK(OccupancyMaxActiveBlocksPerMultiprocessor, &blocks, KernelOf<Body>::address(), threads, 0);
  return blocks * multiprocessors;
}

}  // namespace haloscope::device::HALOSCOPE_BACKEND

#include "haloscope/device/launch.hpp"
#include "haloscope/device/pass_kernel.hpp"
