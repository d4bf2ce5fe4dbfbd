#include "haloscope/stepper/device_fields.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "haloscope/comm/device_load.hpp"
#include "haloscope/comm/library_comm.hpp"
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/agree.hpp"

namespace haloscope {
namespace {

/// Checks device memory. Collective over `comm`: all ranks throw if the fields do not fit the device of one of them.
/// Called after every rank has opened its device, which takes memory too.
void check_room(MPI_Comm comm, const Node& node, const device::Device& device, std::int64_t bytes) {
  CHECK_MPI(MPI_Barrier(comm));
  const device::Info info = device.info();
  const DeviceLoad load = load_of(node, info.id, bytes);
  std::int64_t needs[3] = {load.bytes - info.free_bytes, load.bytes, load.ranks};
  struct {
    double missing;
    int rank;
  } mine{static_cast<double>(needs[0]), 0}, most;
  mine.rank = rank_in(comm);
  CHECK_MPI(MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE_INT, MPI_MAXLOC, comm));
  CHECK_MPI(MPI_Bcast(needs, 3, MPI_INT64_T, most.rank, comm));
  if (needs[0] <= 0) return;
  throw UnavailableError("the grid does not fit the device of rank " + std::to_string(most.rank) + ": " +
                         std::to_string(needs[1]) + " bytes are needed there (" + std::to_string(needs[2]) +
                         " rank(s) a device) and " + std::to_string(needs[1] - needs[0]) +
                         " are free; use fewer cells, a smaller depth, fewer ranks per device or more devices");
}

}  // namespace

DeviceFields::DeviceFields(MPI_Comm comm, const Candidate& candidate, const Plan& points,
                           const Arrangement& arrangement, std::size_t hatch_bytes)
    : arrangement_(arrangement) {
  const Choice& choice = candidate.choice;
  const device::Backend& backend = device::find_backend(choice.device);
  std::int64_t needed = static_cast<std::int64_t>(arrangement.bytes());
  for (int stage = 0; stage < static_cast<int>(candidate.step.stages.size()); ++stage)
    for (const Message& message : make_plan(candidate.layout, points.rank, exchange_spec(candidate, stage)).messages)
      needed += candidate.step.slots() * static_cast<std::int64_t>(whole_lines(message.bytes));
  const Node& node = node_of(comm);
  device_ = backend.open(node.local(points.rank) % backend.count());
  check_room(comm, node, *device_, needed);
  const device::Kernels& kernels = device_->kernels();
  const DeviceKernel kernel = candidate.app.device(candidate.problem);
  sweeps_.passes = device::find_passes(kernels, kernel.form);
  if (sweeps_.passes == nullptr) find_sweeps(kernels, kernel, choice);

  memory_ = device::Buffer(*device_, device::Space::device, arrangement.bytes());
  hatch_ = std::make_unique<device::StagingBuffers>(*device_, std::min(hatch_bytes, arrangement.bytes()));
  views_ = arrangement.views(memory_.data());
  const auto slots = static_cast<std::size_t>(candidate.step.slots());
  for (auto& views : views_)
    if (views.size() < slots) views.resize(slots, views.front());
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

device::StagingBuffers::Cut DeviceFields::cut() const {
  return [this](const ByteRange& rest) { return arrangement_.cut(rest, hatch_->bytes()); };
}

/// Returns a stream whose later work comes after all work already enqueued on all streams.
device::Stream& DeviceFields::stream_after_all() const {
  streams_->meet();
  return *streams_->streams[0];
}

void DeviceFields::write(const MakeRow& make) const {
  const auto make_part = [&](const ByteRange& part, std::byte* here) {
    arrangement_.set_canaries(part, here);
    arrangement_.each_row(part, [&](const RowPart& row) { make(row, here + (row.bytes.begin - part.begin)); });
  };
  hatch_->send(stream_after_all(), memory_.data(), {0, arrangement_.bytes()}, cut(), make_part);
}

void DeviceFields::read(int quantity, int slot, const Box& box, const LookAtRow& look) const {
  const auto look_at_part = [&](const ByteRange& part, const std::byte* here) {
    arrangement_.each_row(part, [&](const RowPart& row) {
      const RowPart inside = intersect(row, box);
      if (inside.points > 0) look(inside, here + (inside.bytes.begin - part.begin));
    });
    return true;
  };
  hatch_->fetch(stream_after_all(), memory_.data(), arrangement_.range(quantity, slot, box), cut(), look_at_part);
}

bool DeviceFields::canaries_alive() const {
  bool alive = true;
  const auto look_at_part = [&](const ByteRange& part, const std::byte* here) {
    return alive = arrangement_.canaries_alive(part, here);
  };
  hatch_->fetch(stream_after_all(), memory_.data(), {0, arrangement_.bytes()}, cut(), look_at_part);
  return alive;
}

void DeviceFields::upload(const Storage& host) const {
  const auto copy_part = [&](const ByteRange& part, std::byte* here) {
    std::memcpy(here, host.all().data() + part.begin, part.size());
  };
  hatch_->send(stream_after_all(), memory_.data(), {0, arrangement_.bytes()}, cut(), copy_part);
}

void DeviceFields::download(const Storage& host, const Box& box) const {
  const auto copy_row = [&](const RowPart& row, const std::byte* here) {
    std::memcpy(host.all().data() + row.bytes.begin, here, row.bytes.size());
  };
  for (int q = 0; q < static_cast<int>(views_.size()); ++q)
    for (int slot = 0; slot < arrangement_.slots(q); ++slot) read(q, slot, box, copy_row);
}

}  // namespace haloscope
