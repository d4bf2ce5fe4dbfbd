#include "haloscope/extend/agree.hpp"

#include <array>
#include <cstring>
#include <functional>
#include <new>
#include <string_view>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/together.hpp"
#include "haloscope/core/making.hpp"
#include "haloscope/core/out_of_memory.hpp"

namespace haloscope {
namespace {

/// The outcome of a rank's work. Its size is fixed: it is made where memory may be exhausted, and must not delay the
/// other ranks then.
struct Outcome {
  Exit exit = Exit::ok;
  std::array<char, 4092> text{};

  Outcome() = default;
  Outcome(Exit code, const char* words) : exit(code) { std::strncpy(text.data(), words, text.size() - 1); }
};

Outcome outcome_of(void (*work)(const void* context), const void* context) try {
  work(context);
  return {};
} catch (const Error& error) {
  return {error.exit_code(), error.what()};
} catch (const std::bad_alloc&) {
  return {Exit::failed, exhausted_memory().data()};
} catch (const std::exception& error) {
  return {Exit::failed, error.what()};
} catch (...) {
  return {Exit::failed, "an exception that is not a std::exception"};
}

/// Returns the first rank whose work failed; the number of ranks if none did.
/// @throws UsageError, on all ranks, where they do not make the same object: their collective calls would not match.
int first_failed(MPI_Comm comm, bool failed) {
  const char* const made = Making::current() != nullptr ? Making::current() : "nothing";
  const auto hash = static_cast<std::int64_t>(std::hash<std::string_view>{}(made));
  std::array<std::int64_t, 3> least{failed ? rank_in(comm) : ranks_in(comm), hash, ~hash};
  reduce_together(comm, least, MPI_INT64_T, MPI_MIN);
  if (least[1] != ~least[2])
    throw UsageError(std::string("the ranks do not make the same thing: this one makes ") + made +
                     "; make the same calls on all ranks, in the same order");
  return static_cast<int>(least[0]);
}

}  // namespace

void fail(Exit exit, const std::string& message) {
  if (exit == Exit::usage) throw UsageError(message);
  if (exit == Exit::unavailable) throw UnavailableError(message);
  throw Error(exit, message);
}

void agree_on(MPI_Comm comm, void (*work)(const void* context), const void* context) {
  const Outcome mine = outcome_of(work, context);
  const int first = first_failed(comm, mine.exit != Exit::ok);
  if (first == ranks_in(comm)) return;
  Outcome theirs = mine;
  CHECK_MPI(MPI_Bcast(&theirs, sizeof theirs, MPI_BYTE, first, comm));
  if (mine.exit != Exit::ok) fail(mine.exit, mine.text.data());
  fail(theirs.exit, "rank " + std::to_string(first) + ": " + theirs.text.data());
}

int rank_in(MPI_Comm comm) {
  int rank = 0;
  CHECK_MPI(MPI_Comm_rank(comm, &rank));
  return rank;
}

int ranks_in(MPI_Comm comm) {
  int size = 1;
  CHECK_MPI(MPI_Comm_size(comm, &size));
  return size;
}

bool same_everywhere(MPI_Comm comm, std::uint64_t number) {
  std::array<std::uint64_t, 2> both{number, ~number};
  reduce_together(comm, both, MPI_UINT64_T, MPI_MAX);
  return both[0] == ~both[1];
}

}  // namespace haloscope
