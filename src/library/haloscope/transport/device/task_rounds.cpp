#include "haloscope/transport/device/task_rounds.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "haloscope/field/memory.hpp"
#include "haloscope/transport/device/message_pieces.hpp"

namespace haloscope {
namespace {

using device::Buffer;
using device::Space;

static_assert(device::most_parts <= MessageTags::parts);

/// Returns the beginnings of the parts of a message, and its end: at most as many parts as lines of a device. Parts are
/// whole lines, except the last. Both ends cut it equally.
std::vector<std::int64_t> cut_message(std::int64_t bytes, int parts) {
  const std::int64_t lines = (bytes + device_line - 1) / device_line, count = std::min<std::int64_t>(parts, lines);
  std::vector<std::int64_t> begins;
  for (std::int64_t part = 0; part < count; ++part) begins.push_back(lines * part / count * device_line);
  begins.push_back(bytes);
  return begins;
}

}  // namespace

TaskRounds::TaskRounds(const LinkContext& context, const TaskOptions& options, int blocks)
    : device_(*context.device),
      options_(options),
      rounds_of_slot_(static_cast<std::size_t>(context.plan->rounds)),
      messages_(context.plan->messages.size()) {
  rounds_.resize(static_cast<std::size_t>(context.slots()) * rounds_of_slot_);
  place_messages(context);
  Lists lists;
  for (int slot = 0; slot < context.slots(); ++slot)
    for (int round = 0; round < context.plan->rounds; ++round)
      for (const bool out : {true, false})
        for (int id = 0; id < context.messages(); ++id)
          if (const Message& m = context.plan->messages[static_cast<std::size_t>(id)]; m.out == out && m.round == round)
            add_message(context, slot, id, lists);
  launch_with(lists, blocks);
}

void TaskRounds::place_messages(const LinkContext& context) {
  std::size_t bytes = 0;
  for (int slot = 0; slot < context.slots(); ++slot)
    for (const Message& message : context.plan->messages) {
      begins_.push_back(bytes);
      bytes += round_up(static_cast<std::size_t>(message.bytes), device_line);
    }
  host_ = Buffer(device_, Space::mapped, bytes);
  if (options_.copied) packed_ = Buffer(device_, Space::device, bytes);
}

void TaskRounds::add_message(const LinkContext& context, int slot, int id, Lists& lists) {
  const Message& message = context.plan->messages[static_cast<std::size_t>(id)];
  TaskRound& round = of(message.round, slot);
  TaskSide& side = message.out ? round.out : round.in;
  const std::size_t begin = begins_[static_cast<std::size_t>(slot) * messages_ + static_cast<std::size_t>(id)];
  std::byte* const host = host_.data() + begin;
  std::byte* const packed = message.out && options_.copied ? packed_.data() + begin : nullptr;
  side.ids.push_back(id);
  auto begins = cut_message(message.bytes, options_.parts);
  const std::size_t first = lists.pieces.size();
  device::cut_copies(message_copies(context, id, slot, packed != nullptr ? packed : host), lists.pieces);
  const std::vector<int> cuts = device::cut_parts(lists.pieces, first, {begins.begin(), begins.end() - 1});
  for (std::size_t part = 0; part + 1 < begins.size(); ++part) {
    TaskPart& p = side.parts.emplace_back();
    p.id = id;
    p.peer = message.peer;
    p.tag = context.tags.of(message.tag, static_cast<int>(part), slot);
    p.host = host + begins[part];
    p.packed = packed != nullptr ? packed + begins[part] : nullptr;
    p.bytes = begins[part + 1] - begins[part];
    p.type = byte_type(p.bytes);
    lists.parts.push_back({cuts[part], cuts[part + 1]});
  }
}

/// Makes the launches. Each round has a counter for each part that it sends and one for its tasks; a word for each
/// part either way and for each block. The first word makes all kernels leave.
void TaskRounds::launch_with(const Lists& lists, int blocks) {
  std::size_t words = 1, counters = 0, relayed = 0, parts = 0;
  const auto each = [&](auto place) {
    words = 1, counters = 0, relayed = 0, parts = 0;
    for (TaskRound& round : rounds_) {
      const std::size_t all = round.out.parts.size() + round.in.parts.size();
      const int pieces = all == 0 ? 1 : lists.parts[parts + all - 1].end - lists.parts[parts].first;
      round.launch.sent = static_cast<int>(round.out.parts.size());
      round.launch.received = static_cast<int>(round.in.parts.size());
      round.launch.blocks = std::clamp(pieces, 1, blocks);
      place(round);
      words += all + static_cast<std::size_t>(round.launch.blocks);
      counters += round.out.parts.size() + 1;
      relayed += round.in.parts.size();
      parts += all;
    }
  };
  each([](TaskRound&) {});
  pieces_ = device::copied_to(device_, lists.pieces.data(), lists.pieces.size() * sizeof lists.pieces[0]);
  parts_ = device::copied_to(device_, lists.parts.data(), lists.parts.size() * sizeof lists.parts[0]);
  const std::vector<std::uint32_t> zeros(counters, 0);
  counters_ = device::copied_to(device_, zeros.data(), counters * sizeof zeros[0]);
  const std::vector<std::uint64_t> nothing(relayed, 0);
  relayed_ = device::copied_to(device_, nothing.data(), relayed * sizeof nothing[0]);
  words_ = Buffer(device_, Space::mapped, words * device::signal_words * sizeof(std::uint64_t));
  std::memset(words_.data(), 0, words_.size());
  const auto word = [&](std::size_t number) {
    return reinterpret_cast<std::uint64_t*>(words_.data()) + number * device::signal_words;
  };
  const device::Stay stay = device_.info().stay(reinterpret_cast<const std::uint32_t*>(words_.data()));
  each([&](TaskRound& round) {
    device::ExchangeLaunch& l = round.launch;
    l.pieces = reinterpret_cast<const device::CopyLaunch::Piece*>(pieces_.data());
    l.parts = reinterpret_cast<const device::ExchangeLaunch::Part*>(parts_.data()) + parts;
    l.moved = reinterpret_cast<std::uint32_t*>(counters_.data()) + counters;
    l.tasks = options_.queue ? l.moved + l.sent : nullptr;
    l.packed = word(words);
    l.arrived = word(words + static_cast<std::size_t>(l.sent));
    l.progress = word(words + static_cast<std::size_t>(l.sent + l.received));
    l.relayed = reinterpret_cast<std::uint64_t*>(relayed_.data()) + relayed;
    l.stay = stay;
    if (l.received == 0) return;
    const auto* const received = &lists.parts[parts + static_cast<std::size_t>(l.sent)];
    round.unpack = {l.pieces + received->first, received[l.received - 1].end - received->first};
  });
}

void TaskRounds::stop() {
  std::atomic_ref(*reinterpret_cast<std::uint32_t*>(words_.data())).store(1, std::memory_order_release);
}

}  // namespace haloscope
