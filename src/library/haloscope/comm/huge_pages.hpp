// Huge pages under fields: the share that the system provides.
#pragma once

#include <cstddef>
#include <string>

namespace haloscope {

struct HugePages {
  std::size_t huge = 0, total = 0;  ///< bytes
  bool all() const { return huge == total; }
  std::string text() const;  ///< "64 of 64 MiB of a field on huge pages"
};

/// Writes every page of a field of 64 MiB and reads the number of huge pages from the system. Local.
HugePages try_huge_pages();

}  // namespace haloscope
