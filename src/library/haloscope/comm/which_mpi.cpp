// Checks that the running MPI is the one that the library was built for.
#include <dlfcn.h>
#include <mpi.h>

#include <atomic>
#include <filesystem>
#include <string>

#include "haloscope/comm/running.hpp"
#include "haloscope/comm/text.hpp"
#include "haloscope/error.hpp"

namespace haloscope {
namespace {

/// Returns the name of the file that provides MPI in this process, "libmpi.so.12"; "" where it is not a library of
/// such a name.
std::string file_of_mpi() {
  Dl_info found{};
  if (dladdr(reinterpret_cast<void*>(&PMPI_Comm_rank), &found) == 0) return "";
  const std::string name = std::filesystem::path(found.dli_fname).filename();
  return name.starts_with("libmpi") ? name : "";
}

/// Compares names only, which needs no handle: the standard names libraries with its ABI libmpi_abi.
bool is_foreign(const std::string& running) {
  const auto has = [&](const char* name) { return running.find(name) != std::string::npos; };
#ifdef MPI_ABI_VERSION
  constexpr bool for_abi = true;
#else
  constexpr bool for_abi = false;
#endif
  if (const std::string file = file_of_mpi(); !file.empty() && file.starts_with("libmpi_abi") != for_abi) return true;
  if (for_abi) return false;
  return (HS_BUILT_FOR_MPICH && (has("Open MPI") || has("SMPI"))) ||
         (HS_BUILT_FOR_OPENMPI && (has("MPICH") || has("Intel") || has("SMPI")));
}

}  // namespace

/// A process has one MPI. Later calls allocate nothing: a rank that throws here would block the others.
void refuse_other_mpi() {
  static std::atomic<bool> looked{false};
  if (looked.load(std::memory_order_acquire)) return;
  const std::string running = mpi_library();
  if (is_foreign(running))
    throw UsageError("the program runs " + running + " (" + file_of_mpi() + "), but this Haloscope was built for " +
                     HS_BUILT_FOR_THIS + ": " HS_MPI_REMEDY);
  looked.store(true, std::memory_order_release);
}

}  // namespace haloscope
