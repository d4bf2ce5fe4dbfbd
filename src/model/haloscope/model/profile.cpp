#include "haloscope/model/profile.hpp"

#include <array>
#include <cctype>
#include <cmath>
#include <set>

#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"
#include "haloscope/model/normal.hpp"

namespace haloscope::model {

namespace {

[[noreturn]] void lacks_section(const Profile& profile, const std::string& section) {
  throw UnavailableError("profile '" + profile.name + "' has no section '" + section +
                         "', which this needs; calibrate the machine, or choose another profile with --profile");
}

/// Expected largest of some independent normal numbers.
double expected_largest(int count) { return normal_quantile((count - 0.375) / (count + 0.25)); }

std::string single_spaced(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const bool space = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!space) result += c;
    if (space && !result.empty() && result.back() != ' ') result += ' ';
  }
  if (!result.empty() && result.back() == ' ') result.pop_back();
  return result;
}

void visit_table(Table& table, const char* section, const char* fixed, const char* slope, const auto& visit) {
  for (auto& [count, segments] : table)
    for (Segment& segment : segments) {
      visit(section, fixed, segment.fixed);
      visit(section, slope, segment.slope);
    }
}

void visit_bytes(Table& table, const char* section, const auto& visit) {
  visit_table(table, section, "latency_s", "per_byte_s", visit);
  for (auto& [count, segments] : table)
    for (Segment& segment : segments) visit(section, "per_row_s", segment.per_row);
}

void visit_kernels(std::map<std::string, Table>& kernels, const char* section, const auto& visit) {
  for (auto& [name, table] : kernels) visit_table(table, section, "fixed_s", "per_cell_s", visit);
}

void visit_fused(std::map<std::string, std::map<int, Table>>& fused, const char* section, const auto& visit) {
  for (auto& [name, levels] : fused)
    for (auto& [count, table] : levels) visit_table(table, section, "fixed_s", "per_cell_s", visit);
}

void visit_network(NetworkCost& network, const auto& visit) {
  for (auto& one : network.by_locality) {
    if (!one) continue;
    for (Segment& segment : one->segments) {
      visit("network", "latency_s", segment.fixed);
      visit("network", "per_byte_s", segment.slope);
    }
    if (one->shared) visit("network", "shared", *one->shared);
    if (one->duplex) visit("network", "duplex", *one->duplex);
    if (one->gap_s) visit("network", "gap_s", *one->gap_s);
  }
}

void visit_device(DeviceCost& device, const auto& visit) {
  visit("device", "operation_s", device.operation_s);
  visit("device", "notice_s", device.notice_s);
  visit("device", "conflict", device.conflict);
  if (device.signal_s) visit("device", "signal_s", *device.signal_s);
  visit_bytes(device.pack, "device", visit);
  for (auto& way : device.copies)
    for (Table& table : way) visit_bytes(table, "device", visit);
  visit_kernels(device.kernels, "device", visit);
  visit_fused(device.fused, "device", visit);
}

}  // namespace

const char* to_string(Locality near) {
  static constexpr const char* words[]{"self", "socket", "node", "network"};
  return words[static_cast<std::size_t>(near)];
}

const char* to_string(Stride stride) {
  static constexpr const char* words[]{"contiguous", "lines", "strided", "scattered"};
  return words[static_cast<std::size_t>(stride)];
}

Stride stride_class(double run_bytes, double pitch_bytes) {
  if (run_bytes >= contiguous_from) return Stride::contiguous;
  if (run_bytes >= lines_from) return Stride::lines;
  return pitch_bytes >= scattered_from ? Stride::scattered : Stride::strided;
}

double StepCost::waiting(int neighbours, double beyond, double sweeps_s) const {
  const double within = 1 - beyond;
  const double share =
      within * waiting_share + beyond * far_waiting_share + 4 * within * beyond * between_waiting_share;
  static const std::array<double, 32> ratios = [] {  // by neighbours, for the counts that most ranks have
    std::array<double, 32> found{};
    for (std::size_t n = 1; n < found.size(); ++n)
      found[n] = expected_largest(static_cast<int>(n) + 1) / expected_largest(2);
    return found;
  }();
  if (neighbours <= 0 || share <= 0) return 0;
  const auto n = static_cast<std::size_t>(neighbours);
  const double largest = n < ratios.size() ? ratios[n] : expected_largest(neighbours + 1) / expected_largest(2);
  const double spans = waiting_span_s > 0 ? sweeps_s / waiting_span_s : 0;
  return largest * share * sweeps_s / std::sqrt(1 + spans);
}

const MessageCost& Profile::messages(Locality near) const {
  if (!network) lacks_section(*this, "network");
  const int place = static_cast<int>(near);
  for (int apart = 0; apart < nearnesses; ++apart)
    for (const int other : {place + apart, place - apart})
      if (other >= 0 && other < nearnesses)
        if (const auto& cost = network->by_locality[static_cast<std::size_t>(other)]) return *cost;
  lacks_section(*this, "network");
}

double RowCost::amount(const Box& region) const {
  if (region.empty()) return 0;
  const auto extent = [&](int d) { return static_cast<double>(region.extent(d)); };
  return extent(1) * extent(2) * (lanes * std::ceil(extent(0) / lanes) + cells);
}

const RowCost& Profile::row_cost(const std::string& kernel) const {
  static const RowCost none;
  const auto found = rows.find(kernel);
  return found == rows.end() ? none : found->second;
}

const Table& Profile::kernel(const std::string& wanted, bool streams) const {
  if (!kernels) lacks_section(*this, "kernels");
  if (const auto found = streaming.find(wanted); streams && found != streaming.end()) return found->second;
  if (const auto found = kernels->find(wanted); found != kernels->end()) return found->second;
  std::set<std::string> apps;
  for (const auto& [known, table] : *kernels) apps.insert(known.substr(0, known.find_first_of("/.")));
  const std::string list = join({apps.begin(), apps.end()}, ", ");
  throw UnavailableError("profile '" + name + "' has no cost of kernel '" + wanted + "' (it has kernels of " +
                         (list.empty() ? "none" : list) +
                         "); calibrate with this kernel (--apps), or choose another profile");
}

const std::map<int, Table>* Profile::fused_kernel(const std::string& wanted) const {
  const auto found = fused.find(wanted);
  return found == fused.end() || found->second.empty() ? nullptr : &found->second;
}

double Profile::beyond_cache(double block_bytes) const {
  if (block_bytes < cache_from) return 0;
  return block_bytes >= cache_to ? 1 : std::log(block_bytes / cache_from) / std::log(cache_to / cache_from);
}

const Table& Profile::packing(Stride stride, bool copies, bool far) const {
  if (!pack) lacks_section(*this, "pack");
  for (const Copying* tables :
       {far && copies ? &far_copy : nullptr, far ? &far_pack : nullptr, copies ? &copy : nullptr, &*pack})
    if (tables && !(*tables)[static_cast<std::size_t>(stride)].empty())
      return (*tables)[static_cast<std::size_t>(stride)];
  if (stride == Stride::scattered) return packing(Stride::strided, copies, far);
  throw UnavailableError("profile '" + name + "' has no cost of packing " + to_string(stride) +
                         " data; calibrate the machine");
}

double Profile::row_scale(double row_bytes) const {
  return strided_row_bytes > 0 ? strided_row_bytes / std::max(row_bytes, 1.0) : 1.0;
}

const TransportCost& Profile::surcharge(const std::string& transport) const {
  if (const auto found = transports.find(transport); found != transports.end()) return found->second;
  static const TransportCost nothing;
  if (transport == "p2p") return nothing;  // the transport that network costs are measured with
  std::set<std::string> known{"p2p"};
  for (const auto& [other, cost] : transports) known.insert(other);
  throw UnavailableError("profile '" + name + "' has no cost of transport '" + transport + "' (it has " +
                         join({known.begin(), known.end()}, ", ") + "); calibrate with it, or choose another strategy");
}

const DeviceCost& Profile::device_cost() const {
  if (!device) lacks_section(*this, "device");
  return *device;
}

std::vector<std::string> Profile::foreign(const std::string& its_cpu, const std::string& its_mpi,
                                          const std::string& whose) const {
  std::vector<std::string> texts;
  const auto compare = [&](const char* part, const std::string& own, const std::string& other) {
    if (!other.empty() && single_spaced(own) != single_spaced(other))
      texts.push_back("the profile '" + name + "' is of another " + part + " (" + own + ") than " + whose + " (" +
                      single_spaced(other) + ")");
  };
  compare("CPU", cpu, its_cpu);
  compare("MPI", mpi_library, its_mpi);
  return texts;
}

void visit_parameters(Profile& profile,
                      const std::function<void(const char* section, const char* name, Cost& cost)>& visit) {
  if (profile.network) visit_network(*profile.network, visit);
  const auto copying = [&](Copying& tables, const char* section) {
    for (Table& table : tables) visit_bytes(table, section, visit);
  };
  if (profile.pack) copying(*profile.pack, "pack");
  copying(profile.copy, "copy");
  copying(profile.far_pack, "beyond_cache");
  copying(profile.far_copy, "beyond_cache");
  if (profile.memory) {
    visit("memory", "bytes_per_s", profile.memory->bytes_per_s);
    visit("memory", "scatter", profile.memory->scatter);
  }
  for (auto& [name, cost] : profile.transports)
    for (const auto& [key, member] : surcharge_members) visit("transports", key, cost.*member);
  if (profile.kernels) visit_kernels(*profile.kernels, "kernels", visit);
  visit_kernels(profile.streaming, "streaming", visit);
  visit_fused(profile.fused, "fused", visit);
  if (profile.reductions)
    for (auto& [name, rows] : *profile.reductions)
      for (CollectiveTime& row : rows) visit("reductions", "time_s", row.time_s);
  if (profile.device) visit_device(*profile.device, visit);
  visit("overlap", "call_s", profile.overlap.call_s);
  for (const auto& [key, member] : step_members) visit("steps", key, profile.steps.*member);
}

}  // namespace haloscope::model
