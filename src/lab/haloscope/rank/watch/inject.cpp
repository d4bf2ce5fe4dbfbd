#include "haloscope/rank/watch/inject.hpp"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"

namespace haloscope {

namespace {

OpKind op_named(const std::string& name) {
  for (int k = 0; k < op_kinds; ++k)
    if (name == to_string(static_cast<OpKind>(k))) return static_cast<OpKind>(k);
  throw UsageError("unknown operation '" + name + "' in --inject");
}

}  // namespace

Fault Fault::parse(const std::string& text) {
  Fault fault;
  const auto colon = text.find(':');
  fault.kind = from_word<Kind>(text.substr(0, colon));
  for (const auto& pair : split(colon == std::string::npos ? "" : text.substr(colon + 1), ',')) {
    const auto equals = pair.find('=');
    const std::string key = pair.substr(0, equals), value = equals == std::string::npos ? "" : pair.substr(equals + 1);
    try {
      if (key == "rank")
        fault.rank = std::stoi(value);
      else if (key == "step")
        fault.step = std::stoll(value);
      else if (key == "seconds")
        fault.seconds = std::stod(value);
      else if (key == "op")
        fault.op = op_named(value);
      else
        throw UsageError("unknown key '" + key + "' in --inject; use rank, step, seconds, op");
    } catch (const std::logic_error&) {
      throw UsageError("--inject '" + text + "': '" + value + "' is not a number");
    }
  }
  return fault;
}

void Fault::before(void* context, const Op& op, std::int64_t step) {
  Fault& fault = *static_cast<Fault*>(context);
  const bool every = fault.kind == delay && fault.step < 0;
  if ((fault.spent && !every) || step < fault.step || (fault.op && *fault.op != op.kind)) return;
  fault.spent = true;
  if (fault.kind == kill) raise(SIGKILL);
  if (fault.kind == stop) raise(SIGSTOP);
  if (fault.kind == fail)
    throw Error(Exit::failed,
                std::string("injected before operation '") + to_string(op.kind) + "' of step " + std::to_string(step));
  if (fault.kind == hang)
    for (;;) pause();
  std::this_thread::sleep_for(std::chrono::duration<double>(fault.seconds));
}

}  // namespace haloscope
