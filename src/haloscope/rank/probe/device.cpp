// Device memory given to MPI: whether what one rank sends from it arrives in another's.
#include "haloscope/device/device.hpp"

#include <cstdint>
#include <vector>

#include "haloscope/comm/shared_memory.hpp"
#include "haloscope/rank/probe/probe.hpp"

namespace haloscope::probing {

namespace {

using device::Buffer;
using device::Space;

/// Everyone sends to the next rank, eager and rendezvous sizes, from memory of the first kind of device that is here.
Finding aware(MPI_Comm comm) {
  int rank = 0, size = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const device::Backend& backend = device::find_backend("auto");
  const Node node(comm);
  const auto own = backend.open(node.local(rank) % backend.count());
  const auto stream = own->stream();
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  std::string complaint;
  for (const int count : {16, 1 << 18}) {
    const std::size_t bytes = sizeof(std::int32_t) * static_cast<std::size_t>(count);
    std::vector<std::int32_t> numbers(static_cast<std::size_t>(count)), got(numbers.size(), -1);
    for (int i = 0; i < count; ++i) numbers[static_cast<std::size_t>(i)] = rank * 1000000 + i;
    const Buffer out(*own, Space::device, bytes), in(*own, Space::device, bytes);
    stream->copy(out.data(), numbers.data(), bytes);
    stream->copy(in.data(), got.data(), bytes);
    stream->finish();
    MPI_Sendrecv(out.data(), count, MPI_INT32_T, next, 0, in.data(), count, MPI_INT32_T, previous, 0, comm,
                 MPI_STATUS_IGNORE);
    stream->copy(got.data(), in.data(), bytes);
    stream->finish();
    for (int i = 0; i < count; ++i)
      expect(complaint, "a number in device memory that was received", got[static_cast<std::size_t>(i)],
             previous * 1000000 + i);
  }
  return complaint.empty() ? Finding{true, "with " + own->info().name} : wrong_if(complaint);
}

}  // namespace

std::vector<Probe> device_probes() { return {{"device-aware", aware}}; }

}  // namespace haloscope::probing
