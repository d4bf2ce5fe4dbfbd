// The copies that bounds are measured with do copy, and nothing more.
#include "haloscope/kernels/probe.hpp"

#include <gtest/gtest.h>

#include "reference.hpp"

namespace haloscope {
namespace {

TEST(Probe, EveryKindOfCopyMovesAllBytesAndNoOthers) {
  std::mt19937_64 rng(11);
  for (const auto& isa : kernel_isas()) {
    for (const CopyKind kind : {CopyKind::plain, CopyKind::stream, CopyKind::stream4}) {
      for (const std::size_t lines : {0, 1, 7, 2048, 2049, 5000}) {
        std::vector<std::uint64_t> in(lines * 8 + 16), out(lines * 8 + 32);
        for (auto& x : in) x = rng();
        for (auto& x : out) x = rng();
        const auto aligned = [](std::vector<std::uint64_t>& v) {
          std::size_t skip = 8;
          while (reinterpret_cast<std::uintptr_t>(v.data() + skip) % 64) ++skip;
          return skip;
        };
        std::size_t from = 0;
        while (reinterpret_cast<std::uintptr_t>(in.data() + from) % 64) ++from;
        const std::size_t to = aligned(out);
        auto expected = out;
        std::copy_n(in.begin() + from, lines * 8, expected.begin() + to);
        copy_bytes(kind, out.data() + to, in.data() + from, lines * 64, isa);
        EXPECT_EQ(out, expected) << isa << ", kind " << static_cast<int>(kind) << ", lines " << lines;
      }
    }
  }
}

TEST(Probe, CountsAtLeastTheMultiplyAddsAskedFor) {
  for (const auto& isa : kernel_isas()) EXPECT_GE(run_fma(1000, isa), 2000.0);
}

}  // namespace
}  // namespace haloscope
