// Fields in files: a redistribution to slabs, one for each rank, each of which lies in one piece in the file.
#include "haloscope/runner/field_files.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/core/npy.hpp"
#include "haloscope/extend/agree.hpp"
#include "haloscope/extend/topology.hpp"
#include "haloscope/field/memory.hpp"
#include "haloscope/redistribution.hpp"
#include "haloscope/runner/exchange_request.hpp"
#include "haloscope/runner/memory_space.hpp"

namespace haloscope {
namespace {

constexpr std::int64_t piece = std::int64_t{1} << 30;  // bytes of a call of MPI

/// A file opened by this rank alone, so that a failure blocks no other rank. MPI's files are right on file systems of
/// several machines, where the system's calls need locks.
class File {
 public:
  File(const std::string& path, int mode) : path_(path) {
    // MPI takes "ufs:u.npy" for a file system and a file, an absolute path for a path.
    const std::string absolute = std::filesystem::absolute(path).string();
    CHECK_MPI(MPI_File_open(MPI_COMM_SELF, absolute.c_str(), mode, MPI_INFO_NULL, &file_));
  }
  ~File() {
    try {
      if (file_ != MPI_FILE_NULL) close();
    } catch (const MpiError&) {  // another failure has ended the access
    }
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void write(std::int64_t at, const std::byte* from, std::int64_t bytes) {
    for (std::int64_t done = 0; done < bytes; done += piece) {
      const int count = static_cast<int>(std::min(piece, bytes - done));
      MPI_Status status;
      CHECK_MPI(MPI_File_write_at(file_, at + done, from + done, count, MPI_BYTE, &status));
      require(status, count, "took");
    }
  }
  void read(std::int64_t at, std::byte* to, std::int64_t bytes) {
    for (std::int64_t done = 0; done < bytes; done += piece) {
      const int count = static_cast<int>(std::min(piece, bytes - done));
      MPI_Status status;
      CHECK_MPI(MPI_File_read_at(file_, at + done, to + done, count, MPI_BYTE, &status));
      require(status, count, "has");
    }
  }
  std::int64_t size() const {
    MPI_Offset bytes = 0;
    CHECK_MPI(MPI_File_get_size(file_, &bytes));
    return bytes;
  }
  void set_size(std::int64_t bytes) { CHECK_MPI(MPI_File_set_size(file_, bytes)); }
  /// Ends the access. @throws MpiError where data cannot be stored.
  void close() { CHECK_MPI(MPI_File_close(&file_)); }

 private:
  void require(MPI_Status& status, int count, const char* verb) const {
    int moved = 0;
    CHECK_MPI(MPI_Get_count(&status, MPI_BYTE, &moved));
    if (moved != count)
      throw Error(Exit::failed, "file '" + path_ + "' " + verb + " " + std::to_string(moved) + " bytes of " +
                                    std::to_string(count) + "; is its file system full, or was it cut off?");
  }

  std::string path_;
  MPI_File file_ = MPI_FILE_NULL;
};

/// Returns the split into whole planes of the last dimension, as many ranks as can have one.
Layout slabs_of(const Layout& layout) {
  const int last = layout.dims() - 1;
  ProcessGrid ranks{1, 1, 1};
  ranks[last] = static_cast<int>(std::min<std::int64_t>(layout.size(), layout.grid().cells[last]));
  GridSpec grid = layout.grid();
  grid.panels = {};
  return Layout(grid, ranks).with_idle_ranks(layout.size());
}

/// Returns the type of a quantity's numbers in a file.
std::string type_of(const Quantity& quantity) {
  const int bytes = quantity.number_bytes > 0 ? quantity.number_bytes : quantity.element_bytes;
  const char order = bytes > 1 ? '<' : '|', kind = quantity.type == ScalarType::integer ? 'i' : 'f';
  std::string type = quantity.number_bytes < 0 ? "|V" : std::string{order, kind};
  return type += std::to_string(bytes);
}

/// The planes that this rank reads or writes, and their place in the file.
class Slab {
 public:
  Slab(const Layout& layout, int rank, const FieldFile& file) : split(slabs_of(layout)), quantity_(file.quantity()) {
    const int dims = layout.dims(), last = dims - 1;
    header.type = file.type.empty() ? type_of(quantity_) : file.type;
    const int number = bytes_of_type(header.type);
    if (quantity_.element_bytes % number != 0)
      throw UsageError("field '" + quantity_.name + "' has points of " + std::to_string(quantity_.element_bytes) +
                       " bytes, which do not consist of numbers of type '" + header.type + "'; pass their type");
    for (int d = last; d >= 0; --d) header.shape.push_back(layout.grid().cells[d] + staggered(quantity_.centring, d));
    if (quantity_.element_bytes != number) header.shape.push_back(quantity_.element_bytes / number);
    view.element = view.stride[0] = quantity_.element_bytes;
    std::int64_t bytes = quantity_.element_bytes;  // from point to point
    for (int d = 0; d < dims; ++d) {
      view.stride[d] = bytes;
      bytes *= layout.grid().cells[d] + staggered(quantity_.centring, d);
    }
    plane_ = view.stride[last];
    all_bytes = bytes;
    if (!split.owns_cells(rank)) return;
    const Box own = split.owned(rank);
    first_ = own.lo[last];
    held_ = own.extent(last) + staggered(quantity_.centring, last);
    written_ = own.hi[last] == layout.grid().cells[last] ? held_ : own.extent(last);
    memory = Memory(static_cast<std::size_t>(held_ * plane_), "a file's planes");
    view.origin = memory.data();
  }
  FieldRef field() const { return {quantity_, {}, {}, {view}, {}}; }

  void write(const std::string& path, std::int64_t header_bytes) const {
    if (held_ == 0) return;
    File file(path, MPI_MODE_WRONLY);
    file.write(header_bytes + first_ * plane_, memory.data(), written_ * plane_);
    file.close();
  }
  void read(const std::string& path, std::int64_t header_bytes) const {
    if (held_ == 0) return;
    File file(path, MPI_MODE_RDONLY);
    file.read(header_bytes + first_ * plane_, memory.data(), held_ * plane_);
    file.close();
  }

  Layout split;
  NpyHeader header;
  std::int64_t all_bytes = 0;  ///< of all numbers
  SlotView view;
  Memory memory;

 private:
  Quantity quantity_;
  std::int64_t plane_ = 0, first_ = 0, held_ = 0, written_ = 0;  // bytes of a plane; planes
};

/// Returns the header of a file that lists its axes from the fastest on, if it is to, else from the slowest on.
NpyHeader listed(NpyHeader header, bool first_axis_fastest) {
  if (first_axis_fastest) std::reverse(header.shape.begin(), header.shape.end());
  header.first_axis_fastest = first_axis_fastest;
  return header;
}

/// Compares a file's header with a field's. Axes are compared by their names too: a file that lists them in another
/// order than the program would be read transposed. @throws UsageError where they differ.
void check_header(const NpyHeader& found, const NpyHeader& wanted, const std::string& path) {
  const auto refuse = [&](const std::string& property, const std::string& in_file, const std::string& of_field) {
    throw UsageError("file '" + path + "' has " + property + " " + in_file + ", and the field " + of_field +
                     "; read it into a field of the same grid, centring and type");
  };
  if (found.type != wanted.type) refuse("numbers of type", found.type, wanted.type);
  if (found.first_axis_fastest != wanted.first_axis_fastest && wanted.shape.size() > 1)
    throw UsageError("file '" + path + "' has its " + (found.first_axis_fastest ? "first" : "last") +
                     " axis contiguous, and this program its " + (wanted.first_axis_fastest ? "first" : "last") +
                     "; read it with order " + (found.first_axis_fastest ? "F" : "C") +
                     ", or convert it by numpy.save() of " +
                     (wanted.first_axis_fastest ? "numpy.asfortranarray()" : "numpy.ascontiguousarray()"));
  if (found.shape != wanted.shape) refuse("extents", join_numbers(found.shape, "x"), join_numbers(wanted.shape, "x"));
}

/// Returns the number of a file in its file system.
std::uint64_t number_of(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? static_cast<std::uint64_t>(info.st_ino) : 0;
}

/// Returns a number that differs between two files, and between versions of one.
std::uint64_t version_of(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return 0;
  std::uint64_t version = 0;
  for (const std::int64_t part :
       {static_cast<std::int64_t>(info.st_ino), static_cast<std::int64_t>(info.st_size),
        static_cast<std::int64_t>(info.st_mtim.tv_sec), static_cast<std::int64_t>(info.st_mtim.tv_nsec)})
    version = (version ^ static_cast<std::uint64_t>(part)) * 0x9E3779B97F4A7C15U;
  return version;
}

/// Returns the path of the regular file that a path leads to, through links, or of the file that would be made.
/// @throws UsageError for a folder, a device, a pipe.
std::string regular_file(const std::string& path) {
  std::error_code none;
  const auto status = std::filesystem::status(path, none);
  if (!std::filesystem::exists(status)) return path;
  if (!std::filesystem::is_regular_file(status))
    throw UsageError("'" + path + "' is not a regular file; pass the path of a file, or of one that does not exist");
  return std::filesystem::canonical(path, none).string();
}

/// Checks that the ranks transfer one field. Collective.
void require_same(MPI_Comm comm, const Layout& layout, const FieldFile& file, const NpyHeader& header) {
  std::vector<Aspect> aspects = aspects_of(layout, {});
  aspects.insert(aspects.end(), {{"path", file.path},
                                 {"offset", file.offset ? std::to_string(*file.offset) : "none"},
                                 {"type", header.type},
                                 {"order", file.first_axis_fastest ? "F" : "C"},
                                 fields_of({file.quantity()})});
  require_same(comm, "files", aspects, {file.quantity().name}, "pass the same file and field on all of them");
}

/// Gives a draft the name and the permissions of the file that it replaces.
void put_into_place(const std::string& draft, const std::string& path) {
  std::error_code failed, none;
  if (const auto status = std::filesystem::status(path, none); std::filesystem::exists(status))
    std::filesystem::permissions(draft, status.permissions(), none);
  std::filesystem::rename(draft, path, failed);
  if (failed)
    throw Error(Exit::failed, "file '" + draft + "' cannot be renamed to '" + path + "': " + failed.message() +
                                  "; write to another folder");
}

/// Checks that a file of another format has the bytes of a field. @throws Error where it has not.
void require_bytes(const FieldFile& file, std::int64_t bytes) {
  std::error_code failed;
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(regular_file(file.path), failed));
  if (failed)
    throw Error(Exit::failed,
                "file '" + file.path + "' cannot be used: " + failed.message() + "; make it with its full size first");
  if (*file.offset < 0 || bytes > size || *file.offset > size - bytes)
    throw UsageError("the field has " + std::to_string(bytes) + " bytes from byte " + std::to_string(*file.offset) +
                     " of file '" + file.path + "', which has " + std::to_string(size) +
                     "; pass the offset of an array of this size, in a file that has been closed");
}

/// Writes the file under another name first, so that a failure leaves an earlier one as it is.
void write_whole(MPI_Comm comm, const FieldFile& file, const Slab& slab) {
  std::string path;
  agree(comm, [&] { path = regular_file(file.path); });
  const std::string draft = path + ".part", header = npy_bytes(listed(slab.header, file.first_axis_fastest));
  const auto header_bytes = static_cast<std::int64_t>(header.size());
  const bool first = rank_in(comm) == 0;
  bool drafted = false;
  try {
    agree(comm, [&] {
      if (!first) return;
      static_cast<void>(regular_file(draft));
      File made(draft, MPI_MODE_CREATE | MPI_MODE_WRONLY);
      drafted = true;
      made.set_size(header_bytes + slab.all_bytes);
      made.write(0, reinterpret_cast<const std::byte*>(header.data()), header_bytes);
      made.close();
    });
    agree(comm, [&] { slab.write(draft, header_bytes); });
    agree(comm, [&] {
      if (first) put_into_place(draft, path);
    });
  } catch (...) {
    if (drafted) static_cast<void>(std::remove(draft.c_str()));
    throw;
  }
}

void write(MPI_Comm comm, const Layout& layout, const FieldFile& file, const Slab& slab) {
  if (file.offset) {
    std::uint64_t number = 0;
    agree(comm, [&] {
      require_bytes(file, slab.all_bytes);
      number = number_of(file.path);
    });
    if (!same_everywhere(comm, number))
      throw Error(Exit::failed,
                  "file '" + file.path + "' is not the same on all ranks; write to one in a folder that they share");
  }
  Redistribution(comm, layout, slab.split, file.field, {slab.field()}, "direct/p2p").run();
  if (!file.offset) return write_whole(comm, file, slab);
  agree(comm, [&] { slab.write(file.path, *file.offset); });
}

/// Checks the header of a file, which rank 0 reads. Returns its bytes.
std::int64_t check_header(MPI_Comm comm, const FieldFile& file, const Slab& slab) {
  std::int64_t header_bytes = 0;
  std::array<char, longest_npy_header> beginning{};
  std::array<std::int64_t, 2> sizes{};  // of the file, and of its beginning that was read
  agree(comm, [&] {
    if (rank_in(comm) != 0) return;
    File opened(file.path, MPI_MODE_RDONLY);
    sizes = {opened.size(), std::min<std::int64_t>(opened.size(), beginning.size())};
    opened.read(0, reinterpret_cast<std::byte*>(beginning.data()), sizes[1]);
    opened.close();
  });
  CHECK_MPI(MPI_Bcast(sizes.data(), 2, MPI_INT64_T, 0, comm));
  CHECK_MPI(MPI_Bcast(beginning.data(), static_cast<int>(beginning.size()), MPI_BYTE, 0, comm));
  agree(comm, [&] {
    std::size_t at = 0;
    const std::string_view text(beginning.data(), static_cast<std::size_t>(sizes[1]));
    check_header(parse_npy(text, at, file.path), listed(slab.header, file.first_axis_fastest), file.path);
    header_bytes = static_cast<std::int64_t>(at);
    if (sizes[0] < header_bytes + slab.all_bytes)
      throw UsageError("file '" + file.path + "' ends after " + std::to_string(sizes[0]) + " bytes of " +
                       std::to_string(header_bytes + slab.all_bytes) + "; it was cut off: write it again");
  });
  return header_bytes;
}

void read(MPI_Comm comm, const Layout& layout, const FieldFile& file, const Slab& slab) {
  std::uint64_t version = 0;
  agree(comm, [&] {
    file.offset ? require_bytes(file, slab.all_bytes) : static_cast<void>(regular_file(file.path));
    version = version_of(file.path);
  });
  const std::int64_t begin = file.offset ? *file.offset : check_header(comm, file, slab);
  agree(comm, [&] {
    slab.read(file.path, begin);
    if (version_of(file.path) != version)
      throw Error(Exit::failed, "file '" + file.path + "' has changed while it was read; read it again");
  });
  if (!same_everywhere(comm, version))
    throw Error(Exit::failed,
                "file '" + file.path +
                    "' is not the same on all ranks, or has changed while it was read; read it again from a "
                    "folder that they share");
  Redistribution(comm, slab.split, layout, {slab.field()}, file.field, "direct/p2p").run();
}

}  // namespace

void transfer(MPI_Comm comm, const Layout& layout, Transfer kind, const std::function<FieldFile()>& make) {
  require_communicator(comm);
  collectively(comm, kind == Transfer::write ? "a file that is written" : "a file that is read", [&] {
    FieldFile file;
    std::optional<Slab> slab;
    agree(comm, [&] {
      file = make();
      for (FieldRef& u : file.field) u.quantity.edges = {};
      check_size(comm, layout);
      check_field(file.field, layout, rank_in(comm));
      if (file.path.empty()) throw UsageError("the name of a field's file is empty; pass a path, as 'u.npy'");
      if (!place_of_fields({file.quantity()}, views_of(file.field)).backend.empty())
        throw UsageError("field '" + file.quantity().name +
                         "' is in the memory of a device, and files take host memory; copy it");
      slab.emplace(layout, rank_in(comm), file);
    });
    require_same(comm, layout, file, slab->header);
    kind == Transfer::write ? write(comm, layout, file, *slab) : read(comm, layout, file, *slab);
  });
}

namespace {

/// Returns a field, in each block of this rank, of one slot.
std::vector<FieldRef> slot_of(std::vector<FieldRef> blocks, int slot) {
  for (FieldRef& u : blocks) {
    if (slot < 0 || slot >= static_cast<int>(u.slots.size()))
      throw UsageError("slot " + std::to_string(slot) + " of field '" + u.quantity.name + "' does not exist; it has " +
                       std::to_string(u.slots.size()));
    u.slots = {u.slots[static_cast<std::size_t>(slot)]};
  }
  return blocks;
}

}  // namespace

void write_field(MPI_Comm comm, const Layout& layout, const FieldRef& u, const std::string& path, int slot) {
  transfer_field(comm, layout, Transfer::write, [&] { return FieldFile{slot_of({u}, slot), path}; });
}
void write_field(MPI_Comm comm, const Layout& layout, const std::vector<FieldRef>& u, const std::string& path,
                 int slot) {
  transfer_field(comm, layout, Transfer::write, [&] { return FieldFile{slot_of(u, slot), path}; });
}

void read_field(MPI_Comm comm, const Layout& layout, const FieldRef& u, const std::string& path, int slot) {
  transfer_field(comm, layout, Transfer::read, [&] { return FieldFile{slot_of({u}, slot), path}; });
}
void read_field(MPI_Comm comm, const Layout& layout, const std::vector<FieldRef>& u, const std::string& path,
                int slot) {
  transfer_field(comm, layout, Transfer::read, [&] { return FieldFile{slot_of(u, slot), path}; });
}

void write_field_at(MPI_Comm comm, const Layout& layout, const FieldRef& u, const std::string& path,
                    std::int64_t offset, int slot) {
  write_field_at(comm, layout, std::vector{u}, path, offset, slot);
}
void write_field_at(MPI_Comm comm, const Layout& layout, const std::vector<FieldRef>& u, const std::string& path,
                    std::int64_t offset, int slot) {
  transfer_field(comm, layout, Transfer::write, [&] { return FieldFile{slot_of(u, slot), path, {}, false, offset}; });
}
void read_field_at(MPI_Comm comm, const Layout& layout, const FieldRef& u, const std::string& path, std::int64_t offset,
                   int slot) {
  read_field_at(comm, layout, std::vector{u}, path, offset, slot);
}
void read_field_at(MPI_Comm comm, const Layout& layout, const std::vector<FieldRef>& u, const std::string& path,
                   std::int64_t offset, int slot) {
  transfer_field(comm, layout, Transfer::read, [&] { return FieldFile{slot_of(u, slot), path, {}, false, offset}; });
}

}  // namespace haloscope
