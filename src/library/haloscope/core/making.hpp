// The name of the object that a call of the library makes, for errors of exhausted memory and reports of long waits.
#pragma once

#include <utility>

namespace haloscope {

/// Marks this thread as making an object, for its lifetime. Cost: two stores.
class Making {
 public:
  /// @param object  "an exchange"; a literal.
  explicit Making(const char* object) noexcept : before_(std::exchange(current_, object)) {}
  ~Making() { current_ = before_; }
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;
  /// Returns the name of the innermost one; null: none.
  static const char* current() noexcept { return current_; }

 private:
  inline static thread_local const char* current_ = nullptr;
  const char* before_;
};

}  // namespace haloscope
