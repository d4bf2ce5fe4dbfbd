#include "haloscope/core/backend_names.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/core/out_of_memory.hpp"
#include "haloscope/device/builtin.hpp"
#include "haloscope/error.hpp"

namespace haloscope::device {

const char* to_string(Space space) {
  constexpr std::array names{"device", "pinned", "pageable", "mapped", "noncoherent"};
  return names[static_cast<std::size_t>(space)];
}

Buffer copied_to(Device& device, const void* data, std::size_t bytes) {
  Buffer buffer(device, Space::device, bytes);
  const auto stream = device.stream();
  stream->copy(buffer.data(), data, bytes);
  stream->finish();
  return buffer;
}

PieceList::PieceList(Device& device, const std::vector<CopyLaunch::Piece>& pieces)
    : memory_(copied_to(device, pieces.data(), pieces.size() * sizeof(CopyLaunch::Piece))) {}

void throw_too_large(std::size_t bytes, const Info& info) {
  constexpr std::size_t max_of_name = 28;  // characters of the name in a position's share of the text
  throw OutOfMemory("the grid", bytes, info.free_bytes,
                    "on device " + info.name.substr(0, max_of_name) + " (of " + std::to_string(info.total_bytes) + ")");
}

void throw_no_pinned(std::size_t bytes) {
  throw OutOfMemory("a buffer", bytes, available_memory(), "of host memory for a device");
}

void* new_host_memory(std::size_t bytes) {
  void* const memory = ::operator new(bytes, host_alignment, std::nothrow);
  if (memory == nullptr) throw_no_pinned(bytes);
  return memory;
}

#if !HALOSCOPE_CUDA
Backend cuda_backend() {
  return {"cuda",
          [] { return std::string("this build has no CUDA; configure it with -DHALOSCOPE_CUDA=ON (needs nvcc)"); },
          [] { return 0; }, nullptr};
}
#endif
#if !HALOSCOPE_HIP
Backend hip_backend() {
  return {"hip",
          [] { return std::string("this build has no HIP; configure it with -DHALOSCOPE_HIP=ON (needs hipcc)"); },
          [] { return 0; }, nullptr};
}
#endif

namespace {

std::vector<Backend>& known_backends() {
  static std::vector<Backend> all{
#define BACKEND(name) name##_backend(),
#include "haloscope/device/backends.def"
#undef BACKEND
  };
  return all;
}

}  // namespace

const std::vector<Backend>& backends() { return known_backends(); }

void add_backend(const Backend& backend) {
  add_backend_name(backend.name);
  known_backends().push_back(backend);
}

const Backend& find_backend(const std::string& name) {
  std::vector<std::string> names{"auto"};
  for (const Backend& backend : backends()) {
    if (backend.name != name && !(name == "auto" && backend.absent().empty())) {
      names.push_back(backend.name);
      continue;
    }
    if (const std::string reason = backend.absent(); !reason.empty())
      throw UnavailableError("device back end '" + name + "' is not available here: " + reason);
    return backend;
  }
  throw UsageError(unknown_name("device back end", name, names));
}

Place place_of(const void* address) {
  for (const Backend& backend : backends())
    if (const int index = backend.owner != nullptr ? backend.owner(address) : -1; index >= 0) return {&backend, index};
  return {};
}

}  // namespace haloscope::device
