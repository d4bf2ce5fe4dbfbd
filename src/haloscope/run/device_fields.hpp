// The fields of one rank in the memory of a device, with the streams and kernels that work on them.
#pragma once

#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

#include "haloscope/choice.hpp"
#include "haloscope/field/field.hpp"
#include "haloscope/runner/device_ops.hpp"

namespace haloscope {

/// An image of the fields in host memory, byte for byte, halos and guards included. Steps work on the image; initial
/// data, checks and checksums use the host's copy.
class DeviceFields {
 public:
  /// Collective over `comm`: ranks of a node take its devices in turn.
  /// @throws UnavailableError where the back end has no device here and, on all ranks, when the ranks of one device
  ///         together need more memory than is free on it: names both amounts, before anything is allocated.
  DeviceFields(MPI_Comm comm, const Candidate& candidate, const Plan& points, const Storage& host);

  /// Fields of the caller's in the memory of a device, whose sweeps the app's sweeper launches. Local. There is no copy of
  /// them: nothing can be copied there or back.
  DeviceFields(std::unique_ptr<device::Device> device, const Views& views);

  /// Copies everything there, or back. Waits for it.
  void upload(const Storage& host);
  void download(const Storage& host);
  /// Copies back a box alone, of every slot.
  void download(const Storage& host, const Box& box);

  const Views& views() const { return views_; }
  device::Device& device() const { return *device_; }
  DeviceStreams& streams() const { return *streams_; }
  const DeviceSweeps& sweeps() const { return sweeps_; }

 private:
  void find_sweeps(const device::Kernels& kernels, const DeviceKernel& kernel, const Choice& choice);
  void fetch(std::byte* to);

  std::unique_ptr<device::Device> device_;
  std::unique_ptr<DeviceStreams> streams_;
  device::Buffer image_;
  Views views_;
  DeviceSweeps sweeps_;
};

}  // namespace haloscope
