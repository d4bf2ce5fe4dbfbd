#include "haloscope/runner/status.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "haloscope/error.hpp"
#include "haloscope/extend/program.hpp"

namespace haloscope {

namespace {

struct Header {
  char magic[8];
  std::int32_t ranks, slot_bytes;
  char rest[48];
};
static_assert(sizeof(Header) == 64);

}  // namespace

StatusBoard::StatusBoard(const std::string& path, int ranks, int rank)
    : ranks_(ranks), rank_(rank), shared_(!path.empty()), bytes_(sizeof(Header) + sizeof(RankStatus) * ranks) {
  int file = -1;
  if (shared_) {
    file = open(path.c_str(), O_RDWR | O_CREAT, 0644);
    if (file < 0 || ftruncate(file, static_cast<off_t>(bytes_)) != 0)
      throw Error(Exit::failed, "cannot make the status file '" + path + "': " + std::strerror(errno));
  }
  mapping_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, shared_ ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, file, 0);
  if (file >= 0) close(file);
  if (mapping_ == MAP_FAILED) throw Error(Exit::failed, "cannot map the status file '" + path + "'");
  auto* header = static_cast<Header*>(mapping_);
  std::memcpy(header->magic, "HSBOARD1", 8);
  header->ranks = ranks;
  header->slot_bytes = sizeof(RankStatus);
  slots_ = reinterpret_cast<RankStatus*>(header + 1);
  new (&slots_[rank]) RankStatus;
  mine().pid.store(static_cast<std::int32_t>(getpid()));
}

StatusBoard::~StatusBoard() { munmap(mapping_, bytes_); }

std::string phase_name(std::int32_t phase) {
  switch (static_cast<Phase>(phase)) {
    case Phase::setup:
      return "setup";
    case Phase::verify:
      return "verify";
    case Phase::idle:
      return "idle";
    case Phase::done:
      return "done";
  }
  return to_string(static_cast<OpKind>(phase));
}

}  // namespace haloscope
