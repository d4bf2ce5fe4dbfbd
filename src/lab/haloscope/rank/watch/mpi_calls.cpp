#include "haloscope/rank/watch/mpi_calls.hpp"

#include <mpi.h>

#include <algorithm>
#include <atomic>

#include "haloscope/core/clock.hpp"

namespace haloscope {

namespace {

std::atomic<MpiClock*> running{nullptr};  // the one that counts at the moment

}  // namespace

// name, role, parameters, arguments
// clang-format off
#define HALOSCOPE_MPI_FUNCTIONS(X) \
  X(Send, waits, (const void* b, int n, MPI_Datatype t, int p, int tag, MPI_Comm c), (b, n, t, p, tag, c)) \
  X(Ssend, waits, (const void* b, int n, MPI_Datatype t, int p, int tag, MPI_Comm c), (b, n, t, p, tag, c)) \
  X(Recv, waits, (void* b, int n, MPI_Datatype t, int p, int tag, MPI_Comm c, MPI_Status* s), (b, n, t, p, tag, c, s)) \
  X(Sendrecv, waits, (const void* a, int n, MPI_Datatype t, int p, int tag, void* b, int m, MPI_Datatype u, int q, \
    int g, \
    MPI_Comm c, MPI_Status* s), (a, n, t, p, tag, b, m, u, q, g, c, s)) \
  X(Isend, starts, (const void* b, int n, MPI_Datatype t, int p, int tag, MPI_Comm c, MPI_Request* r), (b, n, t, p, \
    tag, c, r)) \
  X(Irecv, starts, (void* b, int n, MPI_Datatype t, int p, int tag, MPI_Comm c, MPI_Request* r), (b, n, t, p, tag, \
    c, r)) \
  X(Start, starts, (MPI_Request* r), (r)) \
  X(Startall, starts, (int n, MPI_Request r[]), (n, r)) \
  X(Wait, waits, (MPI_Request* r, MPI_Status* s), (r, s)) \
  X(Waitall, waits, (int n, MPI_Request r[], MPI_Status s[]), (n, r, s)) \
  X(Waitany, waits, (int n, MPI_Request r[], int* i, MPI_Status* s), (n, r, i, s)) \
  X(Waitsome, waits, (int n, MPI_Request r[], int* m, int i[], MPI_Status s[]), (n, r, m, i, s)) \
  X(Test, polls, (MPI_Request* r, int* f, MPI_Status* s), (r, f, s)) \
  X(Testall, polls, (int n, MPI_Request r[], int* f, MPI_Status s[]), (n, r, f, s)) \
  X(Testany, polls, (int n, MPI_Request r[], int* i, int* f, MPI_Status* s), (n, r, i, f, s)) \
  X(Testsome, polls, (int n, MPI_Request r[], int* m, int i[], MPI_Status s[]), (n, r, m, i, s)) \
  X(Probe, waits, (int p, int tag, MPI_Comm c, MPI_Status* s), (p, tag, c, s)) \
  X(Iprobe, polls, (int p, int tag, MPI_Comm c, int* f, MPI_Status* s), (p, tag, c, f, s)) \
  X(Barrier, waits, (MPI_Comm c), (c)) \
  X(Ibarrier, starts, (MPI_Comm c, MPI_Request* r), (c, r)) \
  X(Bcast, waits, (void* b, int n, MPI_Datatype t, int p, MPI_Comm c), (b, n, t, p, c)) \
  X(Reduce, waits, (const void* a, void* b, int n, MPI_Datatype t, MPI_Op o, int p, MPI_Comm c), (a, b, n, t, o, p, \
    c)) \
  X(Allreduce, waits, (const void* a, void* b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c), (a, b, n, t, o, c)) \
  X(Iallreduce, starts, (const void* a, void* b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c, MPI_Request* r), \
    (a, b, n, t, o, c, r)) \
  X(Allgather, waits, (const void* a, int n, MPI_Datatype t, void* b, int m, MPI_Datatype u, MPI_Comm c), (a, n, t, \
    b, m, u, c)) \
  X(Iallgather, starts, (const void* a, int n, MPI_Datatype t, void* b, int m, MPI_Datatype u, MPI_Comm c, \
    MPI_Request* r), \
    (a, n, t, b, m, u, c, r)) \
  X(Allgatherv, waits, (const void* a, int n, MPI_Datatype t, void* b, const int m[], const int d[], MPI_Datatype u, \
    MPI_Comm c), \
    (a, n, t, b, m, d, u, c)) \
  X(Neighbor_alltoallw, waits, (const void* a, const int n[], const MPI_Aint d[], const MPI_Datatype t[], void* b, \
    const int m[], \
    const MPI_Aint e[], const MPI_Datatype u[], MPI_Comm c), (a, n, d, t, b, m, e, u, c)) \
  X(Ineighbor_alltoallw, starts, (const void* a, const int n[], const MPI_Aint d[], const MPI_Datatype t[], void* b, \
    const int m[], const MPI_Aint e[], const MPI_Datatype u[], MPI_Comm c, MPI_Request* r), (a, n, d, t, b, m, e, u, \
    c, r)) \
  X(Put, starts, (const void* a, int n, MPI_Datatype t, int p, MPI_Aint d, int m, MPI_Datatype u, MPI_Win w), \
    (a, n, t, p, d, m, u, w)) \
  X(Get, starts, (void* a, int n, MPI_Datatype t, int p, MPI_Aint d, int m, MPI_Datatype u, MPI_Win w), \
    (a, n, t, p, d, m, u, w)) \
  X(Rput, starts, (const void* a, int n, MPI_Datatype t, int p, MPI_Aint d, int m, MPI_Datatype u, MPI_Win w, \
    MPI_Request* r), \
    (a, n, t, p, d, m, u, w, r)) \
  X(Rget, starts, (void* a, int n, MPI_Datatype t, int p, MPI_Aint d, int m, MPI_Datatype u, MPI_Win w, \
    MPI_Request* r), \
    (a, n, t, p, d, m, u, w, r)) \
  X(Accumulate, starts, (const void* a, int n, MPI_Datatype t, int p, MPI_Aint d, int m, MPI_Datatype u, MPI_Op o, \
    MPI_Win w), \
    (a, n, t, p, d, m, u, o, w)) \
  X(Get_accumulate, starts, (const void* a, int n, MPI_Datatype t, void* b, int k, MPI_Datatype v, int p, \
    MPI_Aint d, int m, \
    MPI_Datatype u, MPI_Op o, MPI_Win w), (a, n, t, b, k, v, p, d, m, u, o, w)) \
  X(Fetch_and_op, starts, (const void* a, void* b, MPI_Datatype t, int p, MPI_Aint d, MPI_Op o, MPI_Win w), (a, b, \
    t, p, d, o, w)) \
  X(Win_fence, waits, (int a, MPI_Win w), (a, w)) \
  X(Win_post, starts, (MPI_Group g, int a, MPI_Win w), (g, a, w)) \
  X(Win_start, waits, (MPI_Group g, int a, MPI_Win w), (g, a, w)) \
  X(Win_complete, waits, (MPI_Win w), (w)) \
  X(Win_wait, waits, (MPI_Win w), (w)) \
  X(Win_test, polls, (MPI_Win w, int* f), (w, f)) \
  X(Win_lock, waits, (int k, int p, int a, MPI_Win w), (k, p, a, w)) \
  X(Win_unlock, waits, (int p, MPI_Win w), (p, w)) \
  X(Win_lock_all, waits, (int a, MPI_Win w), (a, w)) \
  X(Win_unlock_all, waits, (MPI_Win w), (w)) \
  X(Win_flush, waits, (int p, MPI_Win w), (p, w)) \
  X(Win_flush_all, waits, (MPI_Win w), (w)) \
  X(Win_flush_local, waits, (int p, MPI_Win w), (p, w)) \
  X(Win_flush_local_all, waits, (MPI_Win w), (w)) \
  X(Win_sync, starts, (MPI_Win w), (w))
// clang-format on

namespace {

enum Function : int {
#define HALOSCOPE_NUMBER(name, role, parameters, arguments) number_of_##name,
  HALOSCOPE_MPI_FUNCTIONS(HALOSCOPE_NUMBER)
#undef HALOSCOPE_NUMBER
      functions
};

struct Known {
  const char* name;
  MpiRole role;
};
constexpr Known known[] = {
#define HALOSCOPE_ENTRY(name, role, parameters, arguments) {"MPI_" #name, MpiRole::role},
    HALOSCOPE_MPI_FUNCTIONS(HALOSCOPE_ENTRY)
#undef HALOSCOPE_ENTRY
};

/// The effect of a call of a function on epochs, by its arguments once it has returned: none of most functions.
template <Function function>
struct EpochOf {
  template <class... Arguments>
  std::optional<EpochCall> operator()(Arguments...) const {
    return {};
  }
};

#define HALOSCOPE_EPOCH_OF(name, parameters, ...)                                          \
  template <>                                                                              \
  struct EpochOf<number_of_##name> {                                                       \
    std::optional<EpochCall> operator() parameters const { return EpochCall __VA_ARGS__; } \
  };
using enum EpochKind;
HALOSCOPE_EPOCH_OF(Win_fence, (int assertion, MPI_Win w), {w, fence, -1, true, (assertion & MPI_MODE_NOSUCCEED) == 0})
HALOSCOPE_EPOCH_OF(Win_start, (MPI_Group, int, MPI_Win w), {w, access, -1, false, true})
HALOSCOPE_EPOCH_OF(Win_complete, (MPI_Win w), {w, access, -1, true})
HALOSCOPE_EPOCH_OF(Win_post, (MPI_Group, int, MPI_Win w), {w, exposure, -1, false, true})
HALOSCOPE_EPOCH_OF(Win_wait, (MPI_Win w), {w, exposure, -1, true})
HALOSCOPE_EPOCH_OF(Win_test, (MPI_Win w, const int* done), {w, exposure, -1, *done != 0})
HALOSCOPE_EPOCH_OF(Win_lock, (int, int target, int, MPI_Win w), {w, lock, target, false, true})
HALOSCOPE_EPOCH_OF(Win_unlock, (int target, MPI_Win w), {w, lock, target, true})
HALOSCOPE_EPOCH_OF(Win_lock_all, (int, MPI_Win w), {w, lock_all, -1, false, true})
HALOSCOPE_EPOCH_OF(Win_unlock_all, (MPI_Win w), {w, lock_all, -1, true})
HALOSCOPE_EPOCH_OF(Win_flush, (int target, MPI_Win w), {w, lock_all, target})
HALOSCOPE_EPOCH_OF(Win_flush_local, (int target, MPI_Win w), {w, lock_all, target})
HALOSCOPE_EPOCH_OF(Win_flush_all, (MPI_Win w), {w})
HALOSCOPE_EPOCH_OF(Win_flush_local_all, (MPI_Win w), {w})
HALOSCOPE_EPOCH_OF(Put, (const void*, int, MPI_Datatype, int target, MPI_Aint, int, MPI_Datatype, MPI_Win w),
                   {w, lock_all, target})
HALOSCOPE_EPOCH_OF(Get, (void*, int, MPI_Datatype, int target, MPI_Aint, int, MPI_Datatype, MPI_Win w),
                   {w, lock_all, target})
HALOSCOPE_EPOCH_OF(Rput,
                   (const void*, int, MPI_Datatype, int target, MPI_Aint, int, MPI_Datatype, MPI_Win w, MPI_Request*),
                   {w, lock_all, target})
HALOSCOPE_EPOCH_OF(Rget, (void*, int, MPI_Datatype, int target, MPI_Aint, int, MPI_Datatype, MPI_Win w, MPI_Request*),
                   {w, lock_all, target})
HALOSCOPE_EPOCH_OF(Accumulate,
                   (const void*, int, MPI_Datatype, int target, MPI_Aint, int, MPI_Datatype, MPI_Op, MPI_Win w),
                   {w, lock_all, target})
HALOSCOPE_EPOCH_OF(Fetch_and_op, (const void*, void*, MPI_Datatype, int target, MPI_Aint, MPI_Op, MPI_Win w),
                   {w, lock_all, target})
#undef HALOSCOPE_EPOCH_OF

template <class F, class Epoch>
int timed(int index, F f, Epoch epoch) {
  MpiClock* clock = running.load(std::memory_order_acquire);
  if (!clock) return f();
  const double begin = now_s();
  const int code = f();
  clock->note(index, begin, now_s(), epoch());
  return code;
}

}  // namespace

const char* to_string(MpiRole role) {
  static const char* const names[] = {"starts", "polls", "waits"};
  return names[static_cast<int>(role)];
}

MpiClock::MpiClock(std::size_t spans, const RankStatus& status) : epochs_(spans), status_(status) {
  spans_.reserve(spans);
}

void MpiClock::start() {
  epochs_.start(now_s());
  running.store(this, std::memory_order_release);
}

void MpiClock::stop() {
  MpiClock* self = this;
  if (!running.compare_exchange_strong(self, nullptr)) return;
  const std::lock_guard lock(mutex_);
  epochs_.stop(now_s(), status_.step.load(std::memory_order_relaxed));
}

void MpiClock::note(int function, double begin_s, double end_s, const std::optional<EpochCall>& epoch) {
  const std::int32_t during = status_.phase.load(std::memory_order_relaxed);
  const std::int64_t step = status_.step.load(std::memory_order_relaxed);
  const MpiRole role = known[function].role;
  const std::lock_guard lock(mutex_);
  add({function, step, during, 1, begin_s, end_s});
  if (epoch) epochs_.note(*epoch, {begin_s, end_s, during, step, role == MpiRole::waits, role == MpiRole::polls});
}

void MpiClock::add(const MpiSpan& call) {
  Sum& sum = sums_[{call.during, call.function}];
  ++sum.calls;
  sum.seconds += call.end_s - call.begin_s;
  if (known[call.function].role == MpiRole::polls && !spans_.empty()) {  // a trace of a million polls: unreadable
    MpiSpan& last = spans_.back();
    if (last.function == call.function && last.during == call.during && last.step == call.step) {
      ++last.calls;
      last.end_s = call.end_s;
      return;
    }
  }
  if (spans_.size() < spans_.capacity()) spans_.push_back(call);
}

std::vector<MpiCall> MpiClock::calls() const {
  const std::lock_guard lock(mutex_);
  std::vector<MpiCall> found;
  for (const auto& [key, sum] : sums_)
    found.push_back({known[key.second].name, known[key.second].role, key.first, sum.calls, sum.seconds});
  std::stable_sort(found.begin(), found.end(),
                   [](const MpiCall& a, const MpiCall& b) { return a.seconds > b.seconds; });
  return found;
}

const char* MpiClock::name_of(const MpiSpan& span) { return known[span.function].name; }

}  // namespace haloscope

// Weak, so that a program with other profiling functions keeps them. The parentheses keep macros of
// cmake/smpi.h out.
#define HALOSCOPE_DEFINE(name, role, parameters, arguments)                 \
  extern "C" __attribute__((weak)) int(MPI_##name) parameters {             \
    return haloscope::timed(                                                \
        haloscope::number_of_##name, [&] { return PMPI_##name arguments; }, \
        [&] {                                                               \
          return haloscope::EpochOf<haloscope::number_of_##name> {}         \
          arguments;                                                        \
        });                                                                 \
  }
HALOSCOPE_MPI_FUNCTIONS(HALOSCOPE_DEFINE)
#undef HALOSCOPE_DEFINE
