// Headers of NumPy's files are read back as written; damaged ones are refused.
#include "haloscope/core/npy.hpp"

#include <gtest/gtest.h>

#include <random>

#include "texts.hpp"

namespace haloscope {
namespace {

using namespace test;

TEST(Npy, AHeaderIsReadBackAndEndsAtAMultipleOf64Bytes) {
  for (const NpyHeader& header : {NpyHeader{"<f8", false, {3, 4, 5}}, NpyHeader{"|u1", true, {1000000007}},
                                  NpyHeader{"<c16", false, {2, 1, 7, 3}}, NpyHeader{"|V24", true, {9, 9}}}) {
    const std::string bytes = npy_bytes(header);
    std::size_t at = 0;
    EXPECT_EQ(parse_npy(bytes + "numbers", at, "u"), header);
    EXPECT_EQ(at, bytes.size());
    EXPECT_EQ(at % 64, 0u);
  }
}

TEST(Npy, HeadersOfOtherVersionsAndSpacingAreRead) {
  const std::string text = "{'shape':(2,3),'descr':'<i4','fortran_order':False}\n";
  std::size_t at = 0;
  const std::string head{"\x93NUMPY\2\0", 8}, length{static_cast<char>(text.size()), 0, 0, 0};
  EXPECT_EQ(parse_npy(head + length + text, at, "u"), (NpyHeader{"<i4", false, {2, 3}}));
}

TEST(Npy, DamagedHeadersAreRefusedWithTheFault) {
  const std::string good = npy_bytes({"<f8", false, {3, 4}});
  const auto refusal = [&](const std::string& from, const std::string& to) {
    std::string bytes = good;
    bytes.replace(bytes.find(from), from.size(), to);
    std::size_t at = 0;
    return error_of([&] { parse_npy(bytes, at, "u.npy"); });
  };
  EXPECT_PART(refusal("NUMPY", "NIMPY"), "file 'u.npy' is not of this format");
  EXPECT_PART(refusal("'descr'", "'discr'"), "has no 'descr'");
  EXPECT_PART(refusal("'<f8'", "[('a'"), "structures");
  EXPECT_PART(refusal("False", "Maybe"), "unknown order");
  EXPECT_PART(refusal("(3, 4, )", "[3, 4, ]"), "shape that cannot be read");
  EXPECT_PART(refusal("(3, 4, )", "(3, -4,)"), "impossible extent, '-4'");
  EXPECT_PART(refusal("(3, 4, )", "(3,9e9,)"), "impossible extent");
}

TEST(Npy, AnyDamageIsReadOrRefused) {
  std::mt19937 random(5);
  const std::string good = npy_bytes({"<f8", true, {30, 40, 50}});
  for (int n = 0; n < 20000; ++n) {
    std::string bytes = good.substr(0, n % 3 == 0 ? random() % good.size() : good.size());
    for (int k = 0; k < 3 && !bytes.empty(); ++k) bytes[random() % bytes.size()] = static_cast<char>(random());
    std::size_t at = 0;
    try {
      parse_npy(bytes, at, "u");
      EXPECT_LE(at, bytes.size());
    } catch (const UsageError&) {
    }
  }
}

TEST(Npy, TypesHaveBytesOfThisMachinesOrder) {
  EXPECT_EQ(bytes_of_type("<f8"), 8);
  EXPECT_EQ(bytes_of_type("|V24"), 24);
  EXPECT_EQ(bytes_of_type("<c16"), 16);
  for (const char* type : {"", "<", ">f8", "<O8", "<f", "<f-8", "<f8x", "f8"})
    EXPECT_PART(error_of([&] { bytes_of_type(type); }), "type '");
}

}  // namespace
}  // namespace haloscope
