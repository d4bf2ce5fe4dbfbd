// Machine profiles from their JSON, data/profile.schema.json.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "haloscope/core/bounds.hpp"
#include "haloscope/core/file.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/core/parsed_json.hpp"
#include "haloscope/core/text.hpp"
#include "haloscope/error.hpp"
#include "haloscope/model/profile.hpp"
#include "haloscope/model/range.hpp"

namespace haloscope::model {

namespace {

using Json = nlohmann::json;

/// A value of the JSON and its position, which every error names.
struct Node {
  const Json& json;
  std::string place;

  [[noreturn]] void refuse(const std::string& fault) const {
    throw UsageError((place.empty() ? "" : place + ": ") + fault);
  }
  Node at(const std::string& key) const {
    if (!has(key)) refuse("'" + key + "' is a required property");
    return {json.at(key), place.empty() ? key : place + "/" + key};
  }
  bool has(const std::string& key) const { return object().contains(key) && !json.at(key).is_null(); }
  const Json& object() const {
    if (!json.is_object()) refuse("this must be an object");
    return json;
  }
  /// Any number within the bounds of amounts.
  double number() const {
    if (!json.is_number()) refuse("this must be a number");
    if (const double value = json.get<double>(); !(std::abs(value) <= bound.amount.most))
      refuse("the number is too large: at most " + shown(bound.amount.most));
    return json.get<double>();
  }
  double number(const Bound& range) const {
    const double value = number();
    if (value < range.least || value > range.most)
      refuse("this must be a number from " + shown(range.least) + " to " + shown(range.most));
    return value;
  }
  /// A cost may be below 0, where a steeper one follows.
  double cost_number(const Bound& range) const {
    const double value = number();
    if (std::abs(value) > range.most)
      refuse("this must be a number from " + shown(-range.most) + " to " + shown(range.most));
    return value;
  }
  int count(const Bound& range = bound.ranks) const {
    if (!json.is_number_integer() || json.get<double>() < 1 || json.get<double>() > range.most)
      refuse("this must be a whole number from 1 to " + shown(range.most));
    return json.get<int>();
  }
  bool flag() const {
    if (!json.is_boolean()) refuse("this must be true or false");
    return json.get<bool>();
  }
  std::string text() const {
    if (!json.is_string()) refuse("this must be text");
    return json.get<std::string>();
  }
  /// A parameter of this object; absent: 0.
  Cost cost(const std::string& key) const {
    const Bound& range = bound_of(key);
    Cost cost;
    if (has(key)) cost.value = at(key).cost_number(range);
    if (has("interval") && at("interval").has(key)) {
      const Node ends = at("interval").at(key);
      if (!ends.json.is_array() || ends.json.size() != 2) ends.refuse("an interval has two ends");
      cost.width =
          Node{ends.json[1], ends.place}.cost_number(range) - Node{ends.json[0], ends.place}.cost_number(range);
    }
    return cost;
  }

 private:
  /// By the unit that a parameter's name ends with.
  static const Bound& bound_of(const std::string& key) {
    if (key == "bytes_per_s") return bound.rate;
    if (key.ends_with("byte_s") || key.ends_with("cell_s")) return bound.slope_s;
    return key.ends_with("_s") ? bound.cost_s : bound.factor;
  }
};

/// Calls `read` with the key and value of every member.
void each(const Node& node, const auto& read) {
  for (const auto& [key, value] : node.object().items()) read(key, node.at(key));
}

/// The names of a segment's members, by the unit that it counts.
struct Unit {
  const char *word, *start, *end, *fixed, *slope;
};
constexpr Unit bytes{"bytes", "from_bytes", "to_bytes", "latency_s", "per_byte_s"};
constexpr Unit cells{"cells", "from_cells", "to_cells", "fixed_s", "per_cell_s"};

Segments read_segments(const Node& node, const Unit& unit) {
  if (!node.json.is_array() || node.json.empty()) node.refuse("this must be a list of segments");
  Segments found;
  for (const Json& row : node.json) {
    const Node one{row, node.place};
    for (const char* key : {unit.fixed, unit.slope}) one.at(key).number();
    found.push_back({one.at(unit.start).number(bound.amount),
                     one.has(unit.end) ? one.at(unit.end).number(bound.amount) : infinity, one.cost(unit.fixed),
                     one.cost(unit.slope), one.has("per_row_s") ? one.cost("per_row_s") : Cost{}});
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.start < b.start; });
  for (std::size_t i = 1; i < found.size(); ++i)
    if (found[i - 1].end != found[i].start)
      node.refuse("segments must follow one another: one ends at " + shown(found[i - 1].end) + " " + unit.word +
                  ", the next starts at " + shown(found[i].start) + "; correct " + unit.end + " or " + unit.start);
  return found;
}

int read_count(const std::string& key, const Node& node) {
  int count = 0;
  const auto [end, fault] = std::from_chars(key.data(), key.data() + key.size(), count);
  if (fault != std::errc{} || end != key.data() + key.size() || count < 1)
    node.refuse("'" + key + "' is not a number of threads, cores or ranks");
  return count;
}

Table read_table(const Node& node, const Unit& unit) {
  Table table;
  each(node, [&](const std::string& key, const Node& rows) {
    const int count = read_count(key, node);
    table[count] = read_segments(rows, unit);
  });
  if (table.empty()) node.refuse("this must not be empty");
  return table;
}

/// One of the first `count` values of an enumeration, by its name.
template <class Value>
Value read_name(const std::string& name, int count, const Node& node) {
  std::vector<std::string> known;
  for (int value = 0; value < count; ++value) {
    known.emplace_back(to_string(static_cast<Value>(value)));
    if (name == known.back()) return static_cast<Value>(value);
  }
  node.refuse("'" + name + "' is not one of " + join(known, ", "));
}

Copying read_copying(const Node& node) {
  Copying found;
  each(node, [&](const std::string& key, const Node& table) {
    found[static_cast<std::size_t>(read_name<Stride>(key, strides, table))] = read_table(table, bytes);
  });
  return found;
}

std::map<std::string, Table> read_kernels(const Node& node) {
  std::map<std::string, Table> found;
  each(node, [&](const std::string& name, const Node& table) { found[name] = read_table(table, cells); });
  return found;
}

std::map<std::string, std::map<int, Table>> read_fused(const Node& node) {
  std::map<std::string, std::map<int, Table>> found;
  each(node, [&](const std::string& name, const Node& levels) {
    each(levels, [&](const std::string& level, const Node& table) {
      found[name][read_count(level, levels)] = read_table(table, cells);
    });
  });
  return found;
}

std::map<std::string, RowCost> read_rows(const Node& node) {
  std::map<std::string, RowCost> found;
  each(node, [&](const std::string& name, const Node& one) {
    found[name] = {static_cast<double>(one.at("lanes").count()), one.at("cells").number(bound.factor)};
  });
  return found;
}

MessageCost read_messages(const Node& node) {
  MessageCost found{read_segments(node.at("segments"), bytes), {}, {}, {}};
  if (!node.has("contention")) return found;
  const Node contention = node.at("contention");
  if (contention.has("shared")) found.shared = contention.cost("shared");
  if (contention.has("duplex")) found.duplex = contention.cost("duplex");
  if (contention.has("gap_s")) found.gap_s = contention.cost("gap_s");
  return found;
}

NetworkCost read_network(const Node& node) {
  NetworkCost found;
  const Node classes = node.at("classes");
  each(classes, [&](const std::string& name, const Node& one) {
    found.by_locality[static_cast<std::size_t>(read_name<Locality>(name, nearnesses, classes))] = read_messages(one);
  });
  if (classes.json.empty()) classes.refuse("this must not be empty");
  if (node.has("injection_bytes_per_s"))
    found.injection_bytes_per_s = node.at("injection_bytes_per_s").number(bound.rate);
  return found;
}

OverlapCost::Held read_held(const Node& node) {
  OverlapCost::Held held;
  each(node, [&](const std::string& name, const Node& part) {
    held[read_name<Locality>(name, nearnesses, node)] = part.number(bound.factor);
  });
  return held;
}

OverlapCost read_overlap(const Node& node) {
  OverlapCost found;
  for (const auto& [key, value] : node.object().items()) found.measured = found.measured || key != "held_of";
  if (node.has("held")) found.held = read_held(node.at("held"));
  if (node.has("held_of"))
    each(node.at("held_of"), [&](const std::string& name, const Node& one) { found.held_of[name] = read_held(one); });
  if (node.has("rendezvous_from_bytes"))
    found.rendezvous_from_bytes = node.at("rendezvous_from_bytes").number(bound.amount);
  if (node.has("efficiency"))
    each(node.at("efficiency"),
         [&](const std::string& name, const Node& one) { found.efficiency[name] = one.number(bound.factor); });
  found.call_s = node.cost("call_s");
  return found;
}

std::vector<CollectiveTime> read_collective(const Node& node) {
  if (!node.json.is_array() || node.json.empty()) node.refuse("this must be a list of measured calls");
  std::vector<CollectiveTime> rows;
  for (const Json& row : node.json) {
    const Node one{row, node.place};
    one.at("time_s").number();
    rows.push_back({one.at("ranks").count(), one.cost("time_s")});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.ranks < b.ranks; });
  return rows;
}

DeviceCost read_device(const Node& node) {
  DeviceCost found;
  found.backend = node.at("backend").text();
  found.name = node.at("name").text();
  if (node.has("per_node")) found.per_node = node.at("per_node").count(bound.machine);
  found.operation_s = node.cost("operation_s");
  found.notice_s = node.cost("notice_s");
  if (node.has("conflict")) found.conflict = node.cost("conflict");
  if (node.has("signal_s")) found.signal_s = node.cost("signal_s");
  found.pack = read_table(node.at("pack"), bytes);
  for (int to_device = 0; to_device < 2; ++to_device)
    for (int pageable = 0; pageable < 2; ++pageable)
      found.copies[to_device][pageable] =
          read_table(node.at(to_device ? "h2d" : "d2h").at(pageable ? "pageable" : "pinned"), bytes);
  found.kernels = read_kernels(node.at("kernels"));
  if (node.has("fused")) found.fused = read_fused(node.at("fused"));
  return found;
}

template <std::size_t count, class Costs>
Costs read_members(const Node& node, const std::pair<const char*, Cost Costs::*> (&members)[count]) {
  Costs found;
  for (const auto& [key, member] : members) found.*member = node.cost(key);
  return found;
}

/// Times by name, NAME_s, and their relative errors.
Pace read_pace(const Node& node, int ranks) {
  Pace pace{ranks, {}};
  for (int kind = 0; kind < pace_kinds; ++kind) {
    const std::string name = std::string(to_string(static_cast<PaceKind>(kind))) + "_s";
    if (!node.has(name)) continue;
    PaceTime time{node.at(name).number(bound.time_s), 0};
    if (node.has("error") && node.at("error").has(name)) time.error = node.at("error").at(name).number(bound.factor);
    pace.times[static_cast<std::size_t>(kind)] = time;
  }
  return pace;
}

HeldOut read_held_out(const Node& node) {
  HeldOut found;
  each(node, [&](const std::string& regime, const Node& one) {
    const Residuals r{one.at("count").count(), one.at("low").cost_number(bound.logarithm),
                      one.at("high").cost_number(bound.logarithm)};
    if (r.low > r.high) one.refuse("low is above high");
    found[regime] = r;
  });
  return found;
}

MemoryCost read_memory(const Node& node) {
  MemoryCost found;
  found.cache_bytes = node.at("cache_bytes").number(bound.rate);
  if (node.has("line_bytes")) found.line_bytes = node.at("line_bytes").number(bound.rate);
  node.at("bytes_per_s").number(bound.rate);
  found.bytes_per_s = node.cost("bytes_per_s");
  if (node.has("large_page_bytes")) found.large_page_bytes = node.at("large_page_bytes").number(bound.amount);
  if (node.has("scatter")) found.scatter = node.cost("scatter");
  return found;
}

std::vector<double> read_column(const Node& node, std::size_t rows, const Bound& range) {
  if (!node.json.is_array() || node.json.size() != rows)
    node.refuse("this must be a list of " + std::to_string(rows) + " numbers, as message_bytes is");
  std::vector<double> found;
  for (const Json& value : node.json) {
    found.push_back(Node{value, node.place}.number(range));
  }
  return found;
}

std::vector<Correction> read_corrections(const Node& node) {
  const std::size_t rows = node.at("message_bytes").json.size();
  const auto column = [&](const char* key, const Bound& range) { return read_column(node.at(key), rows, range); };
  const auto message = column("message_bytes", bound.rate), run = column("run_bytes", bound.rate),
             block = column("block_bytes", bound.rate), depth = column("depth", bound.depth),
             launches = column("launches", bound.times), exchange = column("exchange", bound.times),
             sweeps = column("sweeps", bound.times);
  const Node in_place = node.at("in_place");
  if (!in_place.json.is_array() || in_place.json.size() != rows)
    in_place.refuse("this must be as long as message_bytes");
  std::vector<Correction> found;
  for (std::size_t i = 0; i < rows; ++i) {
    const bool whole = Node{in_place.json[i], in_place.place}.flag();
    const StepFeatures like{std::log2(message[i]), std::log2(run[i]), std::log2(block[i]), std::log2(depth[i]), whole};
    found.push_back({like, launches[i], std::log(exchange[i]), std::log(sweeps[i])});
  }
  return found;
}

TransportCost read_surcharge(const Node& node) {
  TransportCost found = read_members(node, surcharge_members);
  found.from_fields = node.has("from_fields") && node.at("from_fields").flag();
  if (node.has("copied")) found.copied = node.at("copied").text() == "fields" ? Copied::fields : Copied::buffers;
  found.plain = node.has("plain") && node.at("plain").flag();
  if (node.has("corrections")) found.corrections = read_corrections(node.at("corrections"));
  found.packs_all = node.has("packs_all") && node.at("packs_all").flag();
  found.one_buffer = node.has("one_buffer") && node.at("one_buffer").flag();
  return found;
}

void read_cpu_costs(const Node& node, Profile& p) {
  if (node.has("pack")) p.pack = read_copying(node.at("pack"));
  if (node.has("copy")) p.copy = read_copying(node.at("copy"));
  if (node.has("beyond_cache")) {
    const Node far = node.at("beyond_cache");
    p.cache_from = far.at("from_block_bytes").number(bound.amount);
    p.cache_to = far.has("to_block_bytes") ? far.at("to_block_bytes").number(bound.amount) : p.cache_from;
    if (far.has("pack")) p.far_pack = read_copying(far.at("pack"));
    if (far.has("copy")) p.far_copy = read_copying(far.at("copy"));
  }
  if (node.has("memory")) p.memory = read_memory(node.at("memory"));
  if (node.has("strided_row_bytes")) p.strided_row_bytes = node.at("strided_row_bytes").number(bound.rate);
  if (node.has("kernels")) p.kernels = read_kernels(node.at("kernels"));
  if (node.has("streaming")) p.streaming = read_kernels(node.at("streaming"));
  if (node.has("fused")) p.fused = read_fused(node.at("fused"));
  if (node.has("rows")) p.rows = read_rows(node.at("rows"));
  if (node.has("steps")) p.steps = read_members(node.at("steps"), step_members);
}

void read_costs(const Node& node, Profile& p) {
  if (node.has("network")) p.network = read_network(node.at("network"));
  read_cpu_costs(node, p);
  if (node.has("transports"))
    each(node.at("transports"),
         [&](const std::string& name, const Node& one) { p.transports[name] = read_surcharge(one); });
  if (node.has("reductions")) {
    p.reductions.emplace();
    each(node.at("reductions"),
         [&](const std::string& name, const Node& rows) { (*p.reductions)[name] = read_collective(rows); });
  }
  if (node.has("overlap")) p.overlap = read_overlap(node.at("overlap"));
  if (node.has("device")) p.device = read_device(node.at("device"));
  if (node.has("pace"))
    each(node.at("pace"), [&](const std::string& key, const Node& one) {
      const int ranks = read_count(key, node.at("pace"));
      p.paces[ranks] = read_pace(one, ranks);
    });
  if (node.has("discrepancy")) {
    const Node discrepancy = node.at("discrepancy");
    if (discrepancy.has("compute")) p.compute_discrepancy = discrepancy.at("compute").number(bound.logarithm);
    if (discrepancy.has("exchange")) p.exchange_discrepancy = discrepancy.at("exchange").number(bound.logarithm);
  }
}

Profile read(const Node& node) {
  Profile p;
  const Node machine = node.at("machine");
  p.name = node.at("name").text();
  p.cpu = machine.at("cpu").text();
  p.nodes = machine.at("nodes").count(bound.nodes);
  p.sockets_per_node = machine.at("sockets_per_node").count(bound.machine);
  p.cores_per_socket = machine.at("cores_per_socket").count(bound.machine);
  if (node.has("mpi_library")) p.mpi_library = node.at("mpi_library").text();
  if (node.has("held_out")) {
    p.held_out_steps = read_held_out(node.at("held_out").at("step"));
    p.held_out_exchanges = read_held_out(node.at("held_out").at("exchange"));
  }
  const Profile machine_alone = p;
  read_costs(node, p);
  if (node.has("states")) {
    const Node states = node.at("states");
    if (!states.json.is_array()) states.refuse("this must be a list of states");
    for (const Json& state : states.json) read_costs({state, states.place}, p.states.emplace_back(machine_alone));
  }
  return p;
}

Json parsed(const std::string& text, const std::string& subject) {
  try {
    return parsed_json(text, subject);
  } catch (const UsageError& error) {
    throw UsageError(std::string(error.what()) + "; make it anew with haloscope calibrate");
  }
}

void check_header(const Json& json) {
  if (!json.is_object() || json.value("schema", Json()) != "haloscope-profile")
    throw UsageError("it is not a machine profile (\"schema\" must be \"haloscope-profile\")");
  if (json.value("schema_version", Json()) != 1)
    throw UsageError("it has version " + haloscope::shown(json.value("schema_version", Json()).dump()) +
                     " of the format, this library reads 1");
}

}  // namespace

Profile profile_from_json(const std::string& text, const std::string& subject) {
  const Json json = parsed(text, subject);
  try {
    check_header(json);
    return read({json, ""});
  } catch (const UsageError& error) {
    throw UsageError(subject + " is not valid: " + error.what() +
                     "; correct it, or make it anew with haloscope calibrate");
  }
}

Pace pace_from_json(const std::string& text) {
  const Json json = parsed_json(text, "the pace");
  if (!json.is_object())
    throw UsageError("a pace is a JSON object, such as a record has, not " + haloscope::shown(text));
  const Node node{json, "pace"};
  return read_pace(node, node.at("ranks").count());
}

Profile read_profile(const std::string& path) {
  const std::string text = text_of_file(path, "the profile", "give the path of a .json file", most_json_bytes);
  return profile_from_json(text, "the profile " + path);
}

}  // namespace haloscope::model
