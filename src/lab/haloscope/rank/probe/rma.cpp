// One-sided communication in each synchronisation mode: everyone puts into, or gets from, the next rank of a ring.
#include <algorithm>
#include <functional>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/rank/probe/probe.hpp"

namespace haloscope::probing {

namespace {

constexpr int ints = 40;

/// Memory of `ints` numbers per rank to put into, and equally many to get from.
struct Ring {
  explicit Ring(MPI_Comm comm_of_all) : comm(comm_of_all) {
    REQUIRE_MPI(MPI_Comm_rank(comm, &rank));
    REQUIRE_MPI(MPI_Comm_size(comm, &size));
    next = (rank + 1) % size;
    previous = (rank + size - 1) % size;
    REQUIRE_MPI(MPI_Win_allocate(2 * ints * sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &base, &window));
    REQUIRE_MPI(MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN));
    std::fill_n(base, 2 * ints, -1);
    REQUIRE_MPI(MPI_Barrier(comm));
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() { REQUIRE_MPI(MPI_Win_free(&window)); }

  MPI_Comm comm;
  MPI_Win window = MPI_WIN_NULL;
  int* base = nullptr;
  int rank = 0, size = 1, next = 0, previous = 0;
  std::vector<int> local = std::vector<int>(ints);
};

int number_at(int rank, int round, int i) { return (round * 64 + rank) * 64 + i; }

/// The numbers a round moves: a put leaves them in the first half of the target, a get takes them from the second half.
void prepare(Ring& ring, int round, bool put) {
  for (int i = 0; i < ints; ++i) (put ? ring.local[i] : ring.base[ints + i]) = number_at(ring.rank, round, i);
}
void check(std::string& complaint, Ring& ring, int round, bool put) {
  for (int i = 0; i < ints; ++i)
    expect(complaint, put ? "a number put" : "a number got", put ? ring.base[i] : ring.local[i],
           number_at(put ? ring.previous : ring.next, round, i));
}
void move(Ring& ring, bool put) {
  if (put)
    REQUIRE_MPI(MPI_Put(ring.local.data(), ints, MPI_INT, ring.next, 0, ints, MPI_INT, ring.window));
  else
    REQUIRE_MPI(MPI_Get(ring.local.data(), ints, MPI_INT, ring.next, ints, ints, MPI_INT, ring.window));
}

Finding fence(MPI_Comm comm, bool put) {
  Ring ring(comm);
  std::string complaint;
  for (int round = 0; round < rounds; ++round) {
    prepare(ring, round, put);
    REQUIRE_MPI(MPI_Win_fence(MPI_MODE_NOPRECEDE, ring.window));
    move(ring, put);
    REQUIRE_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED | (put ? 0 : MPI_MODE_NOPUT), ring.window));
    check(complaint, ring, round, put);
    REQUIRE_MPI(MPI_Barrier(comm));
  }
  return wrong_if(complaint);
}

Finding pscw(MPI_Comm comm, bool put) {
  Ring ring(comm);
  MPI_Group all, from, to;
  REQUIRE_MPI(MPI_Comm_group(comm, &all));
  REQUIRE_MPI(MPI_Group_incl(all, 1, &ring.previous, &from));
  REQUIRE_MPI(MPI_Group_incl(all, 1, &ring.next, &to));
  std::string complaint;
  for (int round = 0; round < rounds; ++round) {
    prepare(ring, round, put);
    REQUIRE_MPI(MPI_Win_post(from, 0, ring.window));
    REQUIRE_MPI(MPI_Win_start(to, 0, ring.window));
    move(ring, put);
    REQUIRE_MPI(MPI_Win_complete(ring.window));
    REQUIRE_MPI(MPI_Win_wait(ring.window));
    check(complaint, ring, round, put);
  }
  for (MPI_Group* group : {&all, &from, &to}) REQUIRE_MPI(MPI_Group_free(group));
  return wrong_if(complaint);
}

/// Passive target. Local stores and loads are made in an epoch on the own rank, so that it is right in the separate
/// memory model too.
Finding passive(MPI_Comm comm, bool put, const std::function<void(Ring&)>& transfer) {
  Ring ring(comm);
  std::string complaint;
  for (int round = 0; round < rounds; ++round) {
    REQUIRE_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, ring.rank, 0, ring.window));
    prepare(ring, round, put);
    REQUIRE_MPI(MPI_Win_unlock(ring.rank, ring.window));
    REQUIRE_MPI(MPI_Barrier(comm));
    transfer(ring);
    REQUIRE_MPI(MPI_Barrier(comm));
    REQUIRE_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, ring.rank, 0, ring.window));
    check(complaint, ring, round, put);
    REQUIRE_MPI(MPI_Win_unlock(ring.rank, ring.window));
  }
  return wrong_if(complaint);
}

Finding lock(MPI_Comm comm, bool put) {
  return passive(comm, put, [put](Ring& ring) {
    for (int kind : {MPI_LOCK_SHARED, MPI_LOCK_EXCLUSIVE}) {
      REQUIRE_MPI(MPI_Win_lock(kind, ring.next, 0, ring.window));
      move(ring, put);
      REQUIRE_MPI(MPI_Win_unlock(ring.next, ring.window));
    }
  });
}

Finding lockall(MPI_Comm comm, bool put) {
  return passive(comm, put, [put](Ring& ring) {
    REQUIRE_MPI(MPI_Win_lock_all(0, ring.window));
    move(ring, put);
    REQUIRE_MPI(MPI_Win_flush(ring.next, ring.window));
    REQUIRE_MPI(MPI_Win_unlock_all(ring.window));
  });
}

Finding rget(MPI_Comm comm) {
  return passive(comm, false, [](Ring& ring) {
    MPI_Request request;
    REQUIRE_MPI(MPI_Win_lock_all(0, ring.window));
    REQUIRE_MPI(MPI_Rget(ring.local.data(), ints, MPI_INT, ring.next, ints, ints, MPI_INT, ring.window, &request));
    REQUIRE_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    REQUIRE_MPI(MPI_Win_unlock_all(ring.window));
  });
}

/// All ranks concurrently raise one number of rank 0 to their greatest number.
Finding accumulate_max(MPI_Comm comm) {
  Ring ring(comm);
  const double mine = 1.5 + ring.rank;
  double* cell = nullptr;
  MPI_Win window;
  REQUIRE_MPI(MPI_Win_allocate(sizeof(double), sizeof(double), MPI_INFO_NULL, comm, &cell, &window));
  REQUIRE_MPI(MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN));
  *cell = 0;
  REQUIRE_MPI(MPI_Win_fence(0, window));
  REQUIRE_MPI(MPI_Accumulate(&mine, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, MPI_MAX, window));
  REQUIRE_MPI(MPI_Win_fence(0, window));
  std::string complaint;
  if (ring.rank == 0) expect(complaint, "the greatest number", *cell, 0.5 + ring.size);
  REQUIRE_MPI(MPI_Win_free(&window));
  return wrong_if(complaint);
}

/// Not right or wrong: which of the two memory models this window has.
Finding memory_model(MPI_Comm comm) {
  Ring ring(comm);
  int* model = nullptr;
  int known = 0;
  REQUIRE_MPI(MPI_Win_get_attr(ring.window, MPI_WIN_MODEL, &model, &known));
  if (!known) return {false, "MPI_WIN_MODEL is not set"};
  return {true, *model == MPI_WIN_UNIFIED ? "unified" : "separate"};
}

template <Finding (*mode)(MPI_Comm, bool), bool put>
Finding with(MPI_Comm comm) {
  return mode(comm, put);
}

}  // namespace

std::vector<Probe> rma_probes() {
  return {{"rma-memory-model", memory_model},        {"rma-fence-put", with<fence, true>},
          {"rma-fence-get", with<fence, false>},     {"rma-pscw-put", with<pscw, true>},
          {"rma-pscw-get", with<pscw, false>},       {"rma-lock-put", with<lock, true>},
          {"rma-lock-get", with<lock, false>},       {"rma-lockall-put", with<lockall, true>},
          {"rma-lockall-get", with<lockall, false>}, {"rma-rget", rget},
          {"rma-accumulate-max", accumulate_max}};
}

}  // namespace haloscope::probing
