// The fields of one rank in the memory of a device, with the streams and kernels that work on them.
#pragma once

#include <mpi.h>

#include <functional>
#include <memory>

#include "haloscope/device/staging_buffers.hpp"
#include "haloscope/extend/candidate.hpp"
#include "haloscope/field/arrangement.hpp"
#include "haloscope/field/field.hpp"
#include "haloscope/runner/device_ops.hpp"

namespace haloscope {

/// Default bytes of each of the two staging buffers: large enough that copies take longer than enqueuing them.
inline constexpr std::size_t usual_hatch_bytes = std::size_t{32} << 20;

/// Fields that the host never holds as a whole: initial data, checks and checksums pass through staging buffers, row
/// by row.
class DeviceFields {
 public:
  /// Collective over `comm`: the devices of a node are assigned to its ranks in turn.
  /// @param arrangement   arrangement of the fields in the device's memory; with on_device.
  /// @param hatch_bytes   bytes of each of the two staging buffers; at most the bytes of the fields.
  /// @throws UnavailableError where the back end has no device here and, on all ranks, when the ranks of one device
  ///         together need more memory than is free on it: names both amounts, before anything is allocated.
  DeviceFields(MPI_Comm comm, const Candidate& candidate, const Plan& points, const Arrangement& arrangement,
               std::size_t hatch_bytes = usual_hatch_bytes);

  /// Holds fields of the caller's in the memory of a device, whose sweeps the app's sweeper launches. Local. Does not
  /// read or write them.
  DeviceFields(std::unique_ptr<device::Device> device, const Views& views);

  using MakeRow = std::function<void(const RowPart& row, std::byte* here)>;
  /// Makes the points of rows, or of parts of rows, in the order of addresses, with canaries between them, and copies
  /// all to the device. Waits until they are there.
  void write(const MakeRow& make) const;

  using LookAtRow = std::function<void(const RowPart& row, const std::byte* here)>;
  /// Reads the points of a box, x first, row by row or in parts of rows.
  void read(int quantity, int slot, const Box& box, const LookAtRow& look) const;
  bool canaries_alive() const;

  // For runs whose host memory has all fields too, at the same offsets, for the cells around a device's block:
  void upload(const Storage& host) const;
  /// Copies a box only, of every slot.
  void download(const Storage& host, const Box& box) const;

  const Arrangement& arrangement() const { return arrangement_; }
  const Views& views() const { return views_; }
  device::Device& device() const { return *device_; }
  DeviceStreams& streams() const { return *streams_; }
  const DeviceSweeps& sweeps() const { return sweeps_; }

 private:
  void find_sweeps(const device::Kernels& kernels, const DeviceKernel& kernel, const Choice& choice);
  device::StagingBuffers::Cut cut() const;
  device::Stream& stream_after_all() const;

  std::unique_ptr<device::Device> device_;
  std::unique_ptr<DeviceStreams> streams_;
  Arrangement arrangement_;
  device::Buffer memory_;
  std::unique_ptr<device::StagingBuffers> hatch_;  // null: fields of the caller
  Views views_;
  DeviceSweeps sweeps_;
};

}  // namespace haloscope
