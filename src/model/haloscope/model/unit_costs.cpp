#include "haloscope/model/unit_costs.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "haloscope/core/app_json.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"
#include "haloscope/model/network.hpp"

namespace haloscope::model {

namespace {

/// A time shortened by a negative change as far as it goes, and the rest of the change.
std::pair<double, double> shorten(double seconds, double change) {
  if (change >= 0) return {seconds, 0.0};
  return {std::max(0.0, seconds + change), std::min(0.0, seconds + change)};
}

/// The sweeps of a problem's stages as text.
std::string text_of_sweeps(const Candidate& candidate, const Parameters::Given& set) {
  Problem problem = candidate.problem;
  problem.parameters = Parameters(parameters_of(candidate.app), set, candidate.app.name);
  std::string text;
  const nlohmann::json step = to_json(step_of(candidate.app, problem));
  for (const nlohmann::json& stage : step.at("stages")) text += stage.at("name").dump() + stage.at("sweeps").dump();
  return text;
}

/// Parameters of a choice that change its sweeps from the app's defaults, as ,NAME=VALUE. Exchanges and reductions do
/// not count, nor do parameters that kernels only read.
std::string sweep_parameters(const Candidate& candidate) {
  const Parameters::Given& set = candidate.choice.set;
  if (set.empty()) return "";
  const std::string sweeps = text_of_sweeps(candidate, set);
  if (sweeps == text_of_sweeps(candidate, {})) return "";
  std::string found;
  for (const auto& [name, value] : set) {
    Parameters::Given others = set;
    others.erase(name);
    if (text_of_sweeps(candidate, others) != sweeps) found += "," + name + "=" + to_text(value);
  }
  return found;
}

const char* const out_of_range[]{"bytes to pack (contiguous)", "bytes to pack (lines)", "bytes to pack (strided)",
                                 "bytes to pack (scattered)"};

/// Bytes of runs with gaps in between. From field to field pages are copied sequentially as if there were none.
double gapped_bytes(const Traffic& traffic, Copied copied) {
  const bool pages = copied == Copied::fields && static_cast<double>(traffic.run_bytes) >= contiguous_from;
  return traffic.in_place || pages ? 0.0 : static_cast<double>(traffic.bytes);
}

/// @param clean  the part of its bytes that are in their owner's cache as it read them, 0 to 1
double of_message(const TransportCost& cost, const Traffic& traffic, double clean) {
  const auto bytes = static_cast<double>(traffic.bytes);
  return cost.per_message_s + (cost.per_byte_s + clean * cost.per_clean_byte_s) * bytes +
         cost.per_gapped_byte_s * gapped_bytes(traffic, cost.copied) + cost.per_row_s * short_rows(traffic);
}

}  // namespace

std::string kernel_of(const Candidate& candidate) {
  return candidate.choice.app + "/" + candidate.problem.form + "/" + to_word(candidate.choice.real) +
         sweep_parameters(candidate);
}

SweepNames sweep_names(const Candidate& candidate) {
  const std::string kernel = kernel_of(candidate);
  const auto& stages = candidate.step.stages;
  if (stages.size() == 1 && stages.front().sweeps.size() == 1) return {{kernel}};
  SweepNames names;
  for (const Stage& stage : stages) {
    names.emplace_back();
    for (const SweepSpec& sweep : stage.sweeps) names.back().push_back(kernel + ":" + stage.name + "/" + sweep.name);
  }
  return names;
}

void require_kernels(const Profile& profile, const SweepNames& names) {
  for (const auto& of_stage : names)
    for (const std::string& name : of_stage) profile.kernel(name);
}

std::array<std::string, 2> transports_of(const Strategy& s) {
  const auto name = [](const std::string& transport, const std::vector<std::string>& options) {
    return transport + (options.empty() ? "" : ":" + join(options, ","));
  };
  const std::string near = name(s.transport, s.transport_options);
  return {near, s.between.empty() ? near : name(s.between, s.between_options)};
}

double short_rows(const Traffic& t) {
  if (t.in_place || static_cast<double>(t.run_bytes) >= lines_from) return 0;
  return static_cast<double>(t.bytes) / static_cast<double>(t.run_bytes);
}

double slot_bytes(const Plan& plan) {
  return static_cast<double>(plan.allocated(0).volume() * plan.spec.quantities.front().element_bytes);
}

// ---- a stage ----

StageUnitCosts::StageUnitCosts(const UnitCosts& all, const Candidate& candidate, int stage)
    : common(all), number(stage), meets(!candidate.choice.schedule->in_place) {
  const Choice& choice = candidate.choice;
  const Stage& one = candidate.step.stages[static_cast<std::size_t>(stage)];
  const auto transports =
      all.buffered ? std::array<std::string, 2>{"p2p", "p2p"} : transports_of(candidate.strategy(stage));
  for (std::size_t place : {0u, 1u}) surcharges[place] = &all.profile.surcharge(transports[place]);
  corrections_ = {&surcharges[0]->corrections};
  if (surcharges[0]->plain) corrections_.push_back(&all.profile.surcharge("p2p").corrections);
  bool fuses = true;
  if (!all.buffered)
    for (const std::string& name : all.names[static_cast<std::size_t>(stage)]) {
      kernels_.push_back({&all.profile.kernel(name), &all.profile.kernel(name, true)});
      rows_.push_back(&all.profile.row_cost(name));
      fused_.push_back(all.profile.fused_kernel(name));
      fuses = fuses && fused_.back() != nullptr;
    }
  if (choice.substeps == Substeps::blocked && choice.depth > 1 && !fuses)
    throw UnavailableError("profile '" + all.profile.name + "' has no cost of sweeps of '" +
                           all.names[static_cast<std::size_t>(stage)].front() +
                           "' that are fused in the cache; calibrate the machine, or choose substeps full or shrink");
  for (int other = 0; other < stage; ++other)
    first_reduction += static_cast<int>(candidate.step.stages[static_cast<std::size_t>(other)].reductions.size());
  for (const Reduction& r : one.reductions) waits.push_back(r.mode == ReduceMode::blocking || choice.ranks == 1);
}

double StageUnitCosts::amount_of(int which, const Box& region) const {
  return rows_.empty() ? static_cast<double>(region.volume()) : rows_[static_cast<std::size_t>(which)]->amount(region);
}

double StageUnitCosts::sweep(int which, double amount, double block, int workers, double active, int levels,
                             bool streams) const {
  if (amount == 0) return 0;
  const auto sweep = static_cast<std::size_t>(which);
  const Table *kernel = kernels_[sweep][streams], *of_call = kernels_[sweep].front();
  const double share = block / workers;
  if (levels > 1 && fused_[sweep]) {
    const std::map<int, Table>& fused = *fused_[sweep];
    common.range.check("fused sweeps", levels, fused.begin()->first, fused.rbegin()->first + 1);
    kernel = of_call =
        &nearest_by(fused, [&](int known) { return std::abs(std::log(static_cast<double>(known) / levels)); }).second;
  }
  common.range.check("active cores per socket", active, kernel->begin()->first, kernel->rbegin()->first + 1);
  const Segments& law = nearest(*kernel, active);
  common.range.check("cells per thread", share, law.front().start, law.back().end);
  const double whole = std::max(0.0, evaluate_at(*kernel, active, share));
  const double fixed = std::min(whole, std::max(0.0, evaluate_at(*of_call, active, 0)));
  return fixed + (whole - fixed) / block * amount;
}

MessageUnitCost StageUnitCosts::message(Traffic traffic, double flight, bool far, int threads,
                                        double block_bytes) const {
  MessageUnitCost price = uncorrected(traffic, flight, far, threads, block_bytes);
  if (far || common.device) return price;
  price.corrections = correct(corrections_, likeness_of(traffic, block_bytes, common.candidate.choice.depth));
  for (double* part : {&price.pack, &price.synchronisation, &price.copy, &price.flight, &price.unpack})
    *part *= price.corrections.exchange;
  return price;
}

MessageUnitCost StageUnitCosts::uncorrected(Traffic traffic, double flight, bool far, int threads,
                                            double block_bytes) const {
  const TransportCost& extra = *surcharges[far];
  if (extra.packs_all) traffic.in_place = false;
  if (common.buffered) traffic = {traffic.bytes, traffic.bytes, true};
  const double clean = common.candidate.choice.depth == 1 ? 1 - common.profile.beyond_cache(block_bytes) : 0;
  const double added = of_message(extra, traffic, clean);
  if (extra.from_fields) return {.flight = std::max(0.0, added)};
  MessageUnitCost price;
  const Copied copied = far ? Copied::no : extra.copied;
  if (copied != Copied::no) flight = 0;
  if (copied == Copied::fields) {
    price.copy = common.copying(traffic, threads, block_bytes, true);
    price.synchronisation = std::max(added, 0.0);
    return price;
  }
  const double packing = traffic.in_place ? 0.0 : common.copying(traffic, threads, block_bytes);
  if (extra.copies != 0)
    price.copy = extra.copies * common.copying({traffic.bytes, static_cast<std::int64_t>(contiguous_from), true},
                                               threads, block_bytes);
  double left = 0;
  std::tie(price.pack, left) = shorten(packing, added);
  std::tie(price.flight, left) = shorten(flight, left);
  price.unpack = shorten(packing, left).first;
  price.synchronisation = std::max(added, 0.0);
  return price;
}

// ---- all stages ----

namespace {

std::vector<std::string> joined(const SweepNames& names) {
  std::vector<std::string> all;
  for (const auto& of_stage : names) all.insert(all.end(), of_stage.begin(), of_stage.end());
  return all;
}

}  // namespace

UnitCosts::UnitCosts(const Profile& of, const Candidate& c, const SweepNames& sweeps)
    : profile(of),
      candidate(c),
      names(sweeps),
      threads(c.choice.threads),
      ranks(c.choice.ranks),
      dims(c.choice.grid.dims),
      buffered(messages_on_device(c.choice)) {
  if (c.choice.temporaries != Temporaries::kept || c.choice.piece != 0)
    throw UnavailableError(
        "profiles have no costs of freed temporaries, nor of pieces that threads take as they come; use temporaries "
        "'kept' and piece 0");
  if (!c.choice.device.empty()) device.emplace(of, c, joined(names), range);
  for (const Stage& stage : c.step.stages)
    for (const Reduction& reduction : stage.reductions) reductions.push_back(&reduction);
  stages.reserve(c.step.stages.size());
  for (std::size_t stage = 0; stage < c.step.stages.size(); ++stage)
    stages.emplace_back(*this, c, static_cast<int>(stage));
}

double UnitCosts::reduction_s(int number) const {
  return reduction_time(profile, *reductions[static_cast<std::size_t>(number)], ranks);
}

std::vector<double> UnitCosts::flight_times(const std::vector<Locality>& near,
                                            const std::vector<double>& flights) const {
  if (!device || !device->writes_there) return flights;
  std::vector<double> times;
  for (const Locality place : near) times.push_back(message_time(profile, place, 0));
  return times;
}

double UnitCosts::copying(const Traffic& traffic, int team, double block_bytes, bool copies) const {
  const double far = profile.beyond_cache(block_bytes);
  const auto part = [&](double share, bool beyond) {
    return share > 0 ? share * copying_of(traffic, team, beyond, copies) : 0.0;
  };
  return part(1 - far, false) + part(far, true);
}

double UnitCosts::copying_of(const Traffic& traffic, int team, bool far, bool copies) const {
  const Stride stride = stride_class(static_cast<double>(traffic.run_bytes), static_cast<double>(traffic.pitch_bytes));
  const Table& table = profile.packing(stride, copies, far);
  range.check("threads packing", team, table.begin()->first, table.rbegin()->first + 1);
  const Segments& law = nearest(table, team);
  double amount = static_cast<double>(traffic.bytes);
  const double rows = traffic.run_bytes > 0 ? amount / static_cast<double>(traffic.run_bytes) : 0;
  if (stride >= Stride::strided) amount *= profile.row_scale(static_cast<double>(traffic.run_bytes));
  range.check(out_of_range[static_cast<std::size_t>(stride)], amount, law.front().start, law.back().end);
  const double by_team = evaluate_at(table, team, amount, rows);
  return team == 1 ? by_team : std::min(evaluate_at(table, 1, amount, rows), by_team);
}

}  // namespace haloscope::model
