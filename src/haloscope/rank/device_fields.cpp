#include "haloscope/rank/device_fields.hpp"

#include <algorithm>

#include "haloscope/apps/app.hpp"
#include "haloscope/core/error.hpp"
#include "haloscope/pack/region_copy.hpp"

namespace haloscope {
namespace {

/// Which of a node's devices this rank takes, and what all ranks that take it need of it together.
struct Place {
  int device = 0, sharers = 1;
  std::int64_t bytes = 0;
};

/// Collective over `comm`: ranks of a node take its devices in turn.
Place find_place(MPI_Comm comm, int devices, std::int64_t bytes) {
  Place place;
  MPI_Comm node, sharing;
  int rank = 0;
  MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &rank);
  place.device = rank % devices;
  MPI_Comm_split(node, place.device, rank, &sharing);
  MPI_Comm_size(sharing, &place.sharers);
  MPI_Allreduce(&bytes, &place.bytes, 1, MPI_INT64_T, MPI_SUM, sharing);
  MPI_Comm_free(&sharing);
  MPI_Comm_free(&node);
  return place;
}

/// Collective: all ranks refuse what does not fit one of them.
void check_room(MPI_Comm comm, const Place& place, const device::Info& info) {
  std::int64_t worst[2] = {place.bytes - info.free_bytes, place.bytes};  // what is missing there, what is needed
  struct {
    double missing;
    int rank;
  } mine{static_cast<double>(worst[0]), 0}, most;
  MPI_Comm_rank(comm, &mine.rank);
  MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE_INT, MPI_MAXLOC, comm);
  MPI_Bcast(worst, 2, MPI_INT64_T, most.rank, comm);
  if (worst[0] <= 0) return;
  throw UnavailableError("the grid does not fit the device of rank " + std::to_string(most.rank) + ": " +
                   std::to_string(worst[1]) + " bytes are needed there (" + std::to_string(place.sharers) +
                   " rank(s) a device) and " + std::to_string(worst[1] - worst[0]) +
                   " are free; use fewer cells, a smaller depth, fewer ranks per device or more devices");
}

}  // namespace

DeviceFields::DeviceFields(MPI_Comm comm, const Choice& choice, const std::vector<double>& weights,
                           const DeviceOptions& options, const Plan& plan, const Storage& host) {
  const device::Backend& backend = device::find_backend(choice.device);
  std::int64_t needed = static_cast<std::int64_t>(host.all().size());
  for (const Message& message : plan.messages)
    needed += host.slots() * static_cast<std::int64_t>(whole_lines(message.bytes));
  const Place place = find_place(comm, backend.count(), needed);
  device_ = backend.open(place.device);
  check_room(comm, place, device_->info());
  const device::Kernels& kernels = device_->kernels();
  sweeps_.one = device::find_sweep(kernels, kernel_form(choice), choice.real, options.kernel);
  if (choice.region == "blocked")
    sweeps_.fused = device::find_sweep(kernels, kernel_form(choice), choice.real, "fused");
  sweeps_.base.shape = options.shape;
  std::copy(weights.begin(), weights.end(), sweeps_.base.weights);

  image_ = device::Buffer(*device_, device::Space::device, host.all().size());
  views_ = host.views();
  for (auto& slots : views_)
    for (SlotView& view : slots) view.origin = image_.data() + (view.origin - host.all().data());
  streams_ = std::make_unique<DeviceStreams>(*device_);
}

void DeviceFields::upload(const Storage& host) {
  streams_->meet();
  streams_->streams[0]->copy(image_.data(), host.all().data(), image_.size());
  streams_->meet();
  streams_->finish();
}

void DeviceFields::download(const Storage& host) {
  streams_->meet();
  streams_->streams[0]->copy(host.all().data(), image_.data(), image_.size());
  streams_->finish();
}

void DeviceFields::download(const Storage& host, const Box& box) {
  const Memory all(image_.size());
  streams_->meet();
  streams_->streams[0]->copy(all.data(), image_.data(), image_.size());
  streams_->finish();
  for (const auto& slots : host.views())
    for (const SlotView& view : slots) {
      BlockCopy copy = region_to_region(view, box, {0, 0, 0});
      copy.from = all.data() + (copy.to - host.all().data());
      CopyList({copy}).run();
    }
}

}  // namespace haloscope
