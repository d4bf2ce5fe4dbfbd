// Reductions over ranks. Reductions whose numbers every rank gathers: against a sum in the order of ranks, call by
// call.
#include <bit>
#include <random>

#include "haloscope/comm/handles.hpp"
#include "haloscope/reduce/reducer.hpp"
#include "pmpi_counter.hpp"
#include "step_rig.hpp"

namespace haloscope::test {
namespace {

constexpr int threads = 3;

/// Numbers of any thread of any rank, the same on all ranks: most values that a type can have.
double number_of(NumberType type, int round, int rank, int thread, int i) {
  std::mt19937_64 random(static_cast<std::uint64_t>(((round * 64 + rank) * 64 + thread) * 1024 + i));
  if (type == NumberType::character) return static_cast<double>(random() % 80);
  if (type == NumberType::integer) return static_cast<double>(random() % 2000001) - 1e6;
  return std::ldexp(static_cast<double>(random()) - 9e18, static_cast<int>(random() % 40) - 60);
}

/// The results of ranks that add in the order of threads and ranks, each rank first its own numbers.
std::vector<double> in_order(const Reduction& r, int round) {
  std::vector<double> all(static_cast<std::size_t>(r.numbers), identity_of(r.op));
  for (int rank = 0; rank < world_size(); ++rank)
    for (int i = 0; i < r.numbers; ++i) {
      double mine = identity_of(r.op);
      for (int t = 0; t < threads; ++t) mine = combined(r.op, mine, number_of(r.type, round, rank, t, i));
      all[i] = combined(r.op, all[i], mine);
    }
  return all;
}

std::vector<Reduction> ways_to_gather() {
  std::vector<Reduction> all;
  for (ReduceBy by : {ReduceBy::gather, ReduceBy::lists})
    for (ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::min})
      for (NumberType type : {NumberType::real, NumberType::integer, NumberType::character})
        for (int collectives : {1, 3, 12})
          for (ReduceMode mode : {ReduceMode::blocking, ReduceMode::nonblocking, ReduceMode::deferred})
            if (mode == ReduceMode::blocking || (collectives == 1 && by == ReduceBy::gather))
              all.push_back({.name = "all",
                             .op = op,
                             .numbers = 12,
                             .mode = mode,
                             .collectives = collectives,
                             .by = by,
                             .type = type});
  return all;
}

std::string words_of(const Reduction& r) {
  return to_word(r.by) + " " + to_word(r.op) + " " + to_word(r.type) + " " + to_word(r.mode) + " in " +
         std::to_string(r.collectives);
}

/// @param beside  count of another reduction's numbers, which come first.
void contribute(Partials& partials, const Reduction& r, int round, int beside) {
  for (int t = 0; t < threads; ++t)
    for (int i = 0; i < r.numbers; ++i) {
      double& mine = partials.of(t)[beside + i];
      mine = combined(r.op, mine, number_of(r.type, round, world_rank(), t, i));
    }
}

TEST(Gathers, CombineTheNumbersOfRanksInTheirOrderBitForBit) {
  for (const Reduction& r : ways_to_gather()) {
    SCOPED_TRACE(words_of(r));
    Partials partials(threads);
    const Reduction other{.name = "other", .op = ReduceOp::min, .numbers = 5};
    Reducer beside(other, partials, MPI_COMM_WORLD, true), reducer(r, partials, MPI_COMM_WORLD, true);
    for (int round = 0; round < 3; ++round) {
      contribute(partials, r, round, other.numbers);
      reducer.start();
      reducer.wait();
      const auto expected = in_order(r, round);
      ASSERT_EQ(reducer.numbers().size(), expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_EQ(std::bit_cast<std::uint64_t>(reducer.numbers()[i]), std::bit_cast<std::uint64_t>(expected[i])) << i;
    }
  }
}

TEST(Gathers, HaveTheCallsAndBytesThatAreAskedFor) {
  const std::map<NumberType, std::int64_t> bytes{
      {NumberType::real, 8}, {NumberType::integer, 4}, {NumberType::character, 1}};
  for (const Reduction& r : ways_to_gather()) {
    SCOPED_TRACE(words_of(r));
    Partials partials(threads);
    Reducer reducer(r, partials, MPI_COMM_WORLD, true);
    const Calls before = calls();
    reducer.start();
    reducer.wait();
    EXPECT_EQ(calls().collectives - before.collectives, r.calls());
    const auto numbers = [&](const auto& gathers, std::int64_t size) {
      const auto found = gathers.find(size);
      return found == gathers.end() ? 0 : found->second;
    };
    const std::int64_t size = bytes.at(r.type) * (12 / r.collectives);
    const auto& lists = calls().list_gathers;
    if (r.by == ReduceBy::lists) {
      EXPECT_EQ(numbers(calls().gathers, 4) - numbers(before.gathers, 4), r.collectives) << "lengths";
      EXPECT_EQ(numbers(lists, size) - numbers(before.list_gathers, size), r.collectives);
    } else {
      EXPECT_EQ(numbers(calls().gathers, size) - numbers(before.gathers, size), r.collectives);
    }
  }
}

std::vector<Reduction> ways_to_reduce(int numbers) {
  std::vector<Reduction> all;
  for (ReduceBy by : {ReduceBy::reduce, ReduceBy::gather, ReduceBy::lists})
    for (ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::min})
      for (ReduceMode mode : {ReduceMode::blocking, ReduceMode::nonblocking, ReduceMode::deferred})
        if (mode == ReduceMode::blocking || by != ReduceBy::lists)
          all.push_back({.name = "all", .op = op, .numbers = numbers, .mode = mode, .by = by});
  return all;
}

/// The result of a reduction of `numbers` by each rank's one thread.
std::vector<double> reduced(const Reduction& r, const std::vector<double>& numbers) {
  Partials partials(1);
  Reducer reducer(r, partials, MPI_COMM_WORLD, true);
  std::copy(numbers.begin(), numbers.end(), partials.of(0));
  reducer.start();
  reducer.wait();
  return {reducer.numbers().begin(), reducer.numbers().end()};
}

TEST(Reductions, KeepANumberThatIsNoneOfOneThreadOfOneRank) {
  for (const Reduction& r : ways_to_reduce(2))
    for (int place = 0; place < world_size(); ++place)
      for (double nan : {std::nan(""), -std::nan("1")}) {
        SCOPED_TRACE(words_of(r));
        Partials partials(threads);
        Reducer reducer(r, partials, MPI_COMM_WORLD, true);
        for (int t = 0; t < threads; ++t) std::fill_n(partials.of(t), 2, t);
        if (place == world_rank()) partials.of(1)[1] = nan;
        reducer.start();
        reducer.wait();
        EXPECT_FALSE(std::isnan(reducer.numbers()[0]));
        EXPECT_TRUE(std::isnan(reducer.numbers()[1])) << reducer.numbers()[1];
      }
}

TEST(Reductions, OfAPipelineKeepANumberThatIsNone) {
  for (const auto& [scheme, summary] : reduction_schemes())
    for (ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::min})
      for (int place = 0; place < world_size(); ++place) {
        SCOPED_TRACE(scheme + " " + to_word(op) + " of rank " + std::to_string(place));
        const OwnedComm comm = duplicate(MPI_COMM_WORLD);
        const auto reducer = open_pipeline_reducer(scheme, {comm.get(), op, 2, true});
        const std::array mine{1.0 + world_rank(), place == world_rank() ? std::nan("") : 1.0};
        reducer->contribute(mine);
        reducer->close();
        if (world_rank() + 1 < world_size()) continue;
        std::array<double, 2> found{};
        reducer->collect(found);
        const int n = world_size();
        EXPECT_EQ(found[0], op == ReduceOp::sum ? n * (n + 1) / 2 : op == ReduceOp::max ? n : 1);
        EXPECT_TRUE(std::isnan(found[1])) << found[1];
      }
}

TEST(Reductions, FindTheLargestAndTheLeastOfAllRealNumbers) {
  using Limits = std::numeric_limits<double>;
  const std::vector<double> kinds{
      -Limits::infinity(),  Limits::lowest(), -1.5, -Limits::denorm_min(), 0.0,
      Limits::denorm_min(), Limits::min(),    2.25, Limits::max(),         Limits::infinity()};
  const int count = static_cast<int>(kinds.size()), ranks = world_size();
  for (const Reduction& r : ways_to_reduce(count)) {
    if (r.op == ReduceOp::sum) continue;
    SCOPED_TRACE(words_of(r));
    std::vector<double> mine, expected;
    for (int i = 0; i < count; ++i) {
      mine.push_back(kinds[(i + 3 * world_rank()) % count]);
      double all = kinds[i];
      for (int rank = 1; rank < ranks; ++rank) {
        const double one = kinds[(i + 3 * rank) % count];
        all = r.op == ReduceOp::max ? std::max(all, one) : std::min(all, one);
      }
      expected.push_back(all);
    }
    EXPECT_EQ(reduced(r, mine), expected);
  }
}

TEST(Gathers, KeepIntegersAndCharactersWithinTheirRange) {
  for (NumberType type : {NumberType::integer, NumberType::character}) {
    const Reduction r{.name = "all", .op = ReduceOp::max, .numbers = 4, .by = ReduceBy::gather, .type = type};
    Partials partials(1);
    Reducer reducer(r, partials, MPI_COMM_WORLD, true);
    const double values[] = {-1e300, 1e300, 2.75, -0.5};
    std::copy_n(values, 4, partials.of(0));
    reducer.start();
    const bool wide = type == NumberType::integer;
    const std::vector<double> expected{wide ? -2147483648.0 : 0, wide ? 2147483647.0 : 255, 2, 0};
    EXPECT_EQ(std::vector(reducer.numbers().begin(), reducer.numbers().end()), expected);
  }
}

}  // namespace
}  // namespace haloscope::test
