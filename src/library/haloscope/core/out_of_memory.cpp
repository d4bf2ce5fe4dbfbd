#include "haloscope/core/out_of_memory.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace haloscope {
namespace {

/// The beginning of a file, read without allocating memory.
class FileText {
 public:
  explicit FileText(const char* path) noexcept {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    ssize_t length = 0;
    for (ssize_t n = 1; n > 0 && length < max_bytes;)
      if (n = read(file, text_.data() + length, static_cast<std::size_t>(max_bytes - length)); n > 0) length += n;
    close(file);
  }
  const char* data() const { return text_.data(); }
  /// Returns the text after a name at the beginning of a line; null where no line has it.
  const char* after(const char* name) const noexcept {
    const std::size_t length = std::strlen(name);
    for (const char* line = text_.data(); line != nullptr && *line != '\0'; line = std::strchr(line, '\n')) {
      line += *line == '\n';
      if (std::strncmp(line, name, length) == 0) return line + length;
    }
    return nullptr;
  }
  /// Returns the number after a name; -1 where the file has none.
  std::int64_t number(const char* name) const noexcept {
    const char* const at = after(name);
    char* end = nullptr;
    const std::int64_t value = at != nullptr ? std::strtoll(at, &end, 10) : 0;
    return at != nullptr && end != at ? value : -1;
  }

 private:
  static constexpr ssize_t max_bytes = 8191;
  std::array<char, max_bytes + 1> text_{};
};

/// Returns the smaller limit; -1 represents a limit that does not exist.
std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < 0 ? b : b < 0 ? a : std::min(a, b); }

struct Limits {
  std::int64_t available = -1, total = -1;

  void add(const Limits& others) {
    available = smaller(available, others.available);
    total = smaller(total, others.total);
  }
};

Limits of_system() noexcept {
  const FileText text("/proc/meminfo");
  const std::int64_t total = text.number("MemTotal:"), available = text.number("MemAvailable:");
  if (total < 0 || available < 0) return {};
  const std::int64_t free_swap = std::max<std::int64_t>(0, text.number("SwapFree:"));
  return {(available + free_swap) << 10, (total + std::max<std::int64_t>(0, text.number("SwapTotal:"))) << 10};
}

/// Names of the files of one version of control groups.
struct GroupFiles {
  const char *root, *line, *limit, *used, *old_file, *new_file;
};
constexpr GroupFiles version_2{"/sys/fs/cgroup", "0::",         "memory.max", "memory.current",
                               "inactive_file ", "active_file "};
constexpr GroupFiles version_1{
    "/sys/fs/cgroup/memory", ":memory:",          "memory.limit_in_bytes", "memory.usage_in_bytes",
    "total_inactive_file ",  "total_active_file "};

using Path = std::array<char, 1024>;

bool make_path(const Path& folder, const char* name, Path& path) noexcept {
  return std::snprintf(path.data(), path.size(), "%s/%s", folder.data(), name) < static_cast<int>(path.size());
}

std::int64_t number_in(const Path& folder, const char* name) noexcept {
  Path path;
  return make_path(folder, name, path) ? FileText(path.data()).number("") : -1;
}

std::int64_t swap_bytes() noexcept {
  return std::max<std::int64_t>(0, FileText("/proc/meminfo").number("SwapTotal:")) << 10;
}

/// Returns the limits of a group. Page cache is released when memory is needed, so it counts as available. The group
/// may use all swap of the system.
Limits of_group(const GroupFiles& files, const Path& folder) noexcept {
  const std::int64_t limit = number_in(folder, files.limit), used = number_in(folder, files.used);
  if (limit < 0 || used < 0 || limit >= std::int64_t{1} << 60) return {};
  Path path;
  if (!make_path(folder, "memory.stat", path)) return {};
  const FileText text(path.data());
  const std::int64_t cache =
      std::max<std::int64_t>(0, text.number(files.old_file)) + std::max<std::int64_t>(0, text.number(files.new_file));
  return {std::max<std::int64_t>(0, limit - used + cache), limit + swap_bytes()};
}

/// Returns the path of this process's group below the root, without the end of its line; "" where it has none.
Path group_path(const GroupFiles& files) noexcept {
  const FileText text("/proc/self/cgroup");
  const char* at = std::strstr(text.data(), files.line);
  Path path{};
  if (at == nullptr) return path;
  at += std::strlen(files.line);
  const std::size_t length = std::min(std::strcspn(at, "\n"), path.size() - 1);
  std::memcpy(path.data(), at, length);
  return path;
}

/// Returns the limits of a group and all groups above it. In a container the root may be the group itself, and its
/// path the path on the host.
Limits of_groups(const GroupFiles& files) noexcept {
  Limits limits;
  Path group = group_path(files), folder;
  for (;;) {
    const int length = std::snprintf(folder.data(), folder.size(), "%s%s", files.root, group.data());
    if (length < static_cast<int>(folder.size())) limits.add(of_group(files, folder));
    char* const slash = std::strrchr(group.data(), '/');
    if (slash == nullptr) return limits;
    *slash = '\0';
  }
}

Limits of_addresses() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  const auto most = static_cast<std::int64_t>(limit.rlim_cur);
  const std::int64_t pages = FileText("/proc/self/statm").number("");
  return {std::max<std::int64_t>(0, most - std::max<std::int64_t>(0, pages) * sysconf(_SC_PAGESIZE)), most};
}

Limits memory_limits() noexcept {
  Limits limits = of_system();
  limits.add(of_groups(version_2));
  limits.add(of_groups(version_1));
  limits.add(of_addresses());
  return limits;
}

}  // namespace

std::int64_t available_memory() noexcept { return memory_limits().available; }

std::int64_t total_memory() noexcept {
  static const std::int64_t bytes = memory_limits().total;
  return bytes;
}

OutOfMemory::OutOfMemory(const std::string& purpose, std::size_t bytes, std::int64_t available,
                         const std::string& where)
    : Error(Exit::failed,
            exhausted_memory(purpose.c_str(), static_cast<std::int64_t>(bytes), available, where.c_str()).data()) {}

ShortText available_text() noexcept {
  ShortText text;
  const std::int64_t bytes = available_memory();
  if (bytes >= 0)
    std::snprintf(text.data(), text.size(), "%lld bytes of memory are available", static_cast<long long>(bytes));
  else
    std::snprintf(text.data(), text.size(), "the system does not report how much memory is available");
  return text;
}

ShortText exhausted_memory(const char* purpose, std::int64_t bytes, std::int64_t available,
                           const char* where) noexcept {
  const std::size_t length = std::strlen(purpose);
  const bool several = length > 0 && purpose[length - 1] == 's';
  ShortText text, there;
  if (available >= 0)
    std::snprintf(there.data(), there.size(), "%lld are available", static_cast<long long>(available));
  else
    std::snprintf(there.data(), there.size(), "the system does not report how many it has");
  std::snprintf(text.data(), text.size(),
                "memory is exhausted: %.40s %s %lld bytes%s%.62s, and %.44s; use a smaller grid, fewer layers or more "
                "ranks",
                purpose, several ? "need" : "needs", static_cast<long long>(bytes), *where != '\0' ? " " : "", where,
                there.data());
  return text;
}

ShortText exhausted_memory() noexcept {
  ShortText text;
  std::snprintf(text.data(), text.size(),
                "memory is exhausted (std::bad_alloc) while the library made %s; %.80s; use a smaller grid or fewer "
                "ranks on this machine",
                Making::current() != nullptr ? Making::current() : "the result of the call", available_text().data());
  return text;
}

}  // namespace haloscope
