#include "haloscope/device/host_stream.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"

namespace haloscope::device::host {

Imitation parse_imitation(const std::string& text) {
  Imitation result;
  for (const std::string& word : split(text, ',')) {
    const auto equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const char* const end = word.data() + word.size();
    const char* const number = equals == std::string::npos ? end : word.data() + equals + 1;
    double value = 0;
    const auto [last, fault] = std::from_chars(number, end, value);  // the same in every locale
    const double min = name == "bytes" ? 0 : 1, max = name == "bytes" ? 1e15 : 64;
    if (fault != std::errc{} || last != end || !(value >= min && value <= max) ||
        !has({"devices", "bytes", "threads", "resident"}, name))
      throw UsageError("HALOSCOPE_HOST_DEVICE has '" + word +
                       "'; write devices=N, threads=N, resident=N (1 to 64) and bytes=N, separated by commas");
    if (name == "devices") result.devices = static_cast<int>(value);
    if (name == "bytes") result.bytes = static_cast<std::int64_t>(value);
    if (name == "threads") result.threads = static_cast<int>(value);
    if (name == "resident") result.resident = static_cast<int>(value);
  }
  return result;
}

static Imitation& current() {
  static Imitation all = [] {
    const char* const text = std::getenv("HALOSCOPE_HOST_DEVICE");
    return parse_imitation(text != nullptr ? text : "");
  }();
  return all;
}

static std::atomic<double> clock_rate{1};  // read by running kernels

void imitate(const Imitation& imitation) {
  current() = imitation;
  clock_rate = imitation.clock_rate;
}
const Imitation& imitation() { return current(); }

std::uint64_t imitated_clock() {
  constexpr double origin = 7e6;
  const std::chrono::duration<double> time = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(time.count() * imitated_clock_hz * clock_rate + origin);
}

void Health::check(const char* call, const void* object) const {
  if (on_call_) on_call_(call, object);
  if (failed_) throw Error(Exit::failed, std::string("call ") + call + " of back end host failed: the device is lost");
}

// ---- streams --------------------------------------------------------------------------------------------------------

HostStream::HostStream(const Imitation& imitation, std::shared_ptr<Health> health, unsigned number)
    : before_work_(imitation.before_work ? imitation.before_work(number) : nullptr),
      may_keep_(imitation.may_keep),
      threads_(imitation.threads),
      health_(std::move(health)),
      thread_([this] { serve(); }) {}

HostStream::~HostStream() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void HostStream::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closing_ || !work_.empty(); });
    if (work_.empty()) return;
    const Work work = std::move(work_.front());
    work_.pop_front();
    busy_ = true;
    lock.unlock();
    if (before_work_) before_work_();
    work();
    lock.lock();
    busy_ = false;
    if (work_.empty()) changed_.notify_all();
  }
}

void HostStream::enqueue(Work work) {
  health_->check("launch", this);
  add(std::move(work));
}

void HostStream::add(Work work) {
  // Contains no shared_ptr: counting its owners would order streams that nothing else orders, and hide races.
  Work whole = [this, work = std::move(work)] {
    if (health_->go_on()) work();
  };
  if (!capture_) return push(std::move(whole));
  keep([this, whole = std::move(whole)] { push(whole); });
}

void HostStream::push(Work work) {
  {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
  }
  changed_.notify_all();
}

void HostStream::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return work_.empty() && !busy_; });
  health_->check("finish", this);
}

void HostStream::copy(void* to, const void* from, std::size_t bytes) {
  health_->check("copy", this);
  if (bytes > 0) add([=] { std::memcpy(to, from, bytes); });
}

void HostStream::mark(HostEvent& event) {
  push([marks = event.marks(), mark = event.marks()->next()] { marks->reach(mark); });
}

void HostStream::pass(HostEvent& event) {
  push([marks = event.marks(), mark = event.marks()->last()] { marks->wait_for(mark); });
}

void HostStream::record(Event& base) {
  auto& event = static_cast<HostEvent&>(base);
  event.capture = capture_;
  if (!capture_) return mark(event);
  keep([this, &event] { mark(event); });
  event.stream = this;
  event.recorded = capture_->recorded[this];
}

void HostStream::wait(Event& base) {
  auto& event = static_cast<HostEvent&>(base);
  const auto theirs = event.capture.lock();
  if (!capture_) capture_ = theirs;  // from here on this stream takes part
  if (!capture_) return pass(event);
  keep([this, &event] { pass(event); });
  if (theirs == capture_ && this == capture_->origin) {
    int& awaited = capture_->awaited[event.stream];
    awaited = std::max(awaited, event.recorded);
  }
}

/// Polls the word, as a device does: no call notifies it. A device that has failed continues to poll until the word is
/// written.
static void look_until(const std::uint64_t* word, std::uint64_t value) {
  constexpr int longest = 8;  // 2^8 us between two reads
  const std::atomic_ref looked(*const_cast<std::uint64_t*>(word));
  for (int looks = 0; looked.load(std::memory_order_acquire) < value; ++looks)
    std::this_thread::sleep_for(std::chrono::microseconds(1 << std::min(looks, longest)));
}

void HostStream::write(std::uint64_t* word, std::uint64_t value) {
  enqueue([=] { std::atomic_ref(*word).store(value, std::memory_order_release); });
}

void HostStream::wait(const std::uint64_t* word, std::uint64_t value) {
  enqueue([=] { look_until(word, value); });
}

// ---- captures -------------------------------------------------------------------------------------------------------

namespace {

class HostGraph final : public Graph {
 public:
  explicit HostGraph(std::vector<std::function<void()>> calls) : calls_(std::move(calls)) {}
  void launch() override {
    for (const auto& call : calls_) call();
  }

 private:
  std::vector<std::function<void()>> calls_;
};

}  // namespace

void HostStream::keep(std::function<void()> call) {
  if (may_keep_ && !may_keep_()) throw Error(Exit::failed, "a capture refuses a call");
  capture_->calls.push_back(std::move(call));
  ++capture_->recorded[this];
}

void HostStream::begin_capture() {
  capture_ = std::make_shared<HostCapture>();
  capture_->origin = this;
}

std::unique_ptr<Graph> HostStream::end_capture() {
  const auto capture = std::exchange(capture_, nullptr);
  if (!capture) throw Error(Exit::failed, "a capture ends that has not begun");
  bool whole = true;
  for (const auto& [stream, recorded] : capture->recorded) {
    whole &= stream == this || capture->awaited[stream] == recorded;
    stream->capture_ = nullptr;
  }
  if (!whole) throw Error(Exit::failed, "a capture ends before its stream has waited for every stream that took part");
  return std::make_unique<HostGraph>(std::move(capture->calls));
}

}  // namespace haloscope::device::host
