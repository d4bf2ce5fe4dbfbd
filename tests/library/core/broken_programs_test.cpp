// Programs that are broken on purpose: the checker finds each fault.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "all_programs.hpp"
#include "texts.hpp"

namespace haloscope {
namespace {

using test::ops_of;

/// Memory of the fields, and the schedule or transport that moves them.
enum class Where { host, device, boxed, task_queue };

Choice choice_of(const char* schedule, int depth, Where where) {
  Choice choice{.app = "laplace2d", .grid = {2, {14, 13, 1}, {true, true, false}}};
  choice.ranks = 4;  // 2x2, all of them with messages in every round
  choice.schedule = schedule;
  choice.depth = depth;
  choice.threads = where == Where::host || where == Where::boxed ? 2 : 1;
  if (where != Where::host) choice.device = "host";
  if (where == Where::device) choice.strategy = "ordered/staged";
  if (where == Where::task_queue) choice.strategy = "ordered/taskqueue";
  return choice;
}

/// All ranks' plans and programs of one choice.
struct World : test::AllPrograms {
  explicit World(const Choice& choice) : World(choice, Candidate(choice)) { EXPECT_EQ(illegal(choice), ""); }
  World(const char* schedule, int depth = 2, Where where = Where::host) : World(choice_of(schedule, depth, where)) {}

  const Program& first() const { return programs.front(); }
  /// The finding with a change of one rank's program.
  std::string broken(const std::function<void(Program&)>& change, std::size_t rank = 0) const {
    AllPrograms changed = *this;
    change(changed.programs[rank]);
    return changed.finding();
  }

 private:
  World(const Choice& choice, const Candidate& candidate)
      : AllPrograms(candidate.layout, candidate.step, exchange_spec(candidate), choice.schedule->name,
                    schedule_options(candidate)) {}
};

/// Removes one operation; its dependents inherit its dependencies.
void drop(Program& program, int index) {
  const std::vector<std::int32_t> gone = program.ops[index].after;
  program.ops.erase(program.ops.begin() + index);
  for (Op& op : program.ops) {
    std::set<std::int32_t> after;
    for (const std::int32_t a : op.after) {
      if (a == index)
        after.insert(gone.begin(), gone.end());
      else
        after.insert(a);
    }
    op.after.clear();
    for (const std::int32_t a : after) op.after.push_back(a > index ? a - 1 : a);
  }
}

std::function<void(Program&)> dropping(int index) {
  return [index](Program& program) { drop(program, index); };
}

std::function<void(Program&)> waiting_for_nothing(int index) {
  return [index](Program& program) { program.ops[index].after.clear(); };
}

const Op& op_of(const Program& program, int index) { return program.ops[index]; }

/// Sweeps of cells that need halos or an earlier sweep.
std::vector<int> needy_sweeps(const Program& program) {
  std::vector<int> places;
  for (const int i : ops_of(program, OpKind::sweep)) {
    const Sweep& sweep = program.sweeps[op_of(program, i).target];
    if (sweep.part != Part::inner || sweep.step > 0) places.push_back(i);
  }
  return places;
}

struct Case {
  const char* schedule;
  int depth;
  Where where;
  std::vector<OpKind> kinds;
};

const char* const host_schedules[] = {"bulk", "split", "divided", "interleaved", "comm-thread"};
const char* const device_schedules[] = {"bulk", "streams"};
const char* const box_schedules[] = {"box", "box-overlap"};

std::vector<Case> cases() {
  using enum OpKind;
  std::vector<Case> all;
  for (const char* schedule : host_schedules)
    all.push_back({schedule, 2, Where::host, {post, pack, send, wait, unpack, complete, sweep}});
  for (const char* schedule : device_schedules) {
    all.push_back({schedule, 2, Where::device, {post, pack, d2h, send, wait, h2d, unpack, complete, sweep}});
    all.push_back({schedule, 2, Where::task_queue, {post, pack, send, wait, unpack, complete, sweep}});
  }
  for (const char* schedule : box_schedules)
    all.push_back({schedule, 1, Where::boxed, {gather, transfer, scatter, unpack, sweep}});
  return all;
}

TEST(BrokenPrograms, V11_NT1_ADroppedOperationIsFound) {
  for (const Case& one : cases()) {
    const World world(one.schedule, one.depth, one.where);
    EXPECT_EQ(world.finding(), "") << one.schedule;
    EXPECT_EQ(world.first().signals, one.where == Where::task_queue);
    for (const OpKind kind : one.kinds) {
      const auto places = ops_of(world.first(), kind);
      EXPECT_FALSE(places.empty()) << one.schedule << " " << to_string(kind);
      for (const int i : places) EXPECT_NE(world.broken(dropping(i)), "") << one.schedule << ", operation " << i;
    }
  }
}

TEST(BrokenPrograms, ADroppedCopyIsFound) {
  Choice choice = choice_of("bulk", 2, Where::host);
  choice.grid.cells = {9, 12, 1};
  choice.ranks = 2;
  choice.process_grid = "1x2";
  const World world(choice);
  EXPECT_EQ(world.finding(), "");
  const auto places = ops_of(world.programs[1], OpKind::copy);
  EXPECT_FALSE(places.empty());
  for (const int i : places) EXPECT_NE(world.broken(dropping(i), 1), "");
}

TEST(BrokenPrograms, ASweepThatWaitsForNothingIsFound) {
  for (const char* schedule : host_schedules) {
    const World world(schedule);
    const auto places = needy_sweeps(world.first());
    EXPECT_FALSE(places.empty());
    for (const int i : places) EXPECT_NE(world.broken(waiting_for_nothing(i)), "") << schedule;
  }
}

/// Puts an operation before all others, which wait for it.
void move_to_front(Program& program, int index) {
  std::vector<Op> ops = program.ops;
  std::vector<std::int32_t> place(ops.size());
  std::rotate(ops.begin(), ops.begin() + index, ops.begin() + index + 1);
  for (int i = 0; i < static_cast<int>(ops.size()); ++i) place[i] = i < index ? i + 1 : i;
  ops.front().after.clear();
  for (std::size_t i = 1; i < ops.size(); ++i) {
    std::vector<std::int32_t> after{0};
    for (const std::int32_t a : ops[i].after)
      if (a != index) after.push_back(place[a]);
    ops[i].after = after;
  }
  program.ops = ops;
}

TEST(BrokenPrograms, ASweepBeforeItsExchangeIsFoundByItsValues) {
  for (const char* schedule : host_schedules) {
    const World world(schedule, 1);
    for (const int i : needy_sweeps(world.first())) {
      EXPECT_PART(world.broken([i](Program& program) { move_to_front(program, i); }), "not there yet") << schedule;
    }
  }
}

TEST(BrokenPrograms, MessagesInFlightWhileTheirCellsAreOverwrittenAreFound) {
  for (const char* schedule : host_schedules) {
    const World world(schedule);
    const auto ends = ops_of(world.first(), OpKind::complete);
    ASSERT_EQ(ends.size(), 1u);
    int waiting = 0;
    for (const int i : ops_of(world.first(), OpKind::sweep)) {
      const auto& after = op_of(world.first(), i).after;
      if (std::find(after.begin(), after.end(), ends[0]) == after.end()) continue;
      ++waiting;
      const std::string finding = world.broken([&](Program& program) { std::erase(program.ops[i].after, ends[0]); });
      EXPECT_PART(finding, "nothing orders") << schedule;
    }
    EXPECT_GT(waiting, 0) << schedule;
  }
}

TEST(BrokenPrograms, ASweepIntoTheWrongSlotIsFound) {
  EXPECT_NE(World("bulk", 1).broken([](Program& program) { program.sweeps[0].into = 0; }), "");
}

TEST(BrokenPrograms, ASweepThatClaimsTooMuchIsFound) {
  const World world("bulk", 2);
  ASSERT_NE(world.first().sweeps.back().region, world.first().sweeps.back().valid);
  const std::string finding =
      world.broken([](Program& program) { program.sweeps.back().valid = program.sweeps.back().region; });
  EXPECT_PART(finding, "not there yet");
}

TEST(BrokenPrograms, CellsThatAreNotSweptAreFound) {
  EXPECT_PART(World("bulk", 1).broken([](Program& program) {
    --program.sweeps[0].region.hi[0];
    program.sweeps[0].valid = program.sweeps[0].region;
  }),
              "does not hold version");
}

TEST(BrokenPrograms, ACycleIsFound) {
  const World world("split");
  const int last = ops_of(world.first(), OpKind::sweep).back();
  EXPECT_PART(world.broken([last](Program& program) { program.ops[0].after = {last}; }), "cycle");
}

TEST(BrokenPrograms, AMessageThatNeverComesIsADeadlock) {
  EXPECT_PART(World("bulk", 1).broken(
                  [](Program& program) {
                    Op& op = program.ops[ops_of(program, OpKind::send).front()];
                    op.kind = OpKind::progress;
                    op.target = -1;
                  },
                  2),
              "deadlock");
}

TEST(BrokenPrograms, ProgressCallsMayBeMissing) {
  EXPECT_EQ(World("split").broken([](Program& program) {
    while (!ops_of(program, OpKind::progress).empty()) drop(program, ops_of(program, OpKind::progress).front());
  }),
            "");
}

TEST(BrokenPrograms, V11_WorkOfADeviceThatDoesNotWaitForAnotherLaneIsFound) {
  for (const char* schedule : device_schedules) {
    const World world(schedule, 2, Where::device);
    std::vector<int> places = ops_of(world.first(), OpKind::send);
    for (const int i : ops_of(world.first(), OpKind::h2d)) places.push_back(i);
    const auto sweeps = needy_sweeps(world.first());
    const auto on_stream = [&](int i) { return op_of(world.first(), i).lane == Lane::sweep_stream; };
    const auto sweep = std::find_if(sweeps.begin(), sweeps.end(), on_stream);
    if (sweep != sweeps.end()) places.push_back(*sweep);
    for (const int i : places) EXPECT_NE(world.broken(waiting_for_nothing(i)), "") << schedule << ", operation " << i;
  }
}

TEST(BrokenPrograms, NT1_MessagesThatDoNotWaitForTheirKernelAreFound) {
  const World world("streams", 2, Where::task_queue);
  for (const OpKind kind : {OpKind::send, OpKind::unpack})
    for (const int i : ops_of(world.first(), kind))
      EXPECT_NE(world.broken(waiting_for_nothing(i)), "") << "operation " << i;
}

TEST(BrokenPrograms, ARingWhosePartsDoNotWaitForEachOtherIsFound) {
  for (const char* schedule : box_schedules) {
    const World world(schedule, 1, Where::boxed);
    for (const OpKind kind : {OpKind::transfer, OpKind::scatter})
      for (const int i : ops_of(world.first(), kind)) {
        if (op_of(world.first(), i).lane == op_of(world.first(), i - 1).lane) continue;
        EXPECT_PART(world.broken(waiting_for_nothing(i)), "does not wait") << schedule;
      }
  }
}

TEST(BrokenPrograms, ARingThatLacksCellsIsFound) {
  for (const char* schedule : box_schedules) {
    const World world(schedule, 1, Where::boxed);
    ASSERT_EQ(world.first().rings.size(), 2u);
    EXPECT_NE(world.first().rings[0].to_device, world.first().rings[1].to_device);
    for (std::size_t ring : {0, 1})
      EXPECT_NE(world.broken([ring](Program& program) {
        auto& boxes = program.rings[ring].boxes;
        boxes.erase(boxes.begin());
      }),
                "");
  }
}

TEST(BrokenPrograms, W14_AResidentProgramNeedsItsSweepsToWrapAround) {
  Choice choice{.grid = {3, {6, 5, 4}, {true, true, true}},
                .schedule = "resident",
                .strategy = "ordered/staged",
                .device = "host"};
  const World world(choice);
  EXPECT_EQ(world.finding(), "");
  EXPECT_TRUE(world.first().wraps);
  ASSERT_EQ(world.first().ops.size(), 1u);
  EXPECT_EQ(world.first().ops[0].kind, OpKind::sweep);
  EXPECT_PART(world.broken([](Program& program) { program.wraps = false; }), "not there yet");
}

}  // namespace
}  // namespace haloscope
