#include "haloscope/transport/kept_choice.hpp"

#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "haloscope/comm/cores.hpp"
#include "haloscope/comm/library_comm.hpp"
#include "haloscope/comm/text.hpp"
#include "haloscope/core/outline.hpp"
#include "haloscope/device/device.hpp"

namespace haloscope {
namespace {

using nlohmann::json;

constexpr int format = 1;  // of keys and files

/// Where choices are kept; "": nowhere.
std::string folder() {
  const auto variable = [](const char* name) { return std::string(std::getenv(name) ? std::getenv(name) : ""); };
  if (std::getenv("HALOSCOPE_CACHE")) return variable("HALOSCOPE_CACHE");
  if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty()) return cache + "/haloscope";
  if (const std::string home = variable("HOME"); !home.empty()) return home + "/.cache/haloscope";
  return "";
}

/// FNV-1a, which is the same in all programs.
std::uint64_t hash(const std::string& text) {
  std::uint64_t h = 0xcbf29ce484222325u;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return h;
}

/// Writes a text to an open file and closes it. @return whether all of it was written.
bool fill(int file, const std::string& text) {
  const bool whole = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  return close(file) == 0 && whole;
}

}  // namespace

ChoiceFile::ChoiceFile(std::string key) : key_(std::move(key)) {
  const std::string in = folder();
  if (in.empty()) return;
  char name[32];
  std::snprintf(name, sizeof name, "/auto-%016llx.json", static_cast<unsigned long long>(hash(key_)));
  path_ = in + name;
}

std::optional<KeptChoice> ChoiceFile::read() const {
  if (path_.empty()) return {};
  std::ifstream file(path_);
  const json kept = json::parse(file, nullptr, false);
  if (!kept.is_object()) return {};
  const auto text = [&](const char* name) {
    const auto found = kept.find(name);
    return found != kept.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  if (text("key") != key_) return {};
  const KeptChoice choice{text("chosen"), text("second"), text("since")};
  if (choice.chosen.empty() || choice.second.empty() || choice.since.empty()) return {};
  return choice;
}

void ChoiceFile::write(const KeptChoice& choice) const {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
  std::string draft = path_ + ".XXXXXX";
  const int file = mkstemp(draft.data());
  if (file < 0) return;
  const json text{{"key", key_}, {"chosen", choice.chosen}, {"second", choice.second}, {"since", choice.since}};
  if (!fill(file, text.dump(1, ' ', false, json::error_handler_t::replace) + "\n") ||
      std::rename(draft.c_str(), path_.c_str()) != 0)
    unlink(draft.c_str());
}

void ChoiceFile::remove() const {
  if (!path_.empty()) unlink(path_.c_str());
}

std::string key_of(const LinkContext& context) {
  const Node& machine = node_of(context.comm);
  const Views& views = *context.views;
  std::ostringstream text;
  text << "format " << format << "; " << cpu_model() << "; " << machine.size() << " ranks on this node; "
       << mpi_library() << "; " << outline(*context.plan, *context.layout, views.front().size()) << "; "
       << context.plan->messages_out() << " messages; " << context.plan->bytes_out() << " bytes; " << context.threads
       << " threads; " << (context.yield ? "shared" : "own") << " cores; "
       << (in_shared_memory(views.front().front().origin) ? "shared" : "own") << " memory; nodes";
  for (const int node : context.nodes) text << ' ' << node;
  if (context.mine) text << "; between nodes";
  if (context.device != nullptr) text << "; " << context.device->info().name;
  return text.str();
}

}  // namespace haloscope
