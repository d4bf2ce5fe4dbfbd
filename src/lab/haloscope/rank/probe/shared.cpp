// Shared-memory windows: neighbours load the stores of a rank; alignment of the memory.
#include <atomic>
#include <cstdint>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/rank/probe/probe.hpp"

namespace haloscope::probing {

namespace {

/// A shared window over the ranks of `comm` that share memory.
struct SharedWindow {
  explicit SharedWindow(MPI_Comm comm, bool apart = false) {
    REQUIRE_MPI(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    REQUIRE_MPI(MPI_Comm_rank(node, &rank));
    REQUIRE_MPI(MPI_Comm_size(node, &size));
    MPI_Info info;
    REQUIRE_MPI(MPI_Info_create(&info));
    if (apart) REQUIRE_MPI(MPI_Info_set(info, "alloc_shared_noncontig", "true"));
    // A different size for every rank, none of them a multiple of a cache line.
    REQUIRE_MPI(MPI_Win_allocate_shared(bytes(rank), 1, info, node, &base, &window));
    REQUIRE_MPI(MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN));
    REQUIRE_MPI(MPI_Info_free(&info));
  }
  SharedWindow(const SharedWindow&) = delete;
  SharedWindow& operator=(const SharedWindow&) = delete;
  ~SharedWindow() {
    REQUIRE_MPI(MPI_Win_free(&window));
    REQUIRE_MPI(MPI_Comm_free(&node));
  }
  static MPI_Aint bytes(int of) { return static_cast<MPI_Aint>(sizeof(std::int64_t)) * (11 + of); }
  std::int64_t* of(int other, MPI_Aint& length) const {
    int unit = 0;
    void* place = nullptr;
    REQUIRE_MPI(MPI_Win_shared_query(window, other, &length, &unit, &place));
    return static_cast<std::int64_t*>(place);
  }

  MPI_Comm node = MPI_COMM_NULL;
  MPI_Win window = MPI_WIN_NULL;
  std::int64_t* base = nullptr;
  int rank = 0, size = 1;
};

/// Everyone stores into the memory of the next rank, which then loads it; between the two a barrier.
Finding load_store(MPI_Comm comm) {
  SharedWindow shared(comm);
  const int next = (shared.rank + 1) % shared.size, previous = (shared.rank + shared.size - 1) % shared.size;
  std::string complaint;
  REQUIRE_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, shared.window));
  for (int round = 0; round < 3; ++round) {
    MPI_Aint length = 0;
    std::int64_t* there = shared.of(next, length);
    expect(complaint, "the size queried from a neighbour", length, SharedWindow::bytes(next));
    const auto count = static_cast<int>(SharedWindow::bytes(next) / sizeof(std::int64_t));
    for (int i = 0; i < count; ++i) there[i] = round * 1000 + shared.rank * 100 + i;
    REQUIRE_MPI(MPI_Win_sync(shared.window));
    REQUIRE_MPI(MPI_Barrier(shared.node));
    REQUIRE_MPI(MPI_Win_sync(shared.window));
    for (int i = 0; i < 11 + shared.rank; ++i)
      expect(complaint, "a number stored by the neighbour", shared.base[i],
             std::int64_t{round * 1000 + previous * 100 + i});
    REQUIRE_MPI(MPI_Barrier(shared.node));
  }
  REQUIRE_MPI(MPI_Win_unlock_all(shared.window));
  return wrong_if(complaint);
}

/// A flag stored with release and polled with acquire publishes all earlier stores, without a call of MPI.
Finding flags(MPI_Comm comm) {
  SharedWindow shared(comm);
  std::string complaint;
  REQUIRE_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, shared.window));
  shared.base[0] = 0;
  REQUIRE_MPI(MPI_Win_sync(shared.window));
  REQUIRE_MPI(MPI_Barrier(shared.node));
  MPI_Aint length = 0;
  std::int64_t* there = shared.of((shared.rank + 1) % shared.size, length);
  there[1] = 4711;
  std::atomic_ref<std::int64_t>(there[0]).store(1, std::memory_order_release);
  while (std::atomic_ref<std::int64_t>(shared.base[0]).load(std::memory_order_acquire) == 0) {
    int ready = 0;  // lets other ranks of a crowded core run
    REQUIRE_MPI(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, shared.node, &ready, MPI_STATUS_IGNORE));
  }
  expect(complaint, "the number stored before the flag", shared.base[1], std::int64_t{4711});
  REQUIRE_MPI(MPI_Barrier(shared.node));
  REQUIRE_MPI(MPI_Win_unlock_all(shared.window));
  return wrong_if(complaint);
}

/// Tests that every rank's part begins on a cache line; if not, transports must align it themselves.
Finding aligned(MPI_Comm comm) {
  SharedWindow shared(comm, true);
  if (shared.size == 1) return {true, "nothing is shared by one rank"};
  const auto past = reinterpret_cast<std::uintptr_t>(shared.base) % 64;
  return wrong_if(past ? "memory begins " + std::to_string(past) + " bytes past a 64-byte boundary" : "");
}

}  // namespace

std::vector<Probe> shared_probes() {
  return {{"shared-load-store", load_store}, {"shared-flags", flags}, {"shared-aligned", aligned}};
}

}  // namespace haloscope::probing
