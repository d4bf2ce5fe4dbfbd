// Counts what this rank really sends, in front of MPI's own functions.
#include <unordered_map>

#include "link_rig.hpp"

namespace haloscope::test {

Sent& sent() {
  static Sent counts;
  return counts;
}

namespace {

std::int64_t bytes_of(int count, MPI_Datatype type) {
  MPI_Count size;
  PMPI_Type_size_x(type, &size);
  return size * count;
}

void note(std::int64_t bytes) {
  sent().messages += 1;
  sent().bytes += bytes;
}

/// Bytes of persistent sends, by request.
std::unordered_map<MPI_Request, std::int64_t>& prepared() {
  static std::unordered_map<MPI_Request, std::int64_t> requests;
  return requests;
}

}  // namespace
}  // namespace haloscope::test

using namespace haloscope::test;

extern "C" {

int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
  note(bytes_of(count, type));
  return PMPI_Isend(data, count, type, to, tag, comm, request);
}

int MPI_Send(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  note(bytes_of(count, type));
  return PMPI_Send(data, count, type, to, tag, comm);
}

int MPI_Send_init(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                  MPI_Request* request) {
  const int error = PMPI_Send_init(data, count, type, to, tag, comm, request);
  prepared()[*request] = bytes_of(count, type);
  return error;
}

int MPI_Recv_init(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request* request) {
  const int error = PMPI_Recv_init(data, count, type, from, tag, comm, request);
  prepared().erase(*request);  // the library may use a freed send request's handle again
  return error;
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

}  // extern "C"
