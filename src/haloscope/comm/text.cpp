#include "haloscope/comm/text.hpp"

#include <ctime>

#include "haloscope/comm/mpi_call.hpp"

namespace haloscope {

std::string mpi_library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  CHECK_MPI(MPI_Get_library_version(text, &length));
  const std::string line(text, static_cast<std::size_t>(length));
  return line.substr(0, line.find_first_of(std::string("\n\0", 2)));  // Open MPI counts the end of its text
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
  return text;
}

std::string text_of_rank(MPI_Comm comm, int rank, std::string text) {
  int length = static_cast<int>(text.size());
  CHECK_MPI(MPI_Bcast(&length, 1, MPI_INT, rank, comm));
  text.resize(static_cast<std::size_t>(length));
  if (length > 0) CHECK_MPI(MPI_Bcast(text.data(), length, MPI_CHAR, rank, comm));
  return text;
}

}  // namespace haloscope
