#include "haloscope/comm/text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <ctime>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/together.hpp"

namespace haloscope {

std::string mpi_library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  CHECK_MPI(MPI_Get_library_version(text, &length));
  const std::string line(text, static_cast<std::size_t>(length));
  return line.substr(0, line.find_first_of(std::string("\n\0", 2)));  // Open MPI counts the terminating null
}

int open_mpi_version() {
  const std::string library = mpi_library(), name = "Open MPI v";
  return library.starts_with(name) ? std::atoi(library.c_str() + name.size()) : 0;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
  return text;
}

std::string text_of_rank(MPI_Comm comm, int rank, std::string text) {
  std::array<std::uint64_t, 1> bytes{text.size()};
  call_together(bytes, [&](std::uint64_t* at, MPI_Request* request) {
    CHECK_MPI(MPI_Ibcast(at, 1, MPI_UINT64_T, rank, comm, request));
  });
  const std::uint64_t length = bytes[0];
  text.resize(length);
  constexpr std::uint64_t most = std::uint64_t{1} << 30;  // bytes of one message
  for (std::uint64_t done = 0; done < length; done += most)
    CHECK_MPI(MPI_Bcast(text.data() + done, static_cast<int>(std::min(most, length - done)), MPI_CHAR, rank, comm));
  return text;
}

}  // namespace haloscope
