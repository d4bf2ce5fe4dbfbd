#include "haloscope/transport/onesided/window.hpp"

#include <algorithm>
#include <array>

#include "haloscope/comm/gather.hpp"
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/mpi_traits.hpp"
#include "haloscope/comm/patience.hpp"
#include "haloscope/comm/set_up_messages.hpp"
#include "haloscope/comm/together.hpp"
#include "haloscope/comm/window_memory.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/agree.hpp"
#include "haloscope/pack/region_copy.hpp"

namespace haloscope {

RmaOptions RmaOptions::parse(const std::vector<std::string>& words) {
  return {.get = has(words, "get") || has(words, "rget") || has(words, "barrier"),
          .per_message = has(words, "per-message"),
          .split = has(words, "split"),
          .flag = has(words, "flag"),
          .barrier = has(words, "barrier"),
          .rget = has(words, "rget"),
          .plain = has(words, "plain"),
          .separate = has(words, "separate")};
}

Window::Window(MPI_Comm comm, OwnedComm own, std::size_t bytes, const Hints& hints) : Window(comm, std::move(own)) {
  OwnedInfo info;
  if (!hints.empty()) CHECK_MPI(MPI_Info_create(info.address()));
  for (const auto& [key, value] : hints) CHECK_MPI(MPI_Info_set(info.get(), key, value));
  allocate_window(comm, bytes, 1, info.get(), &data_, &handle_);
}

Window::~Window() {
  if (handle_ != MPI_WIN_NULL) {
    const WaitInsideMpi end("the end of a window");
    unlock_all();
    require_company(comm_);
    REQUIRE_MPI(MPI_Win_free(&handle_));
  }
}

Window::Window(Window&& other) noexcept
    : comm_(std::exchange(other.comm_, MPI_COMM_NULL)),
      own_(std::move(other.own_)),
      data_(other.data_),
      handle_(std::exchange(other.handle_, MPI_WIN_NULL)),
      locked_(std::exchange(other.locked_, false)) {}

void Window::lock_all(int assertion) const {
  CHECK_MPI(MPI_Win_lock_all(assertion, handle_));
  locked_ = true;
}

void Window::unlock_all() const {
  if (std::exchange(locked_, false)) REQUIRE_MPI(MPI_Win_unlock_all(handle_));
}

int Window::rank_of(MPI_Comm comm, int rank) const { return rank_in(group_of(comm_), group_of(comm), rank); }

WindowLink::WindowLink(const LinkContext& context, const RmaOptions& options)
    : context_(context),
      options_(options),
      rank_(rank_in(comm())),
      messages_(context.messages()),
      slots_(context.slots()),
      ports_(std::make_unique<Port[]>(static_cast<std::size_t>(messages_))) {
  if (mpi_traits.simulated)
    throw UnavailableError(
        "one-sided transports query a window's memory model, and SMPI then ends the program; use p2p or persistent, "
        "or a build on a real MPI");
  require_windows_apart(comm());
  place_origins();
}

/// Places the origin's end of each transfer: in place where the regions are one gapless span, else in a buffer for
/// all slots.
void WindowLink::place_origins() {
  std::size_t needed = 0;
  for (const Message& m : context_.plan->messages) needed += m.out != options_.get ? whole_lines(m.bytes) : 0;
  buffers_ = Memory(needed, "message buffers");
  std::byte* buffer = buffers_.data();
  for (int id = 0; id < messages_; ++id) {
    const Message& m = context_.plan->messages[static_cast<std::size_t>(id)];
    if (!context_.moves(id)) continue;
    Port& p = ports_[id];
    p.peer = m.peer;
    p.tag = m.tag;
    p.round = m.round;
    p.out = m.out;
    p.origin = m.out != options_.get;
    p.bytes = m.bytes;
    p.type = byte_type(m.bytes);
    p.data.resize(static_cast<std::size_t>(slots_));
    p.packing.resize(static_cast<std::size_t>(slots_));
    for (int slot = 0; slot < slots_ && p.origin; ++slot) {
      p.data[slot] = contiguous_span(*context_.views, slot, m);
      if (p.data[slot] != nullptr) continue;
      p.data[slot] = buffer;
      p.packing[slot] = make_packing(*context_.views, slot, m, buffer);
    }
    buffer += p.origin ? whole_lines(m.bytes) : 0;
  }
}

std::vector<int> WindowLink::numbers_in_round() const {
  std::vector<int> numbers(static_cast<std::size_t>(messages_)), next(static_cast<std::size_t>(context_.plan->rounds));
  for (int id = 0; id < messages_; ++id)
    if (moves(id) && !ports_[id].origin) numbers[id] = next[ports_[id].round]++;
  return numbers;
}

/// Numbers windows by messages. The offset from sender to receiver in the process grid, together with the tag, names
/// a message at both ends: names are unique per sender and per receiver. All names of all ranks, in order, are
/// numbered.
void WindowLink::make_message_windows(const Hints& hints) {
  const Layout& layout = *context_.layout;
  const auto name = [&](const Port& p) {
    if (context_.between_any_ranks()) {
      const int step = (p.out ? p.peer - rank_ : rank_ - p.peer) + layout.size();
      return (static_cast<std::int64_t>(step % layout.size()) << 32) + p.tag;
    }
    const auto from = layout.coords(p.out ? rank_ : p.peer), to = layout.coords(p.out ? p.peer : rank_);
    std::int64_t way = 0;
    for (int d = 0; d < 3; ++d)
      way = way * layout.ranks()[d] + (to[d] - from[d] + layout.ranks()[d]) % layout.ranks()[d];
    return (way << 32) + p.tag;
  };
  std::vector<std::int64_t> mine;
  for (int id = 0; id < messages_; ++id)
    if (moves(id) && !ports_[id].origin) mine.push_back(name(ports_[id]));
  std::vector<std::int64_t> all;
  for (const auto& list : lists_of_all(comm(), mine)) all.insert(all.end(), list.begin(), list.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  make_common_windows(static_cast<int>(all.size()), hints,
                      [&](int id) { return std::lower_bound(all.begin(), all.end(), name(ports_[id])) - all.begin(); });
}

std::size_t WindowLink::bytes_of(const Exposed& exposed) const {
  std::size_t bytes = 0;
  for (int id : exposed.ids) bytes += whole_lines(ports_[id].bytes);
  return bytes > 0 ? bytes + cache_line : 0;  // MPI's memory may begin anywhere in a cache line
}

void WindowLink::make_windows(std::vector<Exposed> exposed, Hints hints, int own) {
  std::size_t all_bytes = 0;
  for (const Exposed& one : exposed) all_bytes += bytes_of(one);
  require_window_memory(comm(), all_bytes);
  if (options_.plain) hints.clear();
  windows_.reserve(exposed.size());
  const bool in_turn = own >= 0 && windows_collide();
  for (std::size_t w = 0; w < exposed.size(); ++w) {
    if (in_turn && static_cast<int>(w) == own) await_turn();
    const std::size_t bytes = bytes_of(exposed[w]);
    Hints all = hints;
    if (!options_.plain) {
      all.emplace_back("same_disp_unit", "true");
      if (same_everywhere(exposed[w].comm, static_cast<std::uint64_t>(bytes))) all.emplace_back("same_size", "true");
    }
    windows_.emplace_back(exposed[w].comm, std::move(exposed[w].own), bytes, all);
    const Window& window = windows_.back();
    if (in_turn) meet_before(window.comm());  // all ranks have opened its memory
    if (in_turn && static_cast<int>(w) == own) end_turn();
    all_unified_ = all_unified_ && is_unified(window.handle());
    std::byte* base = window.data();
    std::size_t at =
        round_up(reinterpret_cast<std::uintptr_t>(base), cache_line) - reinterpret_cast<std::uintptr_t>(base);
    for (int id : exposed[w].ids) {
      Port& p = ports_[id];
      p.window = static_cast<int>(w);
      p.at = static_cast<MPI_Aint>(at);
      at += whole_lines(p.bytes);
    }
  }
  unified_ = all_unified_ && !options_.separate;
  place_segments();
  send_places(own);
}

/// Waits for the ranks before this one: ranks make their windows sequentially.
void WindowLink::await_turn() const {
  if (rank_ == 0) return;
  MPI_Request request;
  CHECK_MPI(MPI_Irecv(nullptr, 0, MPI_BYTE, rank_ - 1, tags().reduction(), comm(), &request));
  meet_in(request);
}

void WindowLink::end_turn() const {
  if (rank_ + 1 < ranks_in(comm())) CHECK_MPI(MPI_Send(nullptr, 0, MPI_BYTE, rank_ + 1, tags().reduction(), comm()));
}

void WindowLink::place_segments() {
  for (int id = 0; id < messages_; ++id) {
    Port& p = ports_[id];
    if (!moves(id) || p.origin) continue;
    std::byte* segment = windows_[static_cast<std::size_t>(p.window)].data() + p.at;
    for (int slot = 0; slot < slots_; ++slot) {
      const Message& m = context_.plan->messages[static_cast<std::size_t>(id)];
      p.data[slot] = segment;
      p.packing[slot] = make_packing(*context_.views, slot, m, segment);
    }
  }
}

void WindowLink::send_places(int own) {
  SetUpMessages<std::array<std::int64_t, 2>> places(static_cast<std::size_t>(messages_));
  for (int id = 0; id < messages_; ++id) {
    const Port& p = ports_[id];
    if (!moves(id)) continue;
    const int tag = tags().opening(p.tag);
    p.origin ? places.receive(id, p.peer, tag, comm()) : places.send(id, {p.window, p.at}, p.peer, tag, comm());
  }
  places.complete();
  for (int id = 0; id < messages_; ++id) {
    Port& p = ports_[id];
    if (!moves(id) || !p.origin) continue;
    p.window = own >= 0 ? own : static_cast<int>(places[id][0]);
    p.at = static_cast<MPI_Aint>(places[id][1]);
    p.target = windows_[static_cast<std::size_t>(p.window)].rank_of(comm(), p.peer);
  }
}

void WindowLink::pack(Ids out, int slot, Share share) {
  for (int id : out) ports_[id].packing[slot].run(share);
}

void WindowLink::unpack(Ids in, int slot, Share share) {
  for (int id : in) ports_[id].packing[slot].run(share);
}

std::int64_t WindowLink::packing_lines(Ids ids, int slot) const {
  std::int64_t lines = 0;
  for (int id : ids) lines += ports_[id].packing[slot].lines();
  return lines;
}

void WindowLink::start(Port& p, int slot) {
  p.slot = slot;
  p.pending.store(true, std::memory_order_relaxed);
}

void WindowLink::transfer(Port& p, MPI_Request* request) {
  const MPI_Win window = windows_[static_cast<std::size_t>(p.window)].handle();
  std::byte* data = p.data[p.slot];
  const int n = p.type.count();
  const MPI_Datatype type = p.type.type();
  if (p.out)
    REQUIRE_MPI(MPI_Put(data, n, type, p.target, p.at, n, type, window));
  else if (request == nullptr)
    REQUIRE_MPI(MPI_Get(data, n, type, p.target, p.at, n, type, window));
  else
    REQUIRE_MPI(MPI_Rget(data, n, type, p.target, p.at, n, type, window, request));
}

int WindowLink::waiting_for(Ids in, int) const {
  for (int id : in)
    if (ports_[id].pending.load(std::memory_order_relaxed)) return ports_[id].peer;
  return -1;
}

std::string WindowLink::report() const {
  return std::string("memory model ") + (all_unified_ ? "unified" : "separate") + ", " +
         std::to_string(windows_.size()) + (windows_.size() == 1 ? " window" : " windows") +
         (options_.plain ? ", no hints or assertions" : ", hints and assertions");
}

void WindowLink::finish() {
  for (bool out : {false, true})
    for (int slot = 0; slot < slots_; ++slot) {
      std::vector<int> ids;
      for (int id = 0; id < messages_; ++id) {
        const Port& p = ports_[id];
        if (p.pending.load(std::memory_order_relaxed) && p.out == out && p.slot == slot) ids.push_back(id);
      }
      if (!ids.empty()) out ? complete(ids, slot) : wait(ids, slot);
    }
}

}  // namespace haloscope
