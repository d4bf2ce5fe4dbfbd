// The loops that measure bounds do their work, and no other.
#include "haloscope/kernels/probe.hpp"

#include <gtest/gtest.h>

#include "kernel_reference.hpp"

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

TEST(Probe, DB4_EveryPassComputesAllElementsAndWritesNoOthers) {
  struct alignas(64) Line {
    double lane[8];
  };
  for (const auto& isa : kernel_isas()) {
    for (const std::size_t n : {std::size_t{0}, pass_doubles, 7 * pass_doubles}) {
      std::vector<Line> lines(3 * (n / 8 + 1), Line{{-1, -1, -1, -1, -1, -1, -1, -1}});
      double* const a = lines.data()->lane;
      double *const b = a + n + 8, *const c = b + n + 8;
      const auto check = [&](Pass pass, auto expected) {
        for (std::size_t i = 0; i < n; ++i) a[i] = static_cast<double>(i), b[i] = 2.0 * a[i] + 1, c[i] = a[i] * a[i];
        const double sum = find_memory_pass(pass, isa)(a, b, c, 3, n);
        for (std::size_t i = 0; i < n; ++i)
          EXPECT_EQ(a[i], expected(static_cast<double>(i), b[i], c[i])) << isa << " " << static_cast<int>(pass);
        for (std::size_t i = n; i < n + 8; ++i) EXPECT_EQ(a[i], -1) << isa << " " << static_cast<int>(pass);
        return sum;
      };
      check(Pass::scale, [](double, double y, double) { return 3 * y; });
      check(Pass::add, [](double, double y, double z) { return y + z; });
      check(Pass::triad, [](double, double y, double z) { return y + 3 * z; });
      const double sum = check(Pass::read, [](double x, double, double) { return x; });
      EXPECT_EQ(sum, static_cast<double>(n) * (static_cast<double>(n) - 1) / 2);
      check(Pass::write, [](double, double, double) { return 3.0; });
      check(Pass::update, [](double x, double, double) { return x + 3; });
    }
  }
}

TEST(Probe, CountsAtLeastTheMultiplyAddsAskedFor) {
  for (const auto& isa : kernel_isas()) EXPECT_GE(run_fma(1000, isa), 2000.0);
}

}  // namespace
}  // namespace haloscope
