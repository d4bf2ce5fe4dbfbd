// The environment of a measurement: machine, compiler, MPI, placement. Gathered once per run.
#pragma once

#include <mpi.h>

#include <nlohmann/json.hpp>
#include <string>

#include "haloscope/stepper/device_fields.hpp"

namespace haloscope {

/// Collective over `comm`; the result is meaningful on rank 0.
nlohmann::json gather_environment(MPI_Comm comm);

/// Returns the information of `haloscope info` on this build: MPI, compiler, kernels, devices, apps. Local.
nlohmann::json build_info();

/// Returns the description of a device in records. @param backend  its back end.
nlohmann::json device_json(const std::string& backend, const device::Device& device);

/// Pin the threads of this rank to cores of their own where the node has enough of them; collective over `comm`.
void pin_threads(MPI_Comm comm, int threads);

}  // namespace haloscope
