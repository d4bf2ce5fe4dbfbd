// Device memory passed to MPI: data that one rank sends from it must arrive in another's, contiguous and strided.
#include "haloscope/device/device.hpp"

#include <cstdint>
#include <memory>
#include <vector>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/shared_memory.hpp"
#include "haloscope/rank/probe/probe.hpp"

namespace haloscope::probing {

namespace {

using device::Buffer;
using device::Space;

/// A device of the first kind that is here, for this rank, and whom it exchanges with: the ring of all ranks, which
/// also crosses from node to node.
struct DeviceRing {
  explicit DeviceRing(MPI_Comm ranks) : comm(ranks), node(ranks) {
    REQUIRE_MPI(MPI_Comm_rank(comm, &rank));
    REQUIRE_MPI(MPI_Comm_size(comm, &size));
    const device::Backend& backend = device::find_backend("auto");
    own = backend.open(node.local(rank) % backend.count());
    stream = own->stream();
  }
  int next() const { return (rank + 1) % size; }
  int previous() const { return (rank + size - 1) % size; }
  static std::int32_t number(int sender, int i) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(sender) * 1000003u + static_cast<std::uint32_t>(i));
  }

  /// Sends `count` elements of `type` to the next rank, from `numbers` numbers of device memory into equally many.
  /// @return the content of the receiving memory then; -1 where nothing was received.
  std::vector<std::int32_t> exchange(int numbers, int count, MPI_Datatype type) const {
    const std::size_t bytes = sizeof(std::int32_t) * static_cast<std::size_t>(numbers);
    std::vector<std::int32_t> sent(static_cast<std::size_t>(numbers)), got(sent.size(), -1);
    for (int i = 0; i < numbers; ++i) sent[i] = number(rank, i);
    const Buffer out(*own, Space::device, bytes), in(*own, Space::device, bytes);
    stream->copy(out.data(), sent.data(), bytes);
    stream->copy(in.data(), got.data(), bytes);
    stream->finish();
    REQUIRE_MPI(MPI_Sendrecv(out.data(), count, type, next(), 0, in.data(), count, type, previous(), 0, comm,
                             MPI_STATUS_IGNORE));
    stream->copy(got.data(), in.data(), bytes);
    stream->finish();
    return got;
  }

  Finding judge(const std::string& complaint) const {
    if (complaint.empty()) return {true, "with " + own->info().name};
    return {false, complaint + (node.local(previous()) < 0 ? " (from another node)" : "")};
  }

  MPI_Comm comm;
  Node node;
  std::unique_ptr<device::Device> own;
  std::unique_ptr<device::Stream> stream;
  int rank = 0, size = 1;
};

/// Eager and rendezvous sizes.
Finding aware(MPI_Comm comm) {
  const DeviceRing ring(comm);
  std::string complaint;
  for (const int count : {16, 1 << 18}) {
    const auto got = ring.exchange(count, count, MPI_INT32_T);
    for (int i = 0; i < count; ++i)
      expect(complaint, "a number in device memory that was received", got[i], DeviceRing::number(ring.previous(), i));
  }
  return ring.judge(complaint);
}

/// Every other number of device memory, as MPI datatypes describe faces of fields: 1 KiB and 8 MiB.
Finding strided(MPI_Comm comm) {
  const DeviceRing ring(comm);
  std::string complaint;
  for (const int count : {1 << 8, 1 << 21}) {
    MPI_Datatype alternate;
    REQUIRE_MPI(MPI_Type_vector(count, 1, 2, MPI_INT32_T, &alternate));
    REQUIRE_MPI(MPI_Type_commit(&alternate));
    const auto got = ring.exchange(2 * count, 1, alternate);
    REQUIRE_MPI(MPI_Type_free(&alternate));
    for (int i = 0; i < 2 * count; ++i)
      expect(complaint, "a number of strided device memory", got[i],
             i % 2 == 0 ? DeviceRing::number(ring.previous(), i) : -1);
  }
  return ring.judge(complaint);
}

}  // namespace

std::vector<Probe> device_probes() { return {{"device-aware", aware}, {"device-strided", strided, true}}; }

}  // namespace haloscope::probing
