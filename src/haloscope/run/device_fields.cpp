#include "haloscope/run/device_fields.hpp"

#include <algorithm>
#include <utility>

#include "haloscope/comm/device_load.hpp"
#include "haloscope/error.hpp"
#include "haloscope/pack/region_copy.hpp"

namespace haloscope {
namespace {

/// Collective over `comm`: all ranks throw when the fields do not fit the device of one of them. Called after every
/// rank has opened its device, which takes memory too.
void check_room(MPI_Comm comm, const Node& node, const device::Device& device, std::int64_t bytes) {
  MPI_Barrier(comm);
  const device::Info info = device.info();
  const DeviceLoad load = load_of(node, info.id, bytes);
  std::int64_t said[3] = {load.bytes - info.free_bytes, load.bytes, load.ranks};
  struct {
    double missing;
    int rank;
  } mine{static_cast<double>(said[0]), 0}, most;
  MPI_Comm_rank(comm, &mine.rank);
  MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE_INT, MPI_MAXLOC, comm);
  MPI_Bcast(said, 3, MPI_INT64_T, most.rank, comm);
  if (said[0] <= 0) return;
  throw UnavailableError("the grid does not fit the device of rank " + std::to_string(most.rank) + ": " +
                         std::to_string(said[1]) + " bytes are needed there (" + std::to_string(said[2]) +
                         " rank(s) a device) and " + std::to_string(said[1] - said[0]) +
                         " are free; use fewer cells, a smaller depth, fewer ranks per device or more devices");
}

}  // namespace

DeviceFields::DeviceFields(MPI_Comm comm, const Candidate& candidate, const Plan& points, const Storage& host) {
  const Choice& choice = candidate.choice;
  const device::Backend& backend = device::find_backend(choice.device);
  std::int64_t needed = static_cast<std::int64_t>(host.all().size());
  for (int stage = 0; stage < static_cast<int>(candidate.step.stages.size()); ++stage)
    for (const Message& message : make_plan(candidate.layout, points.rank, exchange_spec(candidate, stage)).messages)
      needed += candidate.step.slots() * static_cast<std::int64_t>(whole_lines(message.bytes));
  const Node node(comm);
  device_ = backend.open(node.local(points.rank) % backend.count());
  check_room(comm, node, *device_, needed);
  const device::Kernels& kernels = device_->kernels();
  const DeviceKernel kernel = candidate.app.device(candidate.problem);
  sweeps_.passes = device::find_passes(kernels, kernel.form);
  if (sweeps_.passes == nullptr) find_sweeps(kernels, kernel, choice);

  image_ = device::Buffer(*device_, device::Space::device, host.all().size());
  views_ = host.views();
  for (auto& slots : views_) {
    for (SlotView& view : slots) view.origin = image_.data() + (view.origin - host.all().data());
    slots.resize(static_cast<std::size_t>(candidate.step.slots()), slots.front());
  }
  streams_ = std::make_unique<DeviceStreams>(*device_);
}

DeviceFields::DeviceFields(std::unique_ptr<device::Device> device, const Views& views)
    : device_(std::move(device)), streams_(std::make_unique<DeviceStreams>(*device_)), views_(views) {}

void DeviceFields::find_sweeps(const device::Kernels& kernels, const DeviceKernel& kernel, const Choice& choice) {
  const std::string& real = to_word(choice.real);
  sweeps_.one = device::find_sweep(kernels, kernel.form, real, choice.device_kernel);
  if (choice.substeps == Substeps::blocked) sweeps_.fused = device::find_sweep(kernels, kernel.form, real, "fused");
  sweeps_.faces = device::find_faces(kernels, kernel.form, real);
  sweeps_.base.shape = {choice.device_block[0], choice.device_block[1], choice.device_block[2]};
  std::copy(kernel.weights.begin(), kernel.weights.end(), sweeps_.base.weights);
}

void DeviceFields::upload(const Storage& host) {
  streams_->meet();
  streams_->streams[0]->copy(image_.data(), host.all().data(), image_.size());
  streams_->meet();
  streams_->finish();
}

void DeviceFields::fetch(std::byte* to) {
  streams_->meet();
  streams_->streams[0]->copy(to, image_.data(), image_.size());
  streams_->finish();
}

void DeviceFields::download(const Storage& host) { fetch(host.all().data()); }

void DeviceFields::download(const Storage& host, const Box& box) {
  const Memory all(image_.size());
  fetch(all.data());
  for (const auto& slots : host.views())
    for (const SlotView& view : slots) {
      BlockCopy copy = region_to_region(view, box, {0, 0, 0});
      copy.from = all.data() + (copy.to - host.all().data());
      CopyList({copy}).run();
    }
}

}  // namespace haloscope
