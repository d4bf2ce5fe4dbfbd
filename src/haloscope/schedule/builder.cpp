#include "haloscope/schedule/builder.hpp"

#include <algorithm>

namespace haloscope {

ProgramBuilder::ProgramBuilder(const Stage& stage, const Plan& plan, const ScheduleOptions& options)
    : stage_(stage), plan_(plan), options_(options) {
  program_.steps = options.steps;
  program_.device = options.device;
}

/// Everything that touches a field is work for a device where the fields live on one.
Lane ProgramBuilder::lane(OpKind kind) const {
  if (kind == OpKind::sweep) return options_.device ? Lane::sweep_stream : Lane::main;
  const bool moves = kind == OpKind::copy || kind == OpKind::pack || kind == OpKind::d2h || kind == OpKind::h2d ||
                     kind == OpKind::unpack;
  return options_.device && moves ? Lane::halo_stream : Lane::comm;
}

int ProgramBuilder::add(OpKind kind, Lane lane, int slot, int target, std::vector<int> after) {
  std::erase(after, -1);
  program_.ops.push_back(
      {kind, lane, static_cast<std::uint8_t>(slot), target, std::vector<std::int32_t>(after.begin(), after.end())});
  return static_cast<int>(program_.ops.size()) - 1;
}

int ProgramBuilder::add_copies(std::vector<Copy> copies) {
  std::erase_if(copies, [](const Copy& c) { return c.to.empty(); });
  if (copies.empty()) return -1;
  program_.copy_sets.push_back(std::move(copies));
  return add(OpKind::copy, lane(OpKind::copy), 0, static_cast<int>(program_.copy_sets.size()) - 1);
}

/// Whether any rank may have a message in this round; all ranks give the same answer.
bool ProgramBuilder::active(int round) const {
  if (plan_.spec.pattern == Pattern::direct) return true;
  int left = round;
  for (int d : plan_.spec.order) {
    if (d >= plan_.dims || left-- > 0) continue;
    return !plan_.own_neighbour[d] && (plan_.has_neighbour[d][0] || plan_.has_neighbour[d][1]);
  }
  return false;
}

int ProgramBuilder::add_messages(OpKind kind, int round, bool out) {
  std::vector<int> ids;
  for (int m = 0; m < static_cast<int>(plan_.messages.size()); ++m)
    if (plan_.messages[m].out == out && (round < 0 || plan_.messages[m].round == round)) ids.push_back(m);
  const bool collective = options_.collective_rounds && round >= 0 && active(round);
  if (ids.empty() && plan_.spec.pattern == Pattern::ordered && !collective) return -1;
  const auto known = std::find(program_.sets.begin(), program_.sets.end(), ids);
  const int set = static_cast<int>(known - program_.sets.begin());
  if (known == program_.sets.end()) program_.sets.push_back(ids);
  // Messages pass from lane to lane: from the stream that packs to the one who sends, from him who waits to the stream.
  const Lane here = lane(kind);
  if (kind == OpKind::post || kind == OpKind::complete) return add(kind, here, 0, set);
  const bool crosses = last_message_op_ >= 0 && program_.ops[last_message_op_].lane != here;
  return last_message_op_ = add(kind, here, 0, set, {crosses ? last_message_op_ : -1});
}

int ProgramBuilder::sweep(const Sweep& sweep, int slot, std::vector<int> after) {
  program_.sweeps.push_back(sweep);
  const Lane where = options_.device && sweep.part == Part::outer ? Lane::halo_stream : lane(OpKind::sweep);
  return add(OpKind::sweep, where, slot, static_cast<int>(program_.sweeps.size()) - 1, std::move(after));
}

int ProgramBuilder::sweep_on(Lane lane, const Box& box, Part part, std::vector<int> after) {
  if (box.empty()) return -1;
  program_.sweeps.push_back({box, box, 1, 0, 1, part});
  return add(OpKind::sweep, lane, 0, static_cast<int>(program_.sweeps.size()) - 1, std::move(after));
}

int ProgramBuilder::give_ring(bool to_device, const std::vector<Box>& boxes) {
  program_.rings.push_back({to_device, boxes});
  const int target = static_cast<int>(program_.rings.size()) - 1;
  const int gathered = add(OpKind::gather, to_device ? Lane::main : Lane::halo_stream, 0, target, {});
  return add(OpKind::transfer, Lane::halo_stream, 0, target, {gathered});
}

int ProgramBuilder::take_ring(int given) {
  const int target = program_.ops[static_cast<std::size_t>(given)].target;
  const bool to_device = program_.rings[static_cast<std::size_t>(target)].to_device;
  return add(OpKind::scatter, to_device ? Lane::halo_stream : Lane::main, 0, target, {given});
}

int ProgramBuilder::progress(std::vector<int> after) {
  return add(OpKind::progress, Lane::main, 0, -1, std::move(after));
}

Box ProgramBuilder::grown_to_neighbours(std::int64_t layers) const {
  Box box;
  for (int d = 0; d < 3; ++d) {
    box.lo[d] = d < plan_.dims && plan_.has_neighbour[d][0] ? -layers : 0;
    box.hi[d] = plan_.cells[d] + (d < plan_.dims && plan_.has_neighbour[d][1] ? layers : 0);
    if (box.hi[d] < box.lo[d]) box.hi[d] = box.lo[d];
  }
  return box;
}

Box ProgramBuilder::interior(int levels) const {
  Box box = grown_to_neighbours(-static_cast<std::int64_t>(levels) * stage_.radius);
  for (int d = 0; d < plan_.dims; ++d)
    if (plan_.own_neighbour[d]) {
      box.lo[d] = 0;
      box.hi[d] = plan_.cells[d];
    }
  return box;
}

Box ProgramBuilder::valid(int step) const {
  const int left = (options_.region == DeepRegion::full ? options_.depth : options_.steps) - 1 - step;
  return grown_to_neighbours(static_cast<std::int64_t>(left) * stage_.radius);
}

Box ProgramBuilder::region(int step) const {
  if (options_.region == DeepRegion::full)
    return grown_to_neighbours(static_cast<std::int64_t>(options_.depth - 1) * stage_.radius);
  return valid(step);
}

int ProgramBuilder::first_step(const Box& box, Part part, std::vector<int> after) {
  if (box.empty()) return -1;
  const int levels = blocked() ? options_.steps : 1;
  const Box valid_part = blocked() ? box : intersect(box, valid(0));
  return sweep({box, valid_part, 1, 0, levels, part}, 0, std::move(after));
}

std::vector<Box> ProgramBuilder::shell(const Box& inner) const {
  return subtract(blocked() ? grown_to_neighbours(0) : region(0), inner);
}

void ProgramBuilder::later_steps(std::vector<int> after, const ExchangeOps& exchange) {
  program_.final_slot = 1;
  if (blocked()) return;
  for (int step = 1; step < options_.steps; ++step) {
    const int slot = step % 2, into = (step + 1) % 2;
    after.push_back(exchange.complete);  // the exchanged slot is written from step 1 on
    after = {sweep(
        {region(step), intersect(region(step), valid(step)), static_cast<std::uint8_t>(into), step, 1, Part::full},
        slot, after)};
    program_.final_slot = into;
  }
}

Program ProgramBuilder::take() { return std::move(program_); }

}  // namespace haloscope
