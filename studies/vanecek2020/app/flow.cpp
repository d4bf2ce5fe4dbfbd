#include "vanecek2020/app/flow.hpp"

#include <algorithm>
#include <thread>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/core/text.hpp"
#include "haloscope/error.hpp"

namespace haloscope {
namespace {

constexpr std::size_t dummy_bytes = 128 << 10;  // beyond the eager limits of MPIs
constexpr int dummy_tag = 1;                    // tags of blocks are larger

int tag_of(int side, int numbers, int number, int chunk) {
  return 2 + (side * numbers + number) * device::most_chunks + chunk;
}

MPI_Datatype mpi_type(device::ElementType type) {
  switch (type) {
    case device::ElementType::f64:
      return MPI_DOUBLE;
    case device::ElementType::f32:
      return MPI_FLOAT;
    case device::ElementType::i32:
      return MPI_INT32_T;
  }
  throw Error(Exit::failed, "unknown type of elements");
}

/// Adds a rank once: distinct ranks, in the order of their first occurrence.
void add_rank(std::vector<int>& ranks, int rank) {
  if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) ranks.push_back(rank);
}

}  // namespace

BlocksFlow::BlocksFlow(const BlocksContext& context)
    : context_(context),
      device_(*context.device),
      log_(context.sides * context.workload.blocks(), context.detail),
      progress_(static_cast<std::size_t>(context.sides * context.workload.blocks())),
      tick_s_(1 / context.device->info().clock_hz) {
  int rank = 0, ranks = 1;
  REQUIRE_MPI(MPI_Comm_rank(context_.comm, &rank));
  REQUIRE_MPI(MPI_Comm_size(context_.comm, &ranks));
  lay_out(rank, ranks);
  const auto tasks = static_cast<std::size_t>(blocks() * context_.variant.chunks);
  receives_.assign(tasks, MPI_REQUEST_NULL);
  sends_.assign(tasks, MPI_REQUEST_NULL);
}

BlocksFlow::~BlocksFlow() = default;

void BlocksFlow::lay_out(int rank, int ranks) {
  using device::Buffer, device::Space;
  const Workload& work = context_.workload;
  const int numbers = work.blocks(), sides = ranks * context_.sides;
  const Space pinned = context_.variant.noncoherent ? Space::noncoherent : Space::mapped;
  std::vector<device::BlockEntry> entries;
  for (int s = 0; s < context_.sides; ++s)
    for (int b = 0; b < numbers; ++b) {
      const std::int64_t count = work.elements[static_cast<std::size_t>(b)] * 8 / device::bytes_of(context_.type);
      const auto bytes = static_cast<std::size_t>(count * device::bytes_of(context_.type));
      const int side = rank * context_.sides + s;
      const int to = destination_of(context_.scheme, side, sides, b), from = source_of(context_.scheme, side, sides, b);
      elements_.push_back(count);
      send_.emplace_back(device_, pinned, bytes);
      receive_.emplace_back(device_, pinned, bytes);
      if (context_.variant.device) staging_.emplace_back(device_, Space::device, bytes);
      std::byte* const out = (context_.variant.device ? staging_ : send_).back().data();
      entries.push_back({out, receive_.back().data(), count, side, from, b});
      peers_.push_back({to / context_.sides, tag_of(to % context_.sides, numbers, b, 0), from / context_.sides,
                        tag_of(s, numbers, b, 0)});
      add_rank(dummy_to_, peers_.back().to);
      add_rank(dummy_from_, peers_.back().from);
    }
  entries_ = device::copied_to(device_, entries.data(), entries.size() * sizeof entries[0]);
  faults_ = Buffer(device_, Space::mapped, entries.size() * sizeof(device::BlockFault));
  if (log_.on()) stamps_ = Buffer(device_, Space::mapped, entries.size() * sizeof(device::BlockStamps));
  if (context_.variant.dummy) dummy_ = Buffer(device_, pinned, dummy_bytes * (dummy_to_.size() + dummy_from_.size()));
  dummies_.assign(dummy_to_.size() + dummy_from_.size(), MPI_REQUEST_NULL);
  launch_ = {.entries = reinterpret_cast<const device::BlockEntry*>(entries_.data()),
             .first = 0,
             .count = blocks(),
             .threads = work.threads,
             .iteration = 0,
             .sides = sides,
             .numbers = numbers,
             .type = context_.type,
             .slope = context_.every ? device::slope_of(context_.type) : 0,
             .every = context_.every,
             .faults = reinterpret_cast<device::BlockFault*>(faults_.data()),
             .stamps = reinterpret_cast<device::BlockStamps*>(stamps_.data()),
             .detailed = log_.detail() == Detail::posting};
  std::fill_n(launch_.faults, blocks(), device::BlockFault{});
  if (log_.on()) std::fill_n(launch_.stamps, blocks(), device::BlockStamps{});
}

double BlocksFlow::iterate(std::int64_t iteration, bool counts) {
  iteration_ = launch_.iteration = iteration;
  for (Progress& p : progress_) p.packed = p.sent = p.arrived = p.notified = 0;
  log_.begin_iteration(counts);
  const double begin = now_s();
  exchange();
  log_.segment("barrier");
  meet(context_.comm, context_.yield);
  const double took = now_s() - begin;
  log_.segment("");
  refuse_faults(iteration);
  add_stamps();
  return took;
}

// ---- messages -------------------------------------------------------------------------------------------------------

void BlocksFlow::post_receives() {
  const int most = context_.variant.chunks;
  for (int b = 0; b < blocks(); ++b)
    for (int c = 0; c < chunks(b); ++c) {
      const std::int64_t begin = begin_of(b, c), end = begin_of(b, c + 1);
      const Peer& peer = peers_[static_cast<std::size_t>(b)];
      REQUIRE_MPI(MPI_Irecv(received<std::byte>(b) + byte_of(b, c), static_cast<int>(end - begin),
                            mpi_type(context_.type), peer.from, peer.from_tag + c, context_.comm,
                            &receives_[static_cast<std::size_t>(b * most + c)]));
    }
  if (context_.variant.dummy) start_dummies();
  if (context_.on_posted) context_.on_posted();
}

/// Starts messages that pay the cost of a first rendezvous while blocks still pack (section 4.6.1).
void BlocksFlow::start_dummies() {
  std::byte* at = dummy_.data();
  MPI_Request* request = dummies_.data();
  for (int from : dummy_from_) {
    REQUIRE_MPI(MPI_Irecv(at, dummy_bytes, MPI_BYTE, from, dummy_tag, context_.comm, request++));
    at += dummy_bytes;
  }
  for (int to : dummy_to_) {
    REQUIRE_MPI(MPI_Isend(at, dummy_bytes, MPI_BYTE, to, dummy_tag, context_.comm, request++));
    at += dummy_bytes;
  }
}

void BlocksFlow::send(int block, int chunk) {
  const std::int64_t begin = begin_of(block, chunk), end = begin_of(block, chunk + 1);
  const Peer& peer = peers_[static_cast<std::size_t>(block)];
  const std::byte* const data = packed<std::byte>(block) + byte_of(block, chunk);
  const auto count = static_cast<int>(end - begin);
  const double since = log_.now();
  if (context_.variant.blocking)
    REQUIRE_MPI(MPI_Send(data, count, mpi_type(context_.type), peer.to, peer.to_tag + chunk, context_.comm));
  else
    REQUIRE_MPI(MPI_Isend(data, count, mpi_type(context_.type), peer.to, peer.to_tag + chunk, context_.comm,
                          &sends_[static_cast<std::size_t>(block * context_.variant.chunks + chunk)]));
  log_.event("send", block, chunk, since, log_.now());
  ++counts_.sends;
  ++progress(block).sent;
}

int BlocksFlow::test_receives() {
  int index = MPI_UNDEFINED, flag = 0;
  REQUIRE_MPI(MPI_Testany(static_cast<int>(receives_.size()), receives_.data(), &index, &flag, MPI_STATUS_IGNORE));
  return flag != 0 && index != MPI_UNDEFINED ? index : -1;
}

bool BlocksFlow::note_arrival(int task) {
  const int block = task / context_.variant.chunks, chunk = task % context_.variant.chunks;
  const double now = log_.now();
  log_.event("receive", block, chunk, now, now);
  ++counts_.arrivals;
  ++progress(block).arrived;
  return !context_.on_arrival || context_.on_arrival(*this, block, chunk);
}

void BlocksFlow::wait_for_sends() {
  if (!context_.variant.blocking) settle(sends_, context_.yield);
  if (context_.variant.dummy) settle(dummies_, context_.yield);
}

// ---- faults and timestamps ------------------------------------------------------------------------------------------

std::string BlocksFlow::state() const {
  TextStream text;
  for (int b = 0; b < blocks(); ++b) {
    const Progress& p = progress_[static_cast<std::size_t>(b)];
    const Peer& peer = peers_[static_cast<std::size_t>(b)];
    text << (b > 0 ? "; " : "") << "block " << b << ": packed " << p.packed << ", sent " << p.sent << " to rank "
         << peer.to << ", received " << p.arrived << " from rank " << peer.from << ", notified " << p.notified << " of "
         << chunks(b);
  }
  return text.str();
}

void BlocksFlow::give_up(const std::string& why) const {
  throw Error(Exit::failed, "blocks, iteration " + std::to_string(iteration_) + ": " + why + "; " + state());
}

void BlocksFlow::refuse_faults(std::int64_t iteration) const {
  for (int b = 0; b < blocks(); ++b) {
    const device::BlockFault& fault = launch_.faults[b];
    if (fault.element < 0) continue;
    TextStream text;
    text.precision(17);
    text << "blocks, iteration " << iteration << ": block " << b << " received " << fault.found << " instead of "
         << fault.expected << " in element " << fault.element << " of " << elements(b) << " from rank "
         << peers_[static_cast<std::size_t>(b)].from;
    throw Error(Exit::failed, text.str());
  }
}

void BlocksFlow::add_stamps() {
  if (!log_.on()) return;
  for (int b = 0; b < blocks(); ++b) {
    const device::BlockStamps& s = launch_.stamps[b];
    const auto seconds = [&](std::uint64_t from, std::uint64_t to) { return static_cast<double>(to - from) * tick_s_; };
    log_.device_times(b, seconds(s.begin, s.packed), s.posting > 0 ? seconds(s.posting, s.packed) : 0,
                      seconds(s.arrived, s.unpacked));
  }
}

std::vector<BlockEvent> BlocksFlow::device_events(const ClockMap& clock) const {
  std::vector<BlockEvent> events;
  for (int b = 0; log_.on() && b < blocks(); ++b) {
    const device::BlockStamps& s = launch_.stamps[b];
    events.push_back({"pack", b, 0, clock.seconds(s.begin), clock.seconds(s.packed)});
    if (s.posting > 0) events.push_back({"post", b, 0, clock.seconds(s.posting), clock.seconds(s.packed)});
    events.push_back({"unpack", b, 0, clock.seconds(s.arrived), clock.seconds(s.unpacked)});
  }
  return events;
}

// ---- polling --------------------------------------------------------------------------------------------------------

void StallTimer::found() {
  looks_ = 0;
  since_ = 0;
  wait_.found();
}

bool StallTimer::rest() {
  if (backoff_us_ > 0)
    std::this_thread::sleep_for(std::chrono::microseconds(backoff_us_));
  else if (yield_)
    spin_.again();
  constexpr int looks_per_clock = 256;
  constexpr double while_s = 1e-3;
  if (++looks_ % looks_per_clock != 0 && backoff_us_ == 0) return false;
  const double now = now_s();
  if (since_ == 0) since_ = now;
  vain_s_ = now - since_;
  return vain_s_ > while_s;
}

void BlocksFlow::look_elsewhere(StallTimer& lookout, const char* missing) const {
  if (context_.limit_s > 0 && lookout.vain_s() > context_.limit_s)
    give_up(std::string(missing) + " for " + std::to_string(context_.limit_s) + " s");
  lookout.wait().look([&] { return std::string(missing) + "; " + state(); });
}

std::unique_ptr<BlocksFlow> make_flow(const BlocksContext& context) {
  switch (context.variant.flow) {
    case Variant::Flow::baseline:
      return make_baseline(context);
    case Variant::Flow::taskqueue:
      return make_taskqueue(context);
    case Variant::Flow::kernels:
      return make_kernels(context);
  }
  throw Error(Exit::failed, "unknown flow of blocks");
}

}  // namespace haloscope
