// The back ends of real devices, one source for CUDA and HIP: included by cuda.cu and hip.hip, which define
// HALOSCOPE_BACKEND (the namespace) first.
#pragma once

#include "haloscope/device/builtin.hpp"
#include "haloscope/device/gpu_launch.hpp"
#include "haloscope/device/kernel_table.hpp"

namespace haloscope::device::HALOSCOPE_BACKEND {

/// The global timer of NVIDIA's GPUs counts nanoseconds; AMD's clock rate can be queried since HIP 5.4. Before, all
/// GPUs that HIP ran on were of the GFX9 family, whose clock has 100 MHz.
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

#if defined(__HIPCC__)
inline bool loads_early() { return false; }  // not known
#else
/// The program may have started the driver before this library requested early loading of kernels.
inline bool loads_early() {
  const auto ask = driver_call<CUresult (*)(CUmoduleLoadingMode*)>("cuModuleGetLoadingMode");
  CUmoduleLoadingMode mode = CU_MODULE_LAZY_LOADING;
  return ask != nullptr && ask(&mode) == CUDA_SUCCESS && mode == CU_MODULE_EAGER_LOADING;
}
#endif

class GpuDevice final : public Device {
 public:
  explicit GpuDevice(int index) : index_(index) {
    HALOSCOPE_CHECK(GetDeviceProperties, &properties_, index);
    select();
    limits_ = load_kernels(index);
  }
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
            std::string(bus),
            loads_early()};
  }
  void* allocate(Space space, std::size_t bytes) override {
    void* memory = nullptr;
    select();
    if (space == Space::pageable) return new_host_memory(bytes);
    if (space != Space::device) {
      const auto kind = space == Space::mapped        ? HALOSCOPE_GPU_MAPPED
                        : space == Space::noncoherent ? HALOSCOPE_GPU_NONCOHERENT
                                                      : 0;
      const Status made = settled(HALOSCOPE_GPU(HostMalloc)(&memory, bytes, kind));
      if (made == HALOSCOPE_GPU(ErrorMemoryAllocation)) throw_no_pinned(bytes);
      check(made, "HostMalloc");
      return memory;
    }
    const Status made = settled(HALOSCOPE_GPU(Malloc)(&memory, bytes));
    if (made == HALOSCOPE_GPU(ErrorMemoryAllocation)) throw_too_large(bytes, info());
    check(made, "Malloc");
    return memory;
  }
  void release(Space space, void* memory) override {
    if (space == Space::pageable)
      ::operator delete(memory, host_alignment);
    else
      (void)settled(space == Space::device ? HALOSCOPE_GPU(Free)(memory) : HALOSCOPE_GPU(HostFree)(memory));
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
  void unmap(void* memory) override { (void)settled(HALOSCOPE_GPU(IpcCloseMemHandle)(memory)); }
  std::unique_ptr<Stream> stream(bool urgent) override {
    select();
    return std::make_unique<GpuStream>(urgent, limits_);
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
  const Kernels& kernels() const override { return kernels_; }
  std::string refuse_words() const override {
    if (const char* const name = blocking_launches())
      return std::string("with ") + name + " set, a launch waits for its stream, which may wait for the host; unset it";
    return HALOSCOPE_BACKEND::refuse_words(index_);
  }
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
  void use_again(int index) override { (void)settled(HALOSCOPE_GPU(SetDevice)(index)); }

 private:
  void select() const { HALOSCOPE_CHECK(SetDevice, index_); }

  int index_;
  HALOSCOPE_GPU_PROPERTIES properties_{};
  std::vector<KernelLimits> limits_;
  const Kernels kernels_ = kernel_table();
};

/// Loads kernels immediately, not when they are first launched: loading waits for kernels that run, and kernels that
/// wait for the CPU would then wait indefinitely.
inline void load_early() { setenv("CUDA_MODULE_LOADING", "EAGER", 0); }

inline int count() {
  load_early();
  int devices = 0;
  return settled(HALOSCOPE_GPU(GetDeviceCount)(&devices)) == HALOSCOPE_GPU(Success) ? devices : 0;
}

inline std::string absent() {
  load_early();
  int devices = 0;
  const Status status = settled(HALOSCOPE_GPU(GetDeviceCount)(&devices));
  if (status != HALOSCOPE_GPU(Success))
    return std::string("the " HALOSCOPE_GPU_NAME " driver reports '") + HALOSCOPE_GPU(GetErrorString)(status) +
           "'; check that a device and its driver are installed";
  return devices > 0 ? "" : "this machine has no " HALOSCOPE_GPU_NAME " device";
}

#if defined(__HIPCC__)
inline int owner(const void* address) {
  hipPointerAttribute_t found{};
  if (settled(hipPointerGetAttributes(&found, address)) != hipSuccess) return -1;  // unknown to the driver: the host's
#if HIP_VERSION >= 60000000
  const auto type = found.type;
#else
  const auto type = found.memoryType;
#endif
  return type == hipMemoryTypeDevice || found.isManaged != 0 ? found.device : -1;
}
#else
/// Queries the driver: the runtime's call would make a context on a device in programs that use none. In a process that
/// has not loaded the driver no memory of a device exists.
inline int owner(const void* address) {
  using Ask = CUresult (*)(void* into, CUpointer_attribute attribute, CUdeviceptr address);
  const auto ask = driver_call<Ask>("cuPointerGetAttribute");
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
