#include "haloscope/transport/cached_choice.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "haloscope/comm/cores.hpp"
#include "haloscope/comm/library_comm.hpp"
#include "haloscope/comm/text.hpp"
#include "haloscope/core/bounds.hpp"
#include "haloscope/core/file.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/core/outline.hpp"
#include "haloscope/core/text.hpp"
#include "haloscope/device/device.hpp"

namespace haloscope {
namespace {

constexpr int format = 2;  // of keys and files
constexpr auto most_bytes = static_cast<std::size_t>(bound.kept_bytes.most);

/// Returns the folder of cached choices; "": none.
std::string folder() {
  const auto variable = [](const char* name) { return std::string(std::getenv(name) ? std::getenv(name) : ""); };
  if (std::getenv("HALOSCOPE_CACHE")) return variable("HALOSCOPE_CACHE");
  if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty()) return cache + "/haloscope";
  if (const std::string home = variable("HOME"); !home.empty()) return home + "/.cache/haloscope";
  return "";
}

/// Returns the FNV-1a hash, which is the same in all programs.
std::uint64_t hash(const std::string& text) {
  std::uint64_t h = 0xcbf29ce484222325u;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return h;
}

/// Returns true if a text is a time in the format of utc_now().
bool is_time(const std::string& text) {
  const std::string form = "0000-00-00T00:00:00Z";
  return text.size() == form.size() && std::equal(text.begin(), text.end(), form.begin(), [](char c, char model) {
           return model == '0' ? c >= '0' && c <= '9' : c == model;
         });
}

/// Returns a text as one line of a file.
std::string line_of(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace

ChoiceFile::ChoiceFile(std::string key) : key_(line_of(std::move(key))) {
  const std::string in = folder();
  if (in.empty()) return;
  char name[32];
  std::snprintf(name, sizeof name, "/auto-%016llx.txt", static_cast<unsigned long long>(hash(key_)));
  path_ = in + name;
}

std::optional<CachedChoice> ChoiceFile::read() const {
  const std::optional<std::string> text = path_.empty() ? std::nullopt : kept_text(path_, most_bytes);
  if (!text) return {};
  const std::vector<std::string> lines = split(*text, '\n');
  if (lines.size() != 4 || lines[0] != key_ || lines[1].empty() || lines[2].empty() || !is_time(lines[3])) return {};
  return CachedChoice{lines[1], lines[2], lines[3]};
}

/// Does not use JSON, whose destructor allocates: where memory is exhausted, it would end the program.
void ChoiceFile::write(const CachedChoice& choice) const {
  if (path_.empty()) return;
  keep_text(path_, join({key_, choice.chosen, choice.second, choice.since, ""}, "\n"));
}

void ChoiceFile::remove() const {
  if (!path_.empty()) unlink(path_.c_str());
}

std::string key_of(const LinkContext& context) {
  const Node& machine = node_of(context.comm);
  const Views& views = *context.views;
  TextStream text;
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
