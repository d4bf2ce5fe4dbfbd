// Collective operations alone: no rank is late, so that their time is their cost alone.
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/rank/microbench/pattern.hpp"

namespace haloscope {

/// A sum of `bytes` / 4 floats, as IMB's Allreduce.
void measure_allreduce(Bench& bench, std::int64_t bytes, nlohmann::json& entry) {
  const int count = static_cast<int>(bytes / 4), ranks = bench.session.size;
  std::vector<float> mine(static_cast<std::size_t>(count)), sum(mine.size());
  const auto number = [](int rank, int i) { return static_cast<float>((rank + i) % 8); };  // sums are exact
  for (int i = 0; i < count; ++i) mine[i] = number(bench.session.rank, i);
  const MPI_Comm comm = bench.session.comm;
  const auto reduce = [&] { REQUIRE_MPI(MPI_Allreduce(mine.data(), sum.data(), count, MPI_FLOAT, MPI_SUM, comm)); };
  entry["allreduce_s"] = bench.sampler().of_messages()(reduce);
  for (int i = 0; i < count; ++i) {
    float expected = 0;
    for (int rank = 0; rank < ranks; ++rank) expected += number(rank, i);
    bench.right &= sum[i] == expected;
  }
}

/// Every rank gets `bytes` bytes of every rank.
void measure_allgather(Bench& bench, std::int64_t bytes, nlohmann::json& entry) {
  const auto size = static_cast<std::size_t>(bytes);
  std::vector<std::uint8_t> mine(size), all(size * static_cast<std::size_t>(bench.session.size));
  const auto value = [](int rank, std::size_t i) {
    return static_cast<std::uint8_t>(i * 131 + (i >> 8) * 29 + static_cast<std::size_t>(rank) * 17);
  };
  for (std::size_t i = 0; i < size; ++i) mine[i] = value(bench.session.rank, i);
  const MPI_Comm comm = bench.session.comm;
  const int count = static_cast<int>(bytes);
  entry["allgather_s"] = bench.sampler().of_messages()(
      [&] { REQUIRE_MPI(MPI_Allgather(mine.data(), count, MPI_BYTE, all.data(), count, MPI_BYTE, comm)); });
  for (int rank = 0; rank < bench.session.size; ++rank)
    for (std::size_t i = 0; i < size; ++i)
      bench.right &= all[static_cast<std::size_t>(rank) * size + i] == value(rank, i);
}

}  // namespace haloscope
