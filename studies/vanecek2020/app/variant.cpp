#include "vanecek2020/app/variant.hpp"

#include <algorithm>
#include <cstdlib>

#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"
#include "vanecek2020/app/launches.hpp"

namespace haloscope {
namespace {

using Flow = Variant::Flow;
/// Two words of which a variant has one.
struct Switch {
  const char* off;
  const char* on;
  bool Variant::*value;
  std::vector<Flow> flows;  // that have it
  bool always = true;       // texts of variants name it, also `off`
};
const std::vector<Flow> any{Flow::baseline, Flow::taskqueue, Flow::kernels};
const std::vector<Switch> switches{{"waitall", "testany", &Variant::testany, {Flow::baseline}},
                                   {"channel", "queue", &Variant::queue, {Flow::taskqueue}},
                                   {"pinned", "device", &Variant::device, {Flow::taskqueue}},
                                   {"nonblocking", "blocking", &Variant::blocking, any},
                                   {"coherent", "noncoherent", &Variant::noncoherent, {Flow::baseline, Flow::kernels}},
                                   {"unpadded", "padded", &Variant::padded, {Flow::taskqueue}, false},
                                   {"plain", "dummy", &Variant::dummy, any, false}};

struct Number {
  const char* name;
  int least, most;
  int Variant::*value;
  std::vector<Flow> flows;
};
const std::vector<Number> numbers{{"chunks", 1, device::most_chunks, &Variant::chunks, {Flow::taskqueue}},
                                  {"throttle", 0, 1024, &Variant::throttle, {Flow::taskqueue}},
                                  {"threads", 1, 3, &Variant::cpu_threads, {Flow::taskqueue}},
                                  {"backoff", 0, 1000000, &Variant::backoff_us, {Flow::taskqueue, Flow::kernels}}};

bool in(const std::vector<Flow>& list, Flow flow) { return std::find(list.begin(), list.end(), flow) != list.end(); }

std::vector<std::string> words_of(Flow flow) {
  std::vector<std::string> words;
  for (const Switch& s : switches)
    if (in(s.flows, flow)) words.insert(words.end(), {s.off, s.on});
  for (const Number& n : numbers)
    if (in(n.flows, flow)) words.push_back(std::string(n.name) + "=N");
  return words;
}

void set_number(Variant& variant, const Number& number, const std::string& word) {
  const std::string text = word.substr(std::min(word.find('='), word.size() - 1) + 1);
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || value < number.least || value > number.most)
    throw UsageError("'" + word + "' of a variant of blocks is not possible; " + number.name +
                     "=N takes a whole number from " + std::to_string(number.least) + " to " +
                     std::to_string(number.most));
  variant.*number.value = static_cast<int>(value);
}

/// @return true if the word belongs to this flow.
bool set_word(Variant& variant, const std::string& word, std::vector<std::string>& seen) {
  const auto once = [&](const std::string& name) {
    if (has(seen, name))
      throw UsageError("a variant of blocks has '" + word + "' and another word of the same kind; give one of them");
    seen.push_back(name);
  };
  for (const Switch& s : switches) {
    if (!in(s.flows, variant.flow) || (word != s.off && word != s.on)) continue;
    once(s.on);
    variant.*s.value = word == s.on;
    return true;
  }
  for (const Number& n : numbers) {
    if (!in(n.flows, variant.flow) || word.substr(0, word.find('=')) != n.name) continue;
    once(n.name);
    set_number(variant, n, word);
    return true;
  }
  return false;
}

}  // namespace

Variant parse_variant(const std::string& text) {
  const auto colon = text.find(':');
  const std::string name = text.substr(0, colon);
  Variant variant;
  variant.flow = from_word<Flow>(name);
  std::vector<std::string> seen;
  for (const std::string& word : split(colon == std::string::npos ? "" : text.substr(colon + 1), ','))
    if (!set_word(variant, word, seen))
      throw UsageError(unknown_name("word of blocks/" + name, word, words_of(variant.flow)));
  return variant;
}

std::string to_string(const Variant& variant) {
  std::vector<std::string> words;
  for (const Switch& s : switches)
    if (in(s.flows, variant.flow) && (variant.*s.value || s.always))
      words.emplace_back(variant.*s.value ? s.on : s.off);
  const Variant usual;
  for (const Number& n : numbers)
    if (in(n.flows, variant.flow) && variant.*n.value != usual.*n.value)
      words.push_back(std::string(n.name) + "=" + std::to_string(variant.*n.value));
  return to_word(variant.flow) + ":" + join(words, ",");
}

}  // namespace haloscope
