// The name of the thing that a call of the library makes, for errors of exhausted memory and reports of long waits.
#pragma once

#include <utility>

namespace haloscope {

/// While it lives, this thread makes something. Cost: two stores.
class Making {
 public:
  /// @param what  "an exchange"; a literal.
  explicit Making(const char* what) noexcept : before_(std::exchange(current_, what)) {}
  ~Making() { current_ = before_; }
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;
  /// The name of the innermost one; null: there is none.
  static const char* current() noexcept { return current_; }

 private:
  inline static thread_local const char* current_ = nullptr;
  const char* before_;
};

}  // namespace haloscope
