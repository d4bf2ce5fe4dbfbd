// Counts the real sends, constructions and frees of this thread of this rank, in front of MPI's functions; refuses some
// calls.
#include "pmpi_counter.hpp"

#include <chrono>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "link_rig.hpp"

namespace haloscope::test {

Sent& sent() {
  thread_local Sent counts;
  return counts;
}

Calls& calls() {
  thread_local Calls counts;
  return counts;
}

Held& held() {
  thread_local Held counts;
  return counts;
}

std::int64_t& calls_until_refusal() {
  static std::int64_t left = -1;
  return left;
}

IsendHook& on_isend() {
  thread_local IsendHook hook;
  return hook;
}

double& pause_after_send_s() {
  static double seconds = 0;
  return seconds;
}

namespace {

bool refuses() { return calls_until_refusal() >= 0 && calls_until_refusal()-- == 0; }

/// A call that makes something, unless it is refused.
template <class Handle, class Make>
int make(std::int64_t& count, const Handle* made, Handle none, Make call) {
  if (refuses()) return MPI_ERR_OTHER;
  const int error = call();
  count += error == MPI_SUCCESS && *made != none;
  return error;
}

template <class Make>
int make_communicator(const MPI_Comm* made, Make call) {
  ++calls().communicators;
  return make(held().communicators, made, MPI_COMM_NULL, call);
}

template <class Make>
int make_window(const MPI_Win* made, Make call) {
  ++calls().collectives;
  return make(held().windows, made, MPI_WIN_NULL, call);
}

int asserted(int modes) {
  calls().asserted += modes != 0;
  calls().assertions |= modes;
  return modes;
}

void note_hints(MPI_Info info) {
  if (info == MPI_INFO_NULL) return;
  ++calls().hinted_windows;
  int keys = 0;
  PMPI_Info_get_nkeys(info, &keys);
  for (int number = 0; number < keys; ++number) {
    char key[MPI_MAX_INFO_KEY + 1];
    PMPI_Info_get_nthkey(info, number, key);
    calls().hints.insert(key);
  }
}

bool is_own(int target, MPI_Win window) {
  MPI_Group group;
  int rank = 0;
  PMPI_Win_get_group(window, &group);
  PMPI_Group_rank(group, &rank);
  PMPI_Group_free(&group);
  return rank == target;
}

std::int64_t bytes_of(int count, MPI_Datatype type) {
  MPI_Count size;
  PMPI_Type_size_x(type, &size);
  return size * count;
}

void note(std::int64_t bytes) {
  calls().behind_barrier = false;
  sent().messages += 1;
  sent().bytes += bytes;
}

/// Bytes of persistent sends, by request.
std::unordered_map<MPI_Request, std::int64_t>& prepared() {
  thread_local std::unordered_map<MPI_Request, std::int64_t> requests;
  return requests;
}

/// Persistent requests.
std::unordered_set<MPI_Request>& persistent() {
  thread_local std::unordered_set<MPI_Request> requests;
  return requests;
}

template <class Make>
int make_request(const MPI_Request* made, Make call) {
  const int error = make(held().requests, made, MPI_REQUEST_NULL, call);
  if (error == MPI_SUCCESS) persistent().insert(*made);
  return error;
}

}  // namespace

}  // namespace haloscope::test

using namespace haloscope::test;

extern "C" {

int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
  note(bytes_of(count, type));
  if (on_isend()) on_isend()(data, count, type, to, tag);
  const int error = PMPI_Isend(data, count, type, to, tag, comm, request);
  if (pause_after_send_s() > 0) std::this_thread::sleep_for(std::chrono::duration<double>(pause_after_send_s()));
  return error;
}

int MPI_Send(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  note(bytes_of(count, type));
  return PMPI_Send(data, count, type, to, tag, comm);
}

int MPI_Send_init(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                  MPI_Request* request) {
  const int error = make_request(request, [&] { return PMPI_Send_init(data, count, type, to, tag, comm, request); });
  if (error == MPI_SUCCESS) prepared()[*request] = bytes_of(count, type);
  return error;
}

int MPI_Recv_init(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request* request) {
  const int error = make_request(request, [&] { return PMPI_Recv_init(data, count, type, from, tag, comm, request); });
  if (error == MPI_SUCCESS) prepared().erase(*request);  // the library may use a freed send request's handle again
  return error;
}

int MPI_Request_free(MPI_Request* request) {
  held().requests -= static_cast<std::int64_t>(persistent().erase(*request));
  return PMPI_Request_free(request);
}

int MPI_Start(MPI_Request* request) {
  if (const auto found = prepared().find(*request); found != prepared().end()) note(found->second);
  return PMPI_Start(request);
}

int MPI_Startall(int count, MPI_Request requests[]) {
  for (int i = 0; i < count; ++i)
    if (const auto found = prepared().find(requests[i]); found != prepared().end()) note(found->second);
  return PMPI_Startall(count, requests);
}

int MPI_Type_commit(MPI_Datatype* type) {
  if (refuses()) return MPI_ERR_OTHER;
  return PMPI_Type_commit(type);
}

#if MPI_VERSION >= 4
int MPI_Psend_init(const void* data, int parts, MPI_Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                   MPI_Info info, MPI_Request* request) {
  if (refuses()) return MPI_ERR_OTHER;
  return PMPI_Psend_init(data, parts, count, type, to, tag, comm, info, request);
}
int MPI_Precv_init(void* data, int parts, MPI_Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                   MPI_Info info, MPI_Request* request) {
  if (refuses()) return MPI_ERR_OTHER;
  return PMPI_Precv_init(data, parts, count, type, from, tag, comm, info, request);
}
#endif

// ---- collective calls -----------------------------------------------------------------------------------------------

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* made) {
  return make_communicator(made, [&] { return PMPI_Comm_dup(comm, made); });
}
int MPI_Comm_split(MPI_Comm comm, int colour, int key, MPI_Comm* made) {
  return make_communicator(made, [&] { return PMPI_Comm_split(comm, colour, key, made); });
}
int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* made) {
  return make_communicator(made, [&] { return PMPI_Comm_split_type(comm, type, key, info, made); });
}
int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* made) {
  return make_communicator(made, [&] { return PMPI_Comm_create_group(comm, group, tag, made); });
}
int MPI_Dist_graph_create_adjacent(MPI_Comm comm, int in, const int sources[], const int from[], int out,
                                   const int destinations[], const int to[], MPI_Info info, int reorder,
                                   MPI_Comm* made) {
  return make_communicator(made, [&] {
    return PMPI_Dist_graph_create_adjacent(comm, in, sources, from, out, destinations, to, info, reorder, made);
  });
}
int MPI_Comm_free(MPI_Comm* comm) {
  --held().communicators;
  return PMPI_Comm_free(comm);
}
int MPI_Barrier(MPI_Comm comm) {
  ++calls().barriers, ++calls().collectives;
  calls().behind_barrier = true;
  return PMPI_Barrier(comm);
}
double MPI_Wtime() {
  calls().clocks_behind_barriers += std::exchange(calls().behind_barrier, false);
  return PMPI_Wtime();
}
int MPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  ++calls().barriers, ++calls().collectives;
  return PMPI_Ibarrier(comm, request);
}
int MPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  ++calls().collectives;
  return PMPI_Allreduce(in, out, count, type, op, comm);
}
int MPI_Iallreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request* request) {
  ++calls().collectives;
  return PMPI_Iallreduce(in, out, count, type, op, comm, request);
}
int MPI_Bcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  ++calls().collectives;
  return PMPI_Bcast(data, count, type, root, comm);
}
int MPI_Allgather(const void* in, int n, MPI_Datatype a, void* out, int m, MPI_Datatype b, MPI_Comm comm) {
  ++calls().collectives, ++calls().gathers[bytes_of(n, a)];
  return PMPI_Allgather(in, n, a, out, m, b, comm);
}
int MPI_Iallgather(const void* in, int n, MPI_Datatype a, void* out, int m, MPI_Datatype b, MPI_Comm comm,
                   MPI_Request* request) {
  ++calls().collectives, ++calls().gathers[bytes_of(n, a)];
  return PMPI_Iallgather(in, n, a, out, m, b, comm, request);
}
int MPI_Allgatherv(const void* in, int n, MPI_Datatype a, void* out, const int* m, const int* at, MPI_Datatype b,
                   MPI_Comm comm) {
  ++calls().collectives, ++calls().list_gathers[bytes_of(n, a)];
  return PMPI_Allgatherv(in, n, a, out, m, at, b, comm);
}
int MPI_Alltoallv(const void* in, const int* n, const int* at, MPI_Datatype a, void* out, const int* m, const int* to,
                  MPI_Datatype b, MPI_Comm comm) {
  ++calls().collectives;
  return PMPI_Alltoallv(in, n, at, a, out, m, to, b, comm);
}
int MPI_Win_free(MPI_Win* window) {
  ++calls().collectives, --held().windows;
  return PMPI_Win_free(window);
}
int MPI_Win_create(void* base, MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, MPI_Win* window) {
  ++calls().windows_created;
  return make_window(window, [&] { return PMPI_Win_create(base, bytes, unit, info, comm, window); });
}
int MPI_Win_allocate(MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* window) {
  ++calls().windows_allocated;
  note_hints(info);
  return make_window(window, [&] { return PMPI_Win_allocate(bytes, unit, info, comm, base, window); });
}
int MPI_Win_allocate_shared(MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* window) {
  return make(held().windows, window, MPI_WIN_NULL,
              [&] { return PMPI_Win_allocate_shared(bytes, unit, info, comm, base, window); });
}
int MPI_Win_fence(int modes, MPI_Win window) {
  ++calls().fences, ++calls().collectives;
  MPI_Group group;
  int size = 0;
  PMPI_Win_get_group(window, &group);
  PMPI_Group_size(group, &size);
  PMPI_Group_free(&group);
  if (size > calls().largest_fence_group) calls().largest_fence_group = size;
  return PMPI_Win_fence(asserted(modes), window);
}

// ---- groups and types -----------------------------------------------------------------------------------------------

int MPI_Comm_group(MPI_Comm comm, MPI_Group* group) {
  ++held().groups;
  return PMPI_Comm_group(comm, group);
}
int MPI_Win_get_group(MPI_Win window, MPI_Group* group) {
  ++held().groups;
  return PMPI_Win_get_group(window, group);
}
int MPI_Group_incl(MPI_Group group, int n, const int ranks[], MPI_Group* made) {
  ++held().groups;
  return PMPI_Group_incl(group, n, ranks, made);
}
int MPI_Group_intersection(MPI_Group a, MPI_Group b, MPI_Group* made) {
  ++held().groups;
  return PMPI_Group_intersection(a, b, made);
}
int MPI_Group_free(MPI_Group* group) {
  --held().groups;
  return PMPI_Group_free(group);
}
int MPI_Type_contiguous(int count, MPI_Datatype type, MPI_Datatype* made) {
  ++held().types;
  return PMPI_Type_contiguous(count, type, made);
}
int MPI_Type_create_hvector(int count, int length, MPI_Aint stride, MPI_Datatype type, MPI_Datatype* made) {
  ++held().types;
  return PMPI_Type_create_hvector(count, length, stride, type, made);
}
int MPI_Type_create_hindexed_block(int count, int length, const MPI_Aint at[], MPI_Datatype type, MPI_Datatype* made) {
  ++held().types;
  return PMPI_Type_create_hindexed_block(count, length, at, type, made);
}
int MPI_Type_create_struct(int count, const int lengths[], const MPI_Aint at[], const MPI_Datatype types[],
                           MPI_Datatype* made) {
  ++held().types;
  return PMPI_Type_create_struct(count, lengths, at, types, made);
}
int MPI_Type_free(MPI_Datatype* type) {
  --held().types;
  return PMPI_Type_free(type);
}

// ---- one-sided synchronisation and transfers ------------------------------------------------------------------------

int MPI_Win_post(MPI_Group group, int modes, MPI_Win window) {
  ++calls().exposures;
  return PMPI_Win_post(group, asserted(modes), window);
}
int MPI_Win_start(MPI_Group group, int modes, MPI_Win window) {
  ++calls().accesses;
  return PMPI_Win_start(group, asserted(modes), window);
}
int MPI_Win_lock(int kind, int target, int modes, MPI_Win window) {
  ++calls().locks;
  calls().own_locks += is_own(target, window);
  return PMPI_Win_lock(kind, target, asserted(modes), window);
}
int MPI_Win_unlock(int target, MPI_Win window) {
  ++calls().unlocks;
  return PMPI_Win_unlock(target, window);
}
int MPI_Win_lock_all(int modes, MPI_Win window) {
  ++calls().lock_alls;
  return PMPI_Win_lock_all(asserted(modes), window);
}
int MPI_Win_sync(MPI_Win window) {
  ++calls().syncs;
  return PMPI_Win_sync(window);
}
int MPI_Win_unlock_all(MPI_Win window) {
  ++calls().unlock_alls;
  return PMPI_Win_unlock_all(window);
}
int MPI_Put(const void* data, int n, MPI_Datatype a, int target, MPI_Aint at, int m, MPI_Datatype b, MPI_Win window) {
  ++calls().puts;
  return PMPI_Put(data, n, a, target, at, m, b, window);
}
int MPI_Get(void* data, int n, MPI_Datatype a, int target, MPI_Aint at, int m, MPI_Datatype b, MPI_Win window) {
  ++calls().gets;
  return PMPI_Get(data, n, a, target, at, m, b, window);
}
int MPI_Rget(void* data, int n, MPI_Datatype a, int target, MPI_Aint at, int m, MPI_Datatype b, MPI_Win window,
             MPI_Request* request) {
  ++calls().request_gets;
  return PMPI_Rget(data, n, a, target, at, m, b, window, request);
}
int MPI_Accumulate(const void* data, int n, MPI_Datatype a, int target, MPI_Aint at, int m, MPI_Datatype b, MPI_Op op,
                   MPI_Win window) {
  ++calls().atomics;
  return PMPI_Accumulate(data, n, a, target, at, m, b, op, window);
}
int MPI_Fetch_and_op(const void* data, void* old, MPI_Datatype type, int target, MPI_Aint at, MPI_Op op,
                     MPI_Win window) {
  ++calls().atomics;
  return PMPI_Fetch_and_op(data, old, type, target, at, op, window);
}

}  // extern "C"
