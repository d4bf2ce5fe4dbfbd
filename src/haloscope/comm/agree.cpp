#include "haloscope/agree.hpp"

#include <array>
#include <utility>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/settle.hpp"
#include "haloscope/comm/text.hpp"
#include "haloscope/comm/together.hpp"

namespace haloscope {
namespace {

struct Outcome {
  Exit exit = Exit::ok;
  std::string text;
};

Outcome outcome_of(const std::function<void()>& work) try {
  work();
  return {};
} catch (const Error& error) {
  return {error.exit_code(), error.what()};
} catch (const std::exception& error) {
  return {Exit::failed, error.what()};
} catch (...) {
  return {Exit::failed, "an exception that is not a std::exception"};
}

/// The first rank where something failed; the number of ranks if there is none.
int first_failed(MPI_Comm comm, bool failed) {
  int first = failed ? rank_in(comm) : ranks_in(comm);
  MPI_Request request;
  CHECK_MPI(MPI_Iallreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, comm, &request));
  meet_in(comm, request);
  return first;
}

Outcome outcome_of_rank(MPI_Comm comm, int rank, Outcome outcome) {
  int exit = static_cast<int>(outcome.exit);
  CHECK_MPI(MPI_Bcast(&exit, 1, MPI_INT, rank, comm));
  outcome.exit = static_cast<Exit>(exit);
  outcome.text = text_of_rank(comm, rank, std::move(outcome.text));
  return outcome;
}

}  // namespace

void fail(Exit exit, const std::string& message) {
  if (exit == Exit::usage) throw UsageError(message);
  if (exit == Exit::unavailable) throw UnavailableError(message);
  throw Error(exit, message);
}

void agree(MPI_Comm comm, const std::function<void()>& work) {
  const Outcome mine = outcome_of(work);
  const int first = first_failed(comm, mine.exit != Exit::ok);
  if (first == ranks_in(comm)) return;
  const Outcome theirs = outcome_of_rank(comm, first, mine);
  if (mine.exit != Exit::ok) fail(mine.exit, mine.text);
  fail(theirs.exit, "rank " + std::to_string(first) + ": " + theirs.text);
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
  MPI_Request request;
  CHECK_MPI(MPI_Iallreduce(MPI_IN_PLACE, both.data(), 2, MPI_UINT64_T, MPI_MAX, comm, &request));
  meet_in(comm, request);
  return both[0] == ~both[1];
}

}  // namespace haloscope
