#include "haloscope/comm/shared_memory.hpp"

#include <sys/mman.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <numeric>

#include "haloscope/comm/gather.hpp"
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/mpi_traits.hpp"
#include "haloscope/comm/patience.hpp"
#include "haloscope/comm/window_memory.hpp"
#include "haloscope/core/out_of_memory.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/agree.hpp"

namespace haloscope {
namespace {

constexpr const char* file_system = "/dev/shm";   // holds the files behind shared windows of MPI libraries on Linux
std::int64_t most_bytes = std::int64_t{1} << 62;  // see cap_shared_memory()

/// Whole pages, in ascending order and disjoint.
using PageRanges = std::vector<ByteRange>;

/// One window and the addresses of every rank's memory in this process.
struct Window {
  int number = 0;
  std::shared_ptr<const OwnedComm> comm;  // of the node
  MPI_Win handle = MPI_WIN_NULL;
  std::byte* begin = nullptr;
  std::size_t bytes = 0;                        // of the rank's memory, in the window or private
  std::size_t shared = 0;                       // of the window
  std::vector<std::byte*> begins;               // by rank of the window's group
  std::vector<Memory> places;                   // mappings of memory that is only partly in the window
  PageRanges pages;                             // of the rank's memory, in the window
  int exceptions = std::uncaught_exceptions();  // in flight when it was made

  ~Window();
};

/// Windows of this process, oldest first. Several threads may open and free windows of different communicators.
struct Windows {
  std::mutex mutex;
  std::vector<Window*> list;
  int used = 0;  // the largest number of a window
};
Windows& windows() {
  static Windows& all = *new Windows;  // windows may end after static objects
  return all;
}

Window::~Window() {
  {
    const std::lock_guard lock(windows().mutex);
    std::erase(windows().list, this);
  }
  if (handle == MPI_WIN_NULL || mpi_is_over()) return;
  if (std::uncaught_exceptions() > exceptions && !Collective::runs()) return;  // other ranks may never come
  require_company(comm->get());
  const WaitInsideMpi end("the end of memory that ranks share");
  REQUIRE_MPI(MPI_Win_free(&handle));
}

const Window* find(int number) {
  const std::lock_guard lock(windows().mutex);
  const auto& list = windows().list;
  const auto at = std::find_if(list.begin(), list.end(), [&](const Window* w) { return w->number == number; });
  return at == list.end() ? nullptr : *at;
}

/// Returns the bytes that are left in the file system. @param held bytes held by the ranks of this machine
std::int64_t room(std::int64_t held) {
  struct statvfs info {};
  const std::int64_t most = std::max<std::int64_t>(0, most_bytes - held);
  if (statvfs(file_system, &info) != 0) return most;
  return std::min(most, static_cast<std::int64_t>(info.f_bavail) * static_cast<std::int64_t>(info.f_frsize));
}

std::int64_t sum(std::int64_t value, MPI_Comm comm) {
  CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT64_T, MPI_SUM, comm));
  return value;
}

/// Checks the room before the window is made: an MPI library whose file system is full ends the program or, worse, a
/// rank dies of SIGBUS at the first store.
void check_room(MPI_Comm everyone, MPI_Comm machine, std::size_t bytes) {
  const std::int64_t wanted = sum(static_cast<std::int64_t>(bytes + small_page), machine);
  const std::int64_t available = room(sum(shared_bytes(), machine));
  const bool lacking = wanted > available;
  if (!anywhere(lacking, everyone)) return;
  std::string text = "the ranks of a machine request more shared memory than it has";
  if (lacking)
    text = "the ranks of this machine request " + std::to_string(wanted) + " bytes of shared memory, but only " +
           std::to_string(available) + " are left in " + file_system;
  throw Error(Exit::failed, text + "; use a smaller grid, more machines, a larger " + file_system +
                                ", or a strategy that keeps the fields private (shared:packed, p2p)");
}

/// Marks a number as used. @return true if no other window has it. @param mine a number that was reserved for this
/// one.
bool take_number(int number, int mine) {
  const std::lock_guard lock(windows().mutex);
  if (number == mine) return true;
  if (number <= windows().used) return false;
  windows().used = number;
  return true;
}

int reserve_number() {
  const std::lock_guard lock(windows().mutex);
  return ++windows().used;
}

/// Returns the number of a new window. It must be equal on all its ranks, each of which may number windows of other
/// communicators on other threads at the same time.
int next_number(MPI_Comm comm) {
  for (;;) {
    const int mine = reserve_number();
    int number = mine;
    CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, &number, 1, MPI_INT, MPI_MAX, comm));
    if (!anywhere(!take_number(number, mine), comm)) return number;
  }
}

/// Returns the bytes from `base` to the next page. Open MPI 4.1 returns windows that start anywhere.
std::int64_t to_page(const void* base) {
  return static_cast<std::int64_t>((small_page - reinterpret_cast<std::uintptr_t>(base) % small_page) % small_page);
}

PageRanges pages_of(const std::vector<ByteRange>& ranges) {
  PageRanges pages;
  for (const ByteRange& range : ranges) {
    const ByteRange whole{range.begin / small_page * small_page, round_up(range.end, small_page)};
    if (!pages.empty() && whole.begin <= pages.back().end)
      pages.back().end = std::max(pages.back().end, whole.end);
    else
      pages.push_back(whole);
  }
  return pages;
}

std::size_t total(const PageRanges& pages) {
  std::size_t bytes = 0;
  for (const ByteRange& range : pages) bytes += range.size();
  return bytes;
}

/// Reserves addresses for `bytes` bytes without memory: an access ends the process.
Memory reserve(std::size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw OutOfMemory("addresses for a neighbour's fields", bytes, available_memory());
  return Memory(static_cast<std::byte*>(at), bytes, std::shared_ptr<void>(at, [bytes](void* p) { munmap(p, bytes); }));
}

/// Maps pages of a shared mapping at a second address too, and replaces the mapping there.
bool show(std::byte* at, std::byte* pages, std::size_t bytes) {
  return mremap(pages, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) == at;
}

/// Collective over node.comm(). The window has the pages consecutively.
std::shared_ptr<Window> open_window(const Node& node, const std::shared_ptr<const OwnedComm>& comm, std::size_t bytes,
                                    const PageRanges& pages) {
  if (mpi_traits.simulated)
    throw UnavailableError(
        "shared memory moves bytes by loads and stores, which take no time where messages are simulated; use p2p or "
        "persistent, or a build on a real MPI");
  auto window = std::make_shared<Window>();
  window->comm = comm;
  window->bytes = bytes;
  window->shared = total(pages);
  OwnedInfo info;
  CHECK_MPI(MPI_Info_create(info.address()));
  CHECK_MPI(MPI_Info_set(info.get(), "alloc_shared_noncontig", "true"));
  void* base = nullptr;
  require_communicator_left(node.comm());
  CHECK_MPI(MPI_Win_allocate_shared(static_cast<MPI_Aint>(window->shared + small_page), 1, info.get(), node.comm(),
                                    &base, &window->handle));
  CHECK_MPI(MPI_Win_set_errhandler(window->handle, MPI_ERRORS_RETURN));
  if (anywhere(!is_unified(window->handle), node.everyone()))
    throw UnavailableError(
        "this MPI library's shared windows are of the separate memory model, in which plain loads and "
        "stores between ranks do not work; use a strategy without shared memory");
  window->number = next_number(node.comm());
  std::byte* first = static_cast<std::byte*>(base) + to_page(base);
  std::memset(first, 0, window->shared);  // MPI does not guarantee zeros
  // The owner pads, since the same window may be at another place of a page in another process.
  const std::int64_t padding = to_page(base);
  std::vector<std::int64_t> paddings(static_cast<std::size_t>(node.size()));
  CHECK_MPI(MPI_Allgather(&padding, 1, MPI_INT64_T, paddings.data(), 1, MPI_INT64_T, node.comm()));
  for (int r = 0; r < node.size(); ++r) {
    MPI_Aint theirs_bytes = 0;
    int unit = 0;
    void* theirs = nullptr;
    CHECK_MPI(MPI_Win_shared_query(window->handle, r, &theirs_bytes, &unit, &theirs));
    window->begins.push_back(static_cast<std::byte*>(theirs) + paddings[static_cast<std::size_t>(r)]);
  }
  return window;
}

/// Finds where every rank's memory begins. Collective over node.comm().
/// @return true if all pages could be mapped at their places.
bool show_pages(const Node& node, Window& window, const PageRanges& pages) {
  std::vector<std::int64_t> mine{static_cast<std::int64_t>(window.bytes)};
  for (const ByteRange& range : pages)
    for (std::size_t at : {range.begin, range.end}) mine.push_back(static_cast<std::int64_t>(at));
  const auto lists = lists_of_all(node.comm(), mine);
  const int rank = rank_in(node.comm());
  bool shown = true;
  for (int r = 0; r < node.size(); ++r) {
    const auto& list = lists[static_cast<std::size_t>(r)];
    std::byte*& begin = window.begins[static_cast<std::size_t>(r)];
    const bool whole = list.size() == 3 && list[1] == 0 && list[2] >= list[0];
    if (whole || list[0] == 0) continue;
    const std::size_t bytes = round_up(static_cast<std::size_t>(list[0]), small_page);
    window.places.push_back(r == rank ? Memory(bytes) : reserve(bytes));
    std::byte* from = begin;
    begin = window.places.back().data();
    for (std::size_t i = 1; i < list.size(); i += 2) {
      const auto size = static_cast<std::size_t>(list[i + 1] - list[i]);
      shown = shown && show(begin + list[i], from, size);
      from += size;
    }
  }
  window.begin = window.begins[static_cast<std::size_t>(rank)];
  return shown;
}

}  // namespace

void cap_shared_memory(std::int64_t bytes) { most_bytes = bytes; }

Node::Node(MPI_Comm comm, const std::vector<int>& nodes) : everyone_(comm) {
  const int rank = rank_in(comm), size = ranks_in(comm);
  if (!nodes.empty() && static_cast<int>(nodes.size()) != size)
    throw UsageError("nodes are given for " + std::to_string(nodes.size()) + " ranks, but there are " +
                     std::to_string(size) + "; give one node number per rank");
  CHECK_MPI(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, machine_.address()));
  OwnedComm made;
  if (nodes.empty())
    CHECK_MPI(MPI_Comm_dup(machine_.get(), made.address()));
  else
    CHECK_MPI(MPI_Comm_split(machine_.get(), nodes[static_cast<std::size_t>(rank)], rank, made.address()));
  comm_ = std::make_shared<const OwnedComm>(std::move(made));
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  locals_ = ranks_in(group_of(this->comm()), group_of(comm), ranks);
  std::replace(locals_.begin(), locals_.end(), int{MPI_UNDEFINED}, -1);
  bool torn = false;  // a node of several machines
  for (int r = 0; !nodes.empty() && r < size; ++r)
    torn = torn || (nodes[static_cast<std::size_t>(r)] == nodes[static_cast<std::size_t>(rank)] && local(r) < 0);
  if (anywhere(torn, comm))
    throw UsageError(
        "an emulated node holds ranks of several machines, which share no memory; use more nodes, or place "
        "the ranks of a node together");
}

int Node::size() const { return ranks_in(comm()); }

Memory allocate_shared(const Node& node, std::size_t bytes, const std::vector<ByteRange>& reached) {
  const PageRanges all{{0, round_up(bytes, small_page)}};
  PageRanges pages = pages_of(reached);
  if (node.size() == 1) pages.clear();  // no other rank can access it
  if (total(pages) > bytes / 2) pages = all;
  check_room(node.everyone_, node.machine_.get(), total(pages));
  std::shared_ptr<Window> window = open_window(node, node.comm_, bytes, pages);
  // Some kinds of shared mapping cannot be seen at a second address.
  if (anywhere(!show_pages(node, *window, pages), node.everyone_)) {
    window.reset();
    check_room(node.everyone_, node.machine_.get(), total(all));
    pages = all;
    window = open_window(node, node.comm_, bytes, all);
    show_pages(node, *window, all);
  }
  window->pages = pages;
  CHECK_MPI(MPI_Barrier(node.comm()));
  {
    const std::lock_guard lock(windows().mutex);
    windows().list.push_back(window.get());
  }
  return Memory(window->begin, bytes, window);
}

SharedPlace shared_place(const void* address) {
  const std::lock_guard lock(windows().mutex);
  for (const Window* w : windows().list)
    if (address >= w->begin && address < w->begin + w->bytes)
      return {w->number, static_cast<const std::byte*>(address) - w->begin};
  return {};
}

bool is_reached(const std::byte* first, const std::byte* end) {
  const std::lock_guard lock(windows().mutex);
  for (const Window* w : windows().list)
    if (first >= w->begin && end <= w->begin + w->bytes)
      return std::any_of(w->pages.begin(), w->pages.end(), [&](const ByteRange& range) {
        return first >= w->begin + range.begin && end <= w->begin + range.end;
      });
  return false;
}

std::byte* shared_address(MPI_Comm comm, int owner, const SharedPlace& place) {
  const Window* window = find(place.window);
  if (window == nullptr) return nullptr;
  OwnedGroup ours;
  CHECK_MPI(MPI_Win_get_group(window->handle, ours.address()));
  const int rank = rank_in(ours, group_of(comm), owner);
  return rank == MPI_UNDEFINED ? nullptr : window->begins[static_cast<std::size_t>(rank)] + place.offset;
}

MPI_Win shared_window(int number) {
  const Window* window = find(number);
  return window ? window->handle : MPI_WIN_NULL;
}

std::int64_t shared_bytes() {
  std::int64_t bytes = -SharedArena::free_bytes();
  const std::lock_guard lock(windows().mutex);
  for (const Window* w : windows().list) bytes += static_cast<std::int64_t>(w->shared);
  return bytes;
}

}  // namespace haloscope
