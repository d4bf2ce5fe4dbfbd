// The task queue: one kernel packs, signals the CPU, waits and unpacks, while the CPU sends packed data and signals
// arrivals to blocks (Vanecek 2020, sections 3.4 to 3.6).
#include <algorithm>
#include <array>
#include <exception>
#include <thread>

#include "haloscope/error.hpp"
#include "vanecek2020/app/flow.hpp"

namespace haloscope {
namespace {

/// The state of the copies of a block, as numbered in figure 3.12.
enum CopyState { copying_in = 0, packing = 1, copying_out = 3, copied_all = 7 };

class TaskQueue final : public BlocksFlow {
 public:
  explicit TaskQueue(const BlocksContext& context);
  ~TaskQueue() override;
  HitProfile profile() const override;

 private:
  using Service = bool (TaskQueue::*)();
  /// The work of one thread of the CPU.
  struct Worker {
    std::vector<Service> services;  // in order of priority
    int events = 0;                 // of an iteration
    HitProfile profile;
    std::exception_ptr failure;
  };

  void exchange() override;
  void lay_out_words();
  void staff_desks();
  void reset();
  void launch();
  bool resume();
  void copy_in();
  void serve(Worker& desk);
  void serve_all();
  void finish();
  void check_list();

  bool take_copied_in();
  bool take_task();
  bool take_copied_out();
  bool take_arrived();
  int next_in_list();
  int next_in_channels();
  void copy_out(int block, int chunk);
  void tell(int block, std::uint32_t bit);
  void move(int block, std::initializer_list<int> from, int to);
  bool queried(int block, int state, device::Event& event);

  std::uint32_t* posted(int place) const { return words_ + place * stride_; }
  std::uint32_t* notice(int block) const { return words_ + (places_ + block) * stride_; }
  std::uint32_t* stop() const { return words_ + (places_ + blocks()) * stride_; }
  device::Stream& copies(int block) { return *copies_[static_cast<std::size_t>(block)]; }
  device::Event& copied_event(int block, int chunk) {  // chunk -1: of the copy to the device
    return *copied_[static_cast<std::size_t>(block * (context_.variant.chunks + 1) + chunk + 1)];
  }

  int tasks_ = 0, places_ = 0, stride_ = 1;
  device::Buffer memory_, counters_;
  std::uint32_t* words_ = nullptr;
  device::BlocksQueue queue_;
  std::unique_ptr<device::Stream> compute_;
  std::unique_ptr<device::Event> end_;
  std::vector<std::unique_ptr<device::Stream>> copies_;
  std::vector<std::unique_ptr<device::Event>> copied_;
  std::vector<int> taken_;                    // by block: tasks; as a list: its front
  std::vector<std::atomic<int>> issued_;      // copies to the host
  std::vector<std::atomic<int>> copy_state_;  // a CopyState
  std::vector<Worker> desks_;
  int front_ = 0;
  double copying_since_ = 0;              // to the device
  std::vector<double> copied_out_since_;  // by block x chunks + chunk
};

TaskQueue::TaskQueue(const BlocksContext& context)
    : BlocksFlow(context),
      compute_(device_.stream()),
      end_(device_.event(false)),
      taken_(static_cast<std::size_t>(blocks())),
      issued_(static_cast<std::size_t>(blocks())),
      copy_state_(static_cast<std::size_t>(blocks())),
      copied_out_since_(static_cast<std::size_t>(blocks() * context.variant.chunks)) {
  const int most = kernels_.resident(context.workload.threads);
  if (blocks() > most)
    throw UsageError("the task queue needs all " + std::to_string(blocks()) + " blocks of " +
                     std::to_string(context.workload.threads) + " threads on the device concurrently, and " +
                     device_.info().name + " holds " + std::to_string(most) +
                     "; use fewer blocks, sides or threads, or the baseline");
  for (int b = 0; b < blocks(); ++b) tasks_ += chunks(b);
  lay_out_words();
  for (int b = 0; context.variant.device && b < blocks(); ++b) {
    copies_.push_back(device_.stream());
    for (int c = -1; c < context.variant.chunks; ++c) copied_.push_back(device_.event(false));
  }
  staff_desks();
}

/// Signals a kernel that still waits to leave.
TaskQueue::~TaskQueue() { std::atomic_ref(*stop()).store(1, std::memory_order_release); }

void TaskQueue::lay_out_words() {
  const Variant& v = context_.variant;
  places_ = v.queue ? tasks_ : blocks();
  stride_ = v.padded ? device::line_words : 1;
  const auto words = static_cast<std::size_t>((places_ + blocks() + 1) * stride_ + blocks());
  memory_ = device::Buffer(device_, device::Space::mapped, words * sizeof(std::uint32_t));
  words_ = reinterpret_cast<std::uint32_t*>(memory_.data());
  std::fill_n(words_, words, 0u);
  constexpr std::array<std::uint32_t, 3 * device::line_words> zeros{};
  counters_ = device::copied_to(device_, zeros.data(), sizeof zeros);
  auto* counters = reinterpret_cast<std::uint32_t*>(counters_.data());
  queue_ = {.posted = words_,
            .notices = notice(0),
            .stride = stride_,
            .lock = v.queue ? counters : nullptr,
            .tail = counters + device::line_words,
            .tasks = static_cast<std::uint32_t>(tasks_),
            .packed = counters + 2 * device::line_words,
            .at_once = v.throttle,
            .chunks = v.chunks,
            .copies = v.device,
            .left = stop() + stride_,
            .stay = device_.info().stay(stop())};
}

void TaskQueue::staff_desks() {
  const bool device = context_.variant.device;
  const Service in = &TaskQueue::take_copied_in, task = &TaskQueue::take_task, out = &TaskQueue::take_copied_out,
                arrived = &TaskQueue::take_arrived;
  const int copies = device ? blocks() + tasks_ : 0;
  const auto desk = [](std::vector<Service> services, int events) {
    Worker made;
    made.services = std::move(services);
    made.events = events;
    return made;
  };
  const std::vector<Service> all = device ? std::vector{in, task, out} : std::vector{task};
  switch (context_.variant.cpu_threads) {
    case 1:
      desks_.push_back(desk(all, copies + 2 * tasks_));
      desks_[0].services.push_back(arrived);
      break;
    case 2:
      desks_.push_back(desk(all, copies + tasks_));
      desks_.push_back(desk({arrived}, tasks_));
      break;
    default:
      desks_.push_back(desk({task}, tasks_));
      desks_.push_back(desk({arrived}, tasks_));
      desks_.push_back(desk({in, out}, copies));
  }
}

HitProfile TaskQueue::profile() const {
  HitProfile all;
  for (const Worker& desk : desks_) all.add(desk.profile);
  return all;
}

// ---- an iteration ---------------------------------------------------------------------------------------------------

/// Runs an exchange. The kernel comes first: a kernel that spun for copies enqueued before it was seen to hang (3.5.1).
void TaskQueue::exchange() {
  log_.segment("launch");
  reset();
  launch();
  ++counts_.launches;
  copy_in();
  log_.segment("post");
  post_receives();
  log_.segment("events");
  serve_all();
  log_.segment("finish");
  finish();
  if (context_.every) check_list();
}

/// Clears the words. The kernel of the last iteration has ended: nothing else accesses them.
void TaskQueue::reset() {
  for (int place = 0; place < places_; ++place) *posted(place) = device::no_task;
  for (int b = 0; b < blocks(); ++b) {
    *notice(b) = 0;
    const auto at = static_cast<std::size_t>(b);
    taken_[at] = issued_[at] = 0;
    copy_state_[at] = copying_in;
  }
  std::fill_n(queue_.left, blocks(), 0u);
  queue_.resumes = false;
  front_ = 0;
}

/// Relaunches a kernel that has left the device before all data were there; it may leave again. @return true if it had.
bool TaskQueue::resume() {
  if (!end_->reached() || std::all_of(queue_.left, queue_.left + blocks(), [](auto rest) { return rest == 0; }))
    return false;
  queue_.resumes = true;
  launch();
  return true;
}

void TaskQueue::launch() {
  kernels_.queue(*compute_, launch_, queue_);
  compute_->record(*end_);
}

/// Copies the input, which packing overwrites entirely; the copy represents real input (section 3.5).
void TaskQueue::copy_in() {
  copying_since_ = log_.now();
  for (int b = 0; context_.variant.device && b < blocks(); ++b) {
    copies(b).copy(staging_[static_cast<std::size_t>(b)].data(), packed<std::byte>(b), byte_of(b, chunks(b)));
    copies(b).record(copied_event(b, -1));
  }
}

void TaskQueue::serve_all() {
  std::vector<std::thread> others;
  for (std::size_t d = 1; d < desks_.size(); ++d)
    others.emplace_back([this, d] {
      device_.use();
      serve(desks_[d]);
    });
  serve(desks_[0]);
  for (std::thread& other : others) other.join();
  for (const Worker& desk : desks_)
    if (desk.failure) std::rethrow_exception(desk.failure);
}

/// Serves the events of a desk; the first desk also resumes the kernel.
void TaskQueue::serve(Worker& desk) try {
  take_events(
      desk.events, desk.profile, "nothing happened",
      [&] {
        return std::any_of(desk.services.begin(), desk.services.end(), [&](Service take) { return (this->*take)(); });
      },
      [&] {
        if (&desk == &desks_[0]) resume();
      });
} catch (...) {
  given_up_ = true;
  desk.failure = std::current_exception();
}

void TaskQueue::finish() {
  StallTimer lookout(context_, 0);
  while (!end_->reached() || resume())
    if (lookout.rest()) look_elsewhere(lookout, "blocks did not end");
  wait_for_sends();
}

/// Checks that the list holds every task once.
void TaskQueue::check_list() {
  if (!context_.variant.queue) return;
  ++counts_.checked_lists;
  std::vector<std::uint32_t> found, all;
  for (int place = 0; place < places_; ++place) found.push_back(*posted(place));
  for (int b = 0; b < blocks(); ++b)
    for (int c = 0; c < chunks(b); ++c) all.push_back(static_cast<std::uint32_t>(b * device::most_chunks + c));
  std::sort(found.begin(), found.end());
  if (found != all) ++counts_.misordered_tasks;
}

// ---- events ---------------------------------------------------------------------------------------------------------

void TaskQueue::tell(int block, std::uint32_t bit) {
  std::atomic_ref(*notice(block)).fetch_or(bit, std::memory_order_release);
  const double now = log_.now();
  log_.event("notify", block, 0, now, now);
}

void TaskQueue::move(int block, std::initializer_list<int> from, int to) {
  auto& state = copy_state_[static_cast<std::size_t>(block)];
  if (std::find(from.begin(), from.end(), state.load()) == from.end()) ++counts_.illegal_moves;
  state = to;
}

/// Queries a stream only while it copies: queries are expensive.
bool TaskQueue::queried(int block, int state, device::Event& event) {
  if (copy_state_[static_cast<std::size_t>(block)] != state) return false;
  return event.reached();
}

bool TaskQueue::take_copied_in() {
  for (int b = 0; b < blocks(); ++b) {
    if (!queried(b, copying_in, copied_event(b, -1))) continue;
    ++counts_.copies_in;
    log_.event("copy-in", b, 0, copying_since_, log_.now());
    move(b, {copying_in}, packing);
    tell(b, device::copied);
    return true;
  }
  return false;
}

/// Returns the next task, first come, first served. @return block x chunks + chunk, -1: none.
int TaskQueue::next_in_list() {
  if (front_ == places_) return -1;
  const std::uint32_t word = std::atomic_ref(*posted(front_)).load(std::memory_order_acquire);
  if (word == device::no_task) return -1;
  ++front_;
  const int task = static_cast<int>(word), block = task / device::most_chunks;
  return block * context_.variant.chunks + task % device::most_chunks;
}

/// Returns the next task, the lowest block first.
int TaskQueue::next_in_channels() {
  for (int b = 0; b < blocks(); ++b) {
    int& taken = taken_[static_cast<std::size_t>(b)];
    if (taken == chunks(b)) continue;
    if (static_cast<int>(std::atomic_ref(*posted(b)).load(std::memory_order_acquire)) >= taken)
      return b * context_.variant.chunks + taken++;
  }
  return -1;
}

bool TaskQueue::take_task() {
  const int task = context_.variant.queue ? next_in_list() : next_in_channels();
  if (task < 0) return false;
  const int block = task / context_.variant.chunks, chunk = task % context_.variant.chunks;
  ++counts_.tasks;
  ++progress(block).packed;
  context_.variant.device ? copy_out(block, chunk) : send(block, chunk);
  return true;
}

void TaskQueue::copy_out(int block, int chunk) {
  const auto at = static_cast<std::size_t>(block);
  const std::size_t begin = byte_of(block, chunk), end = byte_of(block, chunk + 1);
  copies(block).copy(packed<std::byte>(block) + begin, staging_[at].data() + begin, end - begin);
  copies(block).record(copied_event(block, chunk));
  copied_out_since_[static_cast<std::size_t>(block * context_.variant.chunks + chunk)] = log_.now();
  move(block, {packing, copying_out}, copying_out);
  ++issued_[at];
}

bool TaskQueue::take_copied_out() {
  for (int b = 0; b < blocks(); ++b) {
    const int next = progress(b).sent, issued = issued_[static_cast<std::size_t>(b)];
    if (next == issued || !queried(b, copying_out, copied_event(b, next))) continue;
    ++counts_.copies_out;
    log_.event("copy-out", b, next, copied_out_since_[static_cast<std::size_t>(b * context_.variant.chunks + next)],
               log_.now());
    if (next + 1 == chunks(b)) move(b, {copying_out}, copied_all);
    send(b, next);
    return true;
  }
  return false;
}

bool TaskQueue::take_arrived() {
  const int task = test_receives();
  if (task < 0) return false;
  const int block = task / context_.variant.chunks;
  if (!note_arrival(task)) return true;
  tell(block, device::arrived(task % context_.variant.chunks));
  ++progress(block).notified;
  return true;
}

}  // namespace

std::unique_ptr<BlocksFlow> make_taskqueue(const BlocksContext& context) {
  return std::make_unique<TaskQueue>(context);
}

}  // namespace haloscope
