// Handles of MPI with an owner, which frees them in its destructor.
#pragma once

#include <mpi.h>

#include <exception>
#include <span>
#include <utility>
#include <vector>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/patience.hpp"

namespace haloscope {

/// Returns true if no handle can be freed any more.
inline bool mpi_is_over() {
  int over = 0;
  REQUIRE_MPI(MPI_Finalized(&over));
  return over != 0;
}

/// A handle that is freed with this object: an opening that fails halfway does not leak handles. Move-only.
/// @tparam Kind kind of handle: its type, the null handle, a function that frees one.
template <class Kind>
class Owned {
 public:
  using Handle = typename Kind::Handle;

  Owned() = default;
  explicit Owned(Handle handle) : handle_(handle) {}
  ~Owned() {
    if (*this && !mpi_is_over()) Kind::free(handle_);
  }
  Owned(Owned&& other) noexcept : handle_(other.release()) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }

  explicit operator bool() const { return handle_ != Kind::none(); }
  Handle get() const { return handle_; }
  /// Returns the address for a handle that MPI makes or changes.
  Handle* address() { return &handle_; }
  /// Gives up the handle, which is then never freed: other ranks may never make the call that frees it.
  Handle release() { return std::exchange(handle_, Kind::none()); }

 private:
  Handle handle_ = Kind::none();
};

struct CommHandle {
  using Handle = MPI_Comm;
  static Handle none() { return MPI_COMM_NULL; }
  static void free(Handle& handle) {
    const WaitInsideMpi end("the end of a communicator");
    REQUIRE_MPI(MPI_Comm_free(&handle));
  }
};
/// A communicator that all ranks free within the call that makes it.
struct BriefCommHandle : CommHandle {
  static void free(Handle& handle) { REQUIRE_MPI(MPI_Comm_free(&handle)); }
};
struct GroupHandle {
  using Handle = MPI_Group;
  static Handle none() { return MPI_GROUP_NULL; }
  static void free(Handle& handle) { REQUIRE_MPI(MPI_Group_free(&handle)); }
};
struct InfoHandle {
  using Handle = MPI_Info;
  static Handle none() { return MPI_INFO_NULL; }
  static void free(Handle& handle) { REQUIRE_MPI(MPI_Info_free(&handle)); }
};
/// A persistent request that is not in flight.
struct RequestHandle {
  using Handle = MPI_Request;
  static Handle none() { return MPI_REQUEST_NULL; }
  static void free(Handle& handle) { REQUIRE_MPI(MPI_Request_free(&handle)); }
};
struct TypeHandle {
  using Handle = MPI_Datatype;
  static Handle none() { return MPI_DATATYPE_NULL; }
  static void free(Handle& handle) { REQUIRE_MPI(MPI_Type_free(&handle)); }
};
/// A window. It is not freed during stack unwinding: it may be in the middle of an epoch, and other ranks may never
/// make the call.
struct WinHandle {
  using Handle = MPI_Win;
  static Handle none() { return MPI_WIN_NULL; }
  static void free(Handle& handle) {
    if (std::uncaught_exceptions() > 0) return;
    const WaitInsideMpi end("the end of a window");
    REQUIRE_MPI(MPI_Win_free(&handle));
  }
};

using OwnedComm = Owned<CommHandle>;
using BriefComm = Owned<BriefCommHandle>;
using OwnedGroup = Owned<GroupHandle>;
using OwnedInfo = Owned<InfoHandle>;
using OwnedRequest = Owned<RequestHandle>;
using OwnedType = Owned<TypeHandle>;
using OwnedWin = Owned<WinHandle>;

/// Duplicates a communicator, for collective calls in time steps and messages that must match no others. The duplicate
/// returns errors. Collective, and so is freeing it.
inline OwnedComm duplicate(MPI_Comm comm) {
  OwnedComm made;
  CHECK_MPI(MPI_Comm_dup(comm, made.address()));
  CHECK_MPI(MPI_Comm_set_errhandler(made.get(), MPI_ERRORS_RETURN));
  return made;
}

/// Returns the group of a communicator. Local.
inline OwnedGroup group_of(MPI_Comm comm) {
  OwnedGroup group;
  CHECK_MPI(MPI_Comm_group(comm, group.address()));
  return group;
}

/// Returns the group of some ranks of a communicator. Local.
inline OwnedGroup group_of(MPI_Comm comm, std::span<const int> ranks) {
  const OwnedGroup all = group_of(comm);
  OwnedGroup some;
  CHECK_MPI(MPI_Group_incl(all.get(), static_cast<int>(ranks.size()), ranks.data(), some.address()));
  return some;
}

/// Returns the number in `group` of a rank of another group; MPI_UNDEFINED: it is not in the group. Local, allocates
/// nothing.
inline int rank_in(const OwnedGroup& group, const OwnedGroup& from, int rank) {
  int found = MPI_UNDEFINED;
  CHECK_MPI(MPI_Group_translate_ranks(from.get(), 1, &rank, group.get(), &found));
  return found;
}

/// The same for several ranks.
inline std::vector<int> ranks_in(const OwnedGroup& group, const OwnedGroup& from, const std::vector<int>& ranks) {
  std::vector<int> found;
  found.reserve(ranks.size() + 1);  // so that data() is never null
  found.resize(ranks.size());
  CHECK_MPI(
      MPI_Group_translate_ranks(from.get(), static_cast<int>(ranks.size()), ranks.data(), group.get(), found.data()));
  return found;
}

}  // namespace haloscope
