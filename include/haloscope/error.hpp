// The exceptions of Haloscope: request, fault, remedy, and the exit code of each type.
#pragma once

#include "haloscope/extend/cxx20.hpp"

#include <stdexcept>
#include <string>

namespace haloscope {

/// Exit codes of every program of the project.
enum class Exit : int { ok = 0, failed = 1, usage = 2, unavailable = 3 };

/// Returns the text with characters that control a terminal or the direction of writing, and bytes that are not
/// UTF-8, written as \x1b or \u202e; line breaks and tabs stay.
std::string printable(const std::string& text);

/// An error that a user can act on. `what()` names the request, the fault and the remedy in one or two sentences.
/// It may quote third-party files, and is printable.
class Error : public std::runtime_error {
 public:
  Error(Exit exit_code, const std::string& message) : std::runtime_error(printable(message)), exit_code_(exit_code) {}
  Exit exit_code() const { return exit_code_; }

 private:
  Exit exit_code_;
};

/// A request that can never work: wrong value, unknown name, illegal combination (exit code 2).
struct UsageError : Error {
  explicit UsageError(const std::string& message) : Error(Exit::usage, message) {}
};

/// A legal request that this build or this MPI does not support (exit code 3).
struct UnavailableError : Error {
  explicit UnavailableError(const std::string& message) : Error(Exit::unavailable, message) {}
};

}  // namespace haloscope
