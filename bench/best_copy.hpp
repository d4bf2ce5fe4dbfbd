// The best copy of two arrays: the fastest of a plain copy, a copy with non-temporal stores, and a copy with
// non-temporal stores in four streams, all timed in turn with the code that is compared with them.
#pragma once

#include "haloscope/kernels/kernel.hpp"
#include "haloscope/kernels/probe.hpp"
#include "harness.hpp"

namespace haloscope::bench {

inline std::byte* next_line(std::byte* p) { return p + (-reinterpret_cast<std::uintptr_t>(p) & 63); }

inline std::function<void()> copy_job(CopyKind kind, std::size_t bytes, const Storage& fields, Team& team) {
  std::byte *in = next_line(fields.bytes(0, 0).data()), *out = next_line(fields.bytes(0, 1).data());
  return [=, &team] {
    team.run([&](int member) {
      const auto [lo, hi] = share(static_cast<std::int64_t>(bytes / 64), member, team.size());
      copy_bytes(kind, out + lo * 64, in + lo * 64, static_cast<std::size_t>(hi - lo) * 64);
    });
  };
}

/// Appends the three copies of the first `bytes` of slot 0 to slot 1 of field 0, named "copy ...".
inline void add_copies(std::vector<Variant>& variants, std::size_t bytes, const Storage& fields, Team& team) {
  variants.push_back({"copy plain", copy_job(CopyKind::plain, bytes, fields, team)});
  variants.push_back({"copy nt", copy_job(CopyKind::stream, bytes, fields, team)});
  variants.push_back({"copy nt 4 streams", copy_job(CopyKind::stream4, bytes, fields, team)});
}

inline std::string copy_notes(const std::vector<Variant>& variants, double gigabytes) {
  std::string text = "arrays 0.5 GB each, fields as the library allocates them; medians in GB/s:";
  char part[80];
  for (const auto& v : variants) {
    if (v.name.rfind("copy", 0) != 0) continue;
    std::snprintf(part, sizeof part, " %s %.1f,", v.name.c_str(), gigabytes / median(v.seconds));
    text += part;
  }
  text.back() = ';';
  return text + " isa " + find_kernel("laplace2d", Real::f64).isa;
}

}  // namespace haloscope::bench
