// How a track's lanes are walked, by the rules of the runner:
//  - one control thread drives both lanes; operations of the comm lane run where an operation of the main lane needs them,
//    in order, and at `progress` as far as they need no waiting; or, with a communication thread, both lanes run side by
//    side and that thread helps to sweep once its lane is done;
//  - a message leaves when its `send` is through and travels `seconds`; the receiver has it then, or later where the
//    message advances only inside calls (`by_itself` false), slower while the receiver computes (`efficiency` < 1), or not
//    to its end (`held` > 0);
//  - with a device the control thread hands operations to its two streams as soon as the host's part before them is done,
//    and otherwise advances its own lanes; the streams work in order beside it and meet at the end of a program.
#pragma once

#include <coroutine>
#include <exception>
#include <span>
#include <utility>

#include "haloscope/model/track.hpp"

namespace haloscope::model {

/// Something that one lane of a track waits for another to finish: an action of the body, the handing over of one, or the
/// comm lane's part of the program that begins with one.
struct DoneKeys {
  int actions;
  int of_action(int action) const { return action; }
  int of_handing(int action) const { return actions + action; }
  int of_comm(int first) const { return 2 * actions + first; }
  int count() const { return 3 * actions; }
};

/// What a lane asks of the clock.
struct Request {
  enum class Kind : std::uint8_t {
    work,      ///< be busy for `parts`
    copying,   ///< the same, leaving a device's kernels alone
    send,      ///< let the messages of `action` leave
    wait,      ///< until they have arrived
    complete,  ///< until they may be overwritten
    test,      ///< whether it could run without waiting; the answer: 0 or 1
    choose,    ///< the first of `options` that can proceed; the answer: its action
    barrier,   ///< until every track is here
    reduce,    ///< give numbers to a reduction
    reduced,   ///< until those given last have come together
    sweep,     ///< at a pace by what the lane beside does
    after,     ///< until `keys` are done in round `round`
    done,      ///< tell the other lanes that `key` is
    join,      ///< until the other lane is here too
    round,     ///< put down that a round has ended
  };
  Kind kind = Kind::work;
  const Action* action = nullptr;
  std::span<const Part> parts = {};
  int round = 0;
  int key = 0;
  std::span<const int> keys = {};
  std::array<int, 2> options{-1, -1};  ///< actions
};

/// A lane as a coroutine: it yields requests and is sent their answers.
class Walk {
 public:
  struct promise_type {
    Request request;
    int answer = 0;
    std::exception_ptr error;

    /// Waits for the answer to what it yielded.
    struct Answer {
      promise_type& promise;
      bool await_ready() const noexcept { return false; }
      void await_suspend(std::coroutine_handle<>) const noexcept {}
      int await_resume() const noexcept { return promise.answer; }
    };
    Walk get_return_object() { return Walk(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    Answer yield_value(const Request& asked) {
      request = asked;
      return {*this};
    }
    void return_void() {}
    void unhandled_exception() { error = std::current_exception(); }
  };

  explicit Walk(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  Walk(Walk&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Walk& operator=(Walk&&) = delete;
  ~Walk() {
    if (handle_) handle_.destroy();
  }
  /// Goes on with an answer; the next request, null when the lane has ended.
  const Request* resume(int answer) {
    handle_.promise().answer = answer;
    handle_.resume();
    if (handle_.promise().error) std::rethrow_exception(handle_.promise().error);
    return handle_.done() ? nullptr : &handle_.promise().request;
  }

 private:
  std::coroutine_handle<promise_type> handle_;
};

/// The lanes of a track over some rounds: main, that of a communication thread, a device's streams. The track must outlive
/// them.
std::vector<std::pair<Lane, Walk>> walk_lanes(const Track& track, int rounds);

}  // namespace haloscope::model
