// How much of a field the system puts on huge pages.
#pragma once

#include <cstddef>
#include <string>

namespace haloscope {

struct HugePages {
  std::size_t huge = 0, total = 0;  ///< bytes
  bool all() const { return huge == total; }
  std::string text() const;  ///< "64 of 64 MiB of a field on huge pages"
};

/// Touch every page of a field of 64 MiB and ask the system what it gave. Local.
HugePages try_huge_pages();

/// The system's setting of transparent huge pages: "always", "madvise", "never"; "" where this kernel has none. Local.
std::string huge_page_setting();

}  // namespace haloscope
