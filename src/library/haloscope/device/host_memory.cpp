#include "haloscope/device/host_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "haloscope/core/out_of_memory.hpp"
#include "haloscope/error.hpp"

namespace haloscope::device::host {
namespace {

struct SharedFile {
  int number = -1;
  std::size_t bytes = 0;
  int device = 0;
};

/// The data that another process needs to open it.
struct Handle {
  pid_t process;
  int number;
  std::size_t bytes;
};

/// All memory of imitated devices in this process, by its first byte.
class Known {
 public:
  static Known& all() {
    static Known known;
    return known;
  }
  /// Null where the system refuses.
  void* map(const SharedFile& file) {
    void* const memory =
        file.number < 0 ? MAP_FAILED : mmap(nullptr, file.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.number, 0);
    if (memory == MAP_FAILED) {
      if (file.number >= 0) close(file.number);
      return nullptr;
    }
    const std::lock_guard lock(mutex_);
    return files_[static_cast<std::byte*>(memory)] = file, memory;
  }
  SharedFile at(void* memory) {
    const std::lock_guard lock(mutex_);
    return found(memory)->second;
  }
  SharedFile take(void* memory) {
    const std::lock_guard lock(mutex_);
    return files_.extract(found(memory)).mapped();
  }
  int owner(const void* address) {
    const std::lock_guard lock(mutex_);
    const auto* const byte = static_cast<const std::byte*>(address);
    const auto after = files_.upper_bound(const_cast<std::byte*>(byte));
    if (after == files_.begin()) return -1;
    const auto& [begin, file] = *std::prev(after);
    return byte < begin + file.bytes ? file.device : -1;
  }

 private:
  std::map<std::byte*, SharedFile>::iterator found(void* memory) {
    const auto file = files_.find(static_cast<std::byte*>(memory));
    if (file == files_.end())
      throw UsageError("no memory of an imitated device begins at this address; pass one that was allocated there");
    return file;
  }

  std::mutex mutex_;
  std::map<std::byte*, SharedFile> files_;
};

}  // namespace

void* new_memory(std::size_t bytes, int device) {
  const std::size_t size = bytes > 0 ? bytes : 1;
  SharedFile file{memfd_create("haloscope-device", MFD_CLOEXEC), size, device};
  if (file.number >= 0 && ftruncate(file.number, static_cast<off_t>(size)) != 0) close(std::exchange(file.number, -1));
  if (void* const memory = Known::all().map(file); memory != nullptr) return memory;
  throw OutOfMemory("the grid", bytes, available_memory(), "on an imitated device");
}

void* map_memory(const MemoryHandle& handle, int device) {
  Handle theirs;
  std::memcpy(&theirs, handle.data.data(), sizeof theirs);
  const std::string path = "/proc/" + std::to_string(theirs.process) + "/fd/" + std::to_string(theirs.number);
  void* const memory = Known::all().map({open(path.c_str(), O_RDWR | O_CLOEXEC), theirs.bytes, device});
  if (memory != nullptr) return memory;
  throw Error(Exit::failed, "cannot map the device memory of process " + std::to_string(theirs.process) + ": " +
                                std::strerror(errno) + "; use transport staged");
}

std::size_t release_memory(void* memory) {
  const SharedFile file = Known::all().take(memory);
  munmap(memory, file.bytes);
  close(file.number);
  return file.bytes;
}

MemoryHandle handle_of(void* memory) {
  const SharedFile file = Known::all().at(memory);
  const Handle mine{getpid(), file.number, file.bytes};
  MemoryHandle handle;
  std::memcpy(handle.data.data(), &mine, sizeof mine);
  return handle;
}

int owner_of(const void* address) { return Known::all().owner(address); }

}  // namespace haloscope::device::host
