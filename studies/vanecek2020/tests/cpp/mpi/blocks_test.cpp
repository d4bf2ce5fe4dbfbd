// Blocks: set-ups and variants, every variant under random delays with every element checked, the order of events, and
// the ends of failing runs. Devices are imitated.
#include "vanecek2020/app/blocks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "faulty_device.hpp"
#include "haloscope/comm/gather.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/app_kernels.hpp"
#include "world.hpp"

namespace haloscope {

extern const AppKernels blocks_kernels;

namespace {

using namespace test;

const bool kernels_added = (add_kernels(blocks_kernels), true);  // as the kind of requests does

// ---- set-ups and variants -------------------------------------------------------------------------------------------

TEST(BlockSetup, NC1_EverySideReceivesFromTheOneThatSendsToIt) {
  for (Scheme scheme : {Scheme::pairs, Scheme::ring, Scheme::mixed})
    for (int sides = 1; sides <= 9; ++sides)
      for (int block = 0; block < 27; ++block)
        for (int side = 0; side < sides; ++side) {
          const int to = destination_of(scheme, side, sides, block);
          ASSERT_TRUE(to >= 0 && to < sides);
          ASSERT_EQ(source_of(scheme, to, sides, block), side) << to_word(scheme) << " " << sides << " " << block;
        }
}

TEST(BlockSetup, NC1_TheMixedSchemeIsThatOfFigure26) {
  EXPECT_EQ(destination_of(Scheme::mixed, 2, 4, 0), 3);
  EXPECT_EQ(destination_of(Scheme::mixed, 3, 4, 1), 0);
  EXPECT_EQ(destination_of(Scheme::mixed, 0, 4, 2), 3);
}

TEST(BlockSetup, NC2_GridsGiveTheirBlocksNumbers) {
  for (const auto& [name, blocks] : {std::pair{"XS", 4}, {"S", 4}, {"M", 9}, {"L", 27}, {"XL", 27}}) {
    const Workload work = find_workload(name);
    EXPECT_EQ(work.blocks(), blocks);
    EXPECT_EQ(work.grid[0] * work.grid[1] * work.grid[2], blocks);
  }
}

TEST(BlockSetup, NC3_SizesAreThoseOfTable41) {
  const Workload large = find_workload("L"), tiny = find_workload("XS"), huge = find_workload("XL");
  EXPECT_EQ(large.elements[0], 1);
  EXPECT_EQ(large.elements[8], 120000);
  EXPECT_EQ(large.elements[9], 5000);
  EXPECT_EQ(large.elements[26], 130000);
  EXPECT_EQ(8 * std::accumulate(large.elements.begin(), large.elements.end(), std::int64_t{0}), 14040008);
  EXPECT_EQ(8 * std::accumulate(tiny.elements.begin(), tiny.elements.end(), std::int64_t{0}), 728);
  EXPECT_EQ(huge.elements[0], 10);
  EXPECT_EQ(huge.elements[26], 1300000);
}

TEST(BlockVariant, NC9_AVariantIsTheSameAfterItWasWritten) {
  for (const char* text : {"baseline", "baseline:testany,blocking,noncoherent",
                           "taskqueue:queue,device,blocking,chunks=4,padded,threads=3",
                           "taskqueue:throttle=2,dummy,backoff=5", "kernels:noncoherent"}) {
    const std::string whole = to_string(parse_variant(text));
    EXPECT_EQ(to_string(parse_variant(whole)), whole);
  }
  EXPECT_EQ(to_string(parse_variant("taskqueue")), "taskqueue:channel,pinned,nonblocking");
  EXPECT_EQ(to_string(parse_variant("baseline:testany")), "baseline:testany,nonblocking,coherent");
}

TEST(BlockVariant, WordsThatAreWrongAreRefusedByName) {
  for (const char* text : {"base", "baseline:queue", "taskqueue:chunks=0", "taskqueue:chunks=x", "taskqueue:chunks",
                           "taskqueue:noncoherent", "taskqueue:queue,channel", "kernels:chunks=2", "baseline:backoff=1",
                           "taskqueue:chunks=2,chunks=3", "taskqueue:threads=4"})
    EXPECT_THROW(parse_variant(text), UsageError) << text;
}

// ---- counts and findings of an exchange ----------------------------------------------------------------------------

TEST(HitProfile, NI5_MadeUpSequencesHaveKnownShares) {
  HitProfile profile;
  for (char c : std::string("hhhmhmmhh")) c == 'h' ? profile.hit() : profile.miss();
  EXPECT_EQ(profile.hits(), 6);
  EXPECT_DOUBLE_EQ(profile.after_a_hit(), 3.0 / 6);
  EXPECT_EQ(profile.longest_run(), 3);
  HitProfile other;
  other.hit();
  profile.add(other);
  EXPECT_DOUBLE_EQ(profile.after_a_hit(), 3.0 / 7);
}

/// Blocks of this rank on a separate imitated device.
struct Rig {
  Imitated imitated;
  std::unique_ptr<device::Device> device;
  BlocksContext context;
  std::unique_ptr<BlocksFlow> flow;
  using Change = std::function<void(device::host::Imitation&)>;

  explicit Rig(
      const std::string& variant, const std::string& imitation = "", const Change& change = [](auto&) {})
      : imitated(imitation), device((change_imitation(change), device::find_backend("host").open(0))) {
    context.comm = MPI_COMM_WORLD;
    context.device = device.get();
    context.workload = find_workload("XS");
    context.variant = parse_variant(variant);
    context.every = true;
    context.yield = true;
  }
  BlocksFlow& open() {
    flow = make_flow(context);
    return *flow;
  }
  void run(int iterations) {
    if (!flow) open();
    for (int i = 0; i < iterations; ++i) flow->iterate(i);
  }
};

std::vector<std::string> all_variants() {
  std::vector<std::string> all;
  for (const char* wait : {"waitall", "testany"})
    for (const char* send : {"nonblocking", "blocking"})
      for (const char* memory : {"coherent", "noncoherent"})
        all.push_back(std::string("baseline:") + wait + "," + send + "," + memory);
  for (const char* tasks : {"channel", "queue"})
    for (const char* buffer : {"pinned", "device"})
      for (const char* send : {"nonblocking", "blocking"})
        for (const char* more : {"", ",chunks=3"})
          all.push_back(std::string("taskqueue:") + tasks + "," + buffer + "," + send + more);
  for (const char* more : {"padded", "queue,padded", "throttle=1", "device,throttle=2", "dummy", "backoff=100"})
    all.push_back(std::string("taskqueue:") + more);
  for (const char* more : {"", "blocking", "noncoherent,dummy"}) all.push_back(std::string("kernels:") + more);
  return all;
}

class BlockVariants : public ::testing::TestWithParam<std::string> {};

TEST_P(BlockVariants,
       NB2_NB5_NC6_NC9_NM1_NT2_NT3_NT4_NT9_NX3_NX4_AThousandExchangesUnderRandomDelaysDeliverEveryElement) {
  Rig rig(GetParam(), "block_delay_us=30");
  rig.context.scheme = Scheme::mixed;
  const int iterations = world_size() == 1 ? 1000 : world_size() == 2 ? 100 : 10;
  rig.run(iterations);
  const BlocksCounts& counts = rig.flow->counts();
  const Variant& v = rig.context.variant;
  std::int64_t tasks = 0;
  for (int b = 0; b < rig.flow->blocks(); ++b) tasks += device::chunks_of(rig.flow->elements(b), v.chunks);
  EXPECT_EQ(counts.sends, iterations * tasks);
  EXPECT_EQ(counts.arrivals, iterations * tasks);
  if (v.flow == Variant::Flow::taskqueue) {
    EXPECT_EQ(counts.launches, iterations);
    EXPECT_EQ(counts.tasks, iterations * tasks);
    EXPECT_EQ(counts.copies_in, v.device ? iterations * rig.flow->blocks() : 0);
    EXPECT_EQ(counts.copies_out, v.device ? iterations * tasks : 0);
    EXPECT_EQ(counts.illegal_moves, 0);
    EXPECT_EQ(counts.checked_lists, v.queue ? iterations : 0);
    EXPECT_EQ(counts.misordered_tasks, 0);
  } else {
    EXPECT_EQ(counts.launches, (v.flow == Variant::Flow::baseline ? 2 : 2 * rig.flow->blocks()) * iterations);
  }
}

INSTANTIATE_TEST_SUITE_P(All, BlockVariants, ::testing::ValuesIn(all_variants()), [](const auto& info) {
  std::string name = info.param;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

/// Ranks are late by thirty times the time that a kernel that waits for the CPU stays on the device.
TEST(Blocks, NoSideIsTooLate) {
  Lateness late(static_cast<unsigned>(world_rank()) + 1);
  for (const std::string& variant : all_variants()) {
    Rig rig(variant, "block_delay_us=20,stay_us=30");
    if (rig.context.variant.flow != Variant::Flow::taskqueue) continue;
    rig.context.on_posted = std::ref(late);
    const int iterations = world_size() > 2 ? 4 : 12;
    rig.run(iterations);
    EXPECT_EQ(rig.flow->counts().launches, iterations) << variant;  // a continued launch does not count
  }
}

TEST(Blocks, NC1_NC2_NC3_AnyWorkloadAndSchemeDeliversEveryElement) {
  for (const char* workload : {"S", "M", "L"})
    for (Scheme scheme : {Scheme::pairs, Scheme::ring, Scheme::mixed})
      for (const char* variant : {"baseline", "taskqueue:queue,device,chunks=2"}) {
        Rig rig(variant);
        rig.context.workload = find_workload(workload);
        rig.context.scheme = scheme;
        rig.run(world_size() <= 2 ? 3 : 1);
      }
}

TEST(Blocks, NC3_TenTimesTheSizesOfTable41DeliverEveryElement) {
  if (world_size() > 2) GTEST_SKIP() << "buffers of 280 MB a rank";
  for (const char* variant : {"baseline", "taskqueue"}) {
    Rig rig(variant);
    rig.context.workload = find_workload("XL");
    rig.run(1);
    EXPECT_EQ(rig.flow->counts().arrivals, 27) << variant;
  }
}

TEST(Blocks, NC7_AllVariantsDeliverTheSameBytes) {
  std::vector<double> first;
  for (const std::string& variant : all_variants()) {
    Rig rig(variant);
    rig.context.scheme = Scheme::mixed;
    rig.run(2);
    std::vector<double> found;
    for (int b = 0; b < rig.flow->blocks(); ++b)
      found.insert(found.end(), rig.flow->received(b), rig.flow->received(b) + rig.flow->elements(b));
    if (first.empty()) first = found;
    EXPECT_EQ(found, first) << variant;
  }
}

TEST(Blocks, NI7_TimedRunsLogNothingAndCheckNoList) {
  const BlocksContext usual = blocks_request(nlohmann::json::object(), "x").context;
  EXPECT_FALSE(usual.every);
  EXPECT_EQ(usual.detail, Detail::off);
  for (bool every : {false, true}) {
    Rig rig("taskqueue:queue");
    rig.context.every = every;
    rig.context.detail = every ? Detail::on : usual.detail;
    ClockReader reader(*rig.device, true);
    const ClockPoint before = reader.read();
    rig.run(3);
    EXPECT_EQ(rig.flow->counts().checked_lists, every ? 3 : 0);
    EXPECT_EQ(rig.flow->log().events().empty(), !every);
    EXPECT_EQ(rig.flow->device_events(ClockMap(before, reader.read())).empty(), !every);
  }
}

// ---- calls to the device -------------------------------------------------------------------------------------------

/// The calls of the CPU to its imitated devices, by name: the stream or event of each.
class Calls {
 public:
  void add(const std::string& call, const void* object) { made_[call].push_back(object); }
  void clear() { made_.clear(); }
  std::size_t count(const std::string& call) { return made_[call].size(); }
  std::set<const void*> objects(const std::string& call) { return {made_[call].begin(), made_[call].end()}; }
  Rig::Change recorded() {
    return [this](auto& now) { now.on_call = [this](const char* call, const void* object) { add(call, object); }; };
  }

 private:
  std::map<std::string, std::vector<const void*>> made_;
};

TEST(BlockCalls, NT5_TheLoopOfEventsHasNoCallThatBlocks) {
  for (const char* variant : {"taskqueue", "taskqueue:queue", "taskqueue:device", "baseline"}) {
    Calls calls;
    Rig rig(variant, "", calls.recorded());
    rig.open();
    calls.clear();
    rig.run(3);
    const std::size_t blocking = calls.count("finish") + calls.count("wait");
    const bool baseline = rig.context.variant.flow == Variant::Flow::baseline;
    EXPECT_EQ(blocking, baseline ? 2u * 3u : 0u) << variant;
    EXPECT_EQ(rig.flow->counts().tasks, baseline ? 0 : 3 * 4) << variant;
    EXPECT_EQ(rig.flow->counts().arrivals, 3 * 4) << variant;
  }
}

TEST(BlockCalls, NM1_EachBlockIsCopiedOnASeparateStreamNotTheKernels) {
  Calls calls;
  Rig rig("taskqueue:device", "", calls.recorded());
  rig.open();
  calls.clear();
  rig.run(3);
  const auto copies = calls.objects("copy"), launches = calls.objects("launch");
  EXPECT_EQ(calls.count("copy"), 3u * 2u * 4u);
  EXPECT_EQ(copies.size(), 4u);
  EXPECT_EQ(launches.size(), 1u);
  EXPECT_FALSE(copies.contains(*launches.begin()));
}

/// Blocks pack long after their copies to the device have ended: then the CPU queries the kernel's end only.
TEST(BlockCalls, NM3_CopiesAreQueriedWhileTheyRunOnly) {
  BlocksFlow* flow = nullptr;
  std::set<const void*> all, while_packing, after_copies;
  Rig rig("taskqueue:device", "", [&](auto& now) {
    now.before_block = [](int) { std::this_thread::sleep_for(std::chrono::milliseconds(50)); };
    now.on_call = [&](const char* call, const void* event) {
      if (flow == nullptr || std::string(call) != "reached") return;
      const BlocksCounts& c = flow->counts();
      all.insert(event);
      if (c.copies_in == 4 && c.tasks == 0) while_packing.insert(event);
      if (c.copies_out == 4) after_copies.insert(event);
    };
  });
  flow = &rig.open();
  rig.run(1);
  EXPECT_EQ(all.size(), 2u * 4u + 1u);
  EXPECT_EQ(while_packing.size(), 1u);
  EXPECT_EQ(after_copies, while_packing);
}

TEST(BlockSchemes, NC1_TenExchangesOfTheMixedSchemeDeliverEveryElement) {
  for (const char* variant : {"baseline:testany", "taskqueue"}) {
    Rig rig(variant);
    rig.context.scheme = Scheme::mixed;
    rig.run(10);
  }
}

TEST(Blocks, SeveralSidesOfOneProcessExchangeOnOneDevice) {
  for (const char* variant : {"baseline", "taskqueue:chunks=2", "kernels"}) {
    Rig rig(variant);
    rig.context.sides = 2;
    rig.context.scheme = Scheme::ring;
    rig.run(20);
    EXPECT_EQ(rig.flow->blocks(), 8);
  }
}

TEST(Blocks, NC4_TheCpuReadsWhatBlocksHavePacked) {
  Rig rig("baseline");
  rig.run(2);
  int sides = world_size(), rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int b = 0; b < rig.flow->blocks(); ++b)
    for (std::int64_t i = 0; i < rig.flow->elements(b); ++i)
      ASSERT_EQ(rig.flow->packed(b)[i], (2 * sides + rank) * 4 + b + 0x1p-21 * static_cast<double>(i));
}

template <class T>
void expect_packed(const BlocksFlow& flow, int sides, int rank) {
  constexpr bool whole = static_cast<T>(0.5) == 0;
  for (int b = 0; b < flow.blocks(); ++b)
    for (std::int64_t i = 0; i < flow.elements(b); ++i) {
      const std::int64_t value = (2 * sides + rank) * 4 + b, place = i % 1024;
      const double expected = static_cast<double>(value) + static_cast<double>(place) / 1024;
      ASSERT_EQ(flow.packed<T>(b)[i], static_cast<T>(whole ? 1024 * expected : expected)) << b << " " << i;
    }
}

TEST(Blocks, NC4_TheCpuReadsWhatBlocksHavePackedAsFloatsAndIntegers) {
  int sides = world_size(), rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (const char* variant : {"baseline", "taskqueue:queue,chunks=3", "taskqueue:device", "kernels"})
    for (const auto type : {device::ElementType::f32, device::ElementType::i32}) {
      Rig rig(variant);
      rig.context.workload = find_workload("S");
      rig.context.type = type;
      rig.run(2);
      EXPECT_EQ(rig.flow->elements(3), 90000);  // the workload's bytes
      if (type == device::ElementType::f32)
        expect_packed<float>(*rig.flow, sides, rank);
      else
        expect_packed<std::int32_t>(*rig.flow, sides, rank);
    }
}

// ---- the order of events -------------------------------------------------------------------------------------------

struct Logged : Rig {
  ClockReader reader;
  ClockPoint first, last;
  explicit Logged(const std::string& variant, const std::string& imitation = "")
      : Rig(variant, imitation), reader(*device, true), first(reader.read()), last(first) {
    context.detail = Detail::posting;
  }
  void look(int iterations = 1) {
    run(iterations);
    last = reader.read();
  }
  double precision() const { return 2 * ClockMap(first, last).precision_s(); }
  std::vector<BlockEvent> events(const std::string& kind) {
    std::vector<BlockEvent> found = flow->log().events(), device = flow->device_events(ClockMap(first, last));
    found.insert(found.end(), device.begin(), device.end());
    std::erase_if(found, [&](const BlockEvent& e) { return e.kind != kind || e.block < 0; });
    return found;
  }
  /// Returns the blocks by the beginning of their events.
  std::vector<int> order(const std::string& kind) {
    auto found = events(kind);
    std::sort(found.begin(), found.end(), [](auto& one, auto& other) { return one.begin_s < other.begin_s; });
    std::vector<int> blocks;
    for (const BlockEvent& e : found) blocks.push_back(e.block);
    return blocks;
  }
  BlockEvent event(const std::string& kind, int block) {
    for (const BlockEvent& e : events(kind))
      if (e.block == block) return e;
    throw Error(Exit::failed, "no event " + kind);
  }
};

TEST(BlockOrder, NB1_NB4_TheBaselinePacksThenSendsThenReceivesThenUnpacks) {
  Logged logged("baseline:testany,blocking");
  logged.look(3);
  double packed = 0, sent = 1e300, received = 0, unpacked = 1e300;
  for (int b = 0; b < logged.flow->blocks(); ++b) {
    packed = std::max(packed, logged.event("pack", b).end_s);
    sent = std::min(sent, logged.event("send", b).begin_s);
    received = std::max(received, logged.event("receive", b).end_s);
    unpacked = std::min(unpacked, logged.event("unpack", b).begin_s);
  }
  EXPECT_LE(packed, sent + logged.precision());
  EXPECT_LE(received, unpacked + logged.precision());
  std::vector<std::string> segments;
  for (const BlockEvent& e : logged.flow->log().events())
    if (e.block < 0) segments.push_back(e.kind);
  EXPECT_EQ(segments,
            (std::vector<std::string>{"launch", "post", "pack", "send", "receive", "unpack", "finish", "barrier"}));
}

/// Returns sends that began on rank 0 before its peer, which is late, had posted a receive.
int sends_before_the_peer(const std::string& variant) {
  Logged logged(variant);
  logged.context.workload.elements.assign(4, 100000);  // beyond the eager limits of MPIs
  logged.open();
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  double entered = now_s();
  logged.look();
  MPI_Bcast(&entered, 1, MPI_DOUBLE, 1, MPI_COMM_WORLD);
  const auto sends = logged.events("send");
  return static_cast<int>(std::count_if(sends.begin(), sends.end(), [&](auto& e) { return e.begin_s < entered; }));
}

TEST(BlockOrder, NB2_BlockingSendsOfTheBaselineWaitForEachOther) {
  if (world_size() != 2) GTEST_SKIP() << "needs a pair of ranks";
  const int blocking = sends_before_the_peer("baseline:blocking"), others = sends_before_the_peer("baseline");
  if (int rank = 0; MPI_Comm_rank(MPI_COMM_WORLD, &rank) == MPI_SUCCESS && rank != 0) return;
  EXPECT_EQ(blocking, 1);
  EXPECT_EQ(others, 4);
}

TEST(BlockOrder, NB3_TestanyFindsWhenEachMessageArrives) {
  Logged logged("baseline:testany");
  logged.look();
  std::set<int> blocks;
  for (const BlockEvent& e : logged.events("receive")) blocks.insert(e.block);
  EXPECT_EQ(blocks.size(), 4u);
}

TEST(BlockOrder, NI3_SegmentsAddUpToTheIteration) {
  Logged logged("taskqueue");
  logged.open();
  const double took = logged.flow->iterate(0);
  double sum = 0;
  for (const auto& [name, seconds] : logged.flow->log().segments_s()) sum += seconds;
  EXPECT_NEAR(sum, took, 0.05 * took + 20e-6);
}

TEST(BlockOrder, NT7_ABlockIsSentWhileAnotherOnePacks) {
  Logged logged("taskqueue");
  logged.context.workload = find_workload("M");
  device::host::Imitation slow;
  slow.before_block = [](int block) {
    if (block == 8) std::this_thread::sleep_for(std::chrono::milliseconds(200));
  };
  device::host::imitate(slow);
  logged.look();
  EXPECT_LT(logged.event("send", 0).begin_s, logged.event("pack", 8).end_s);
  EXPECT_LT(logged.event("send", 1).begin_s, logged.event("pack", 8).end_s);
}

TEST(BlockOrder, NT6_NoBlockUnpacksBeforeItIsTold) {
  Logged logged("taskqueue", "block_delay_us=2000");
  logged.look(3);
  for (int b = 0; b < logged.flow->blocks(); ++b)
    EXPECT_GE(logged.event("unpack", b).begin_s, logged.event("notify", b).begin_s - logged.precision());
}

/// Blocks of rank 0 pack and send from the last to the first; blocks of rank 1 have long packed.
TEST(BlockOrder, NT6_BlocksUnpackInTheOrderInWhichMessagesArrive) {
  if (world_size() != 2) GTEST_SKIP() << "needs a pair of ranks";
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  Logged logged("taskqueue");
  if (rank == 0)
    change_imitation([](device::host::Imitation& now) {
      now.before_block = [](int block) { std::this_thread::sleep_for(std::chrono::milliseconds(30 * (4 - block))); };
    });
  logged.context.on_posted = [] { device::host::imitate({}); };  // no more delays
  logged.look();
  if (rank == 0) return;
  const std::vector<int> late{3, 2, 1, 0};
  EXPECT_EQ(logged.order("receive"), late);
  EXPECT_EQ(logged.order("unpack"), late);
}

/// Sends when all blocks have posted their tasks, the last block first, before the CPU reads them.
std::vector<int> sends_of_pending_tasks(const std::string& variant) {
  Logged logged(variant);
  device::host::Imitation slow;
  slow.before_block = [](int block) { std::this_thread::sleep_for(std::chrono::milliseconds(20 * (4 - block))); };
  device::host::imitate(slow);
  logged.context.on_posted = [] {
    device::host::imitate({});  // no more delays
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
  };
  logged.look();
  return logged.order("send");
}

TEST(BlockOrder, NT8_AListIsServedInItsOrderAndChannelsByTheLowestBlock) {
  EXPECT_EQ(sends_of_pending_tasks("taskqueue:queue"), (std::vector<int>{3, 2, 1, 0}));
  EXPECT_EQ(sends_of_pending_tasks("taskqueue:channel"), (std::vector<int>{0, 1, 2, 3}));
}

TEST(BlockOrder, NX5_NoMoreBlocksPackAtOnceThanAllowed) {
  for (int most : {1, 2}) {
    Logged logged("taskqueue:throttle=" + std::to_string(most), "block_delay_us=300");
    logged.look(3);
    const auto packs = logged.events("pack");
    for (const BlockEvent& one : packs) {
      int at_once = 0;
      for (const BlockEvent& other : packs)
        at_once += other.begin_s <= one.begin_s && one.begin_s < other.end_s ? 1 : 0;
      EXPECT_LE(at_once, most);
    }
  }
}

/// Returns true where a send began before any block had packed its last chunk, by more than the clocks may differ.
bool sends_before_a_block_is_packed(Logged& logged) {
  logged.look();
  double first = 1e300, packed = 1e300;
  for (const BlockEvent& e : logged.events("send")) first = std::min(first, e.begin_s);
  for (const BlockEvent& e : logged.events("post")) packed = std::min(packed, e.begin_s);
  return anywhere(first + logged.precision() < packed, MPI_COMM_WORLD);
}

TEST(BlockOrder, NX2_AChunkIsSentBeforeAnyBlockIsPackedAndAWholeBlockIsNot) {
  const auto sent = [](const std::string& variant, int attempts) {
    Logged logged(variant);
    logged.context.workload.elements.assign(4, 400000);
    logged.open();
    for (int attempt = 0; attempt < attempts; ++attempt)
      if (sends_before_a_block_is_packed(logged)) return true;
    return false;
  };
  EXPECT_TRUE(sent("taskqueue:chunks=16", 100));  // the CPU may be late, as any thread of the system
  EXPECT_FALSE(sent("taskqueue", 10));
}

TEST(BlockOrder, NM4_AMessageMayArriveBeforeTheCopyToTheDevice) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (world_size() % 2 != 0) GTEST_SKIP() << "needs pairs of ranks";
  Rig rig("taskqueue:device", rank % 2 == 0 ? "delay_us=60000" : "");
  bool early = false;
  std::int64_t exchanges = 0;
  rig.context.on_posted = [&] { ++exchanges; };
  rig.context.on_arrival = [&](BlocksFlow& flow, int, int) {
    early |= flow.counts().copies_in < exchanges * flow.blocks();
    return true;
  };
  rig.run(5);
  EXPECT_TRUE(early || rank % 2 == 1);
}

TEST(BlockOrder, NC10_NoRankBeginsAnExchangeBeforeAllHaveEndedTheLastOne) {
  Logged logged("taskqueue", "block_delay_us=500");
  logged.open();
  double ended = 0;
  for (int i = 0; i < 20; ++i) {
    double begin = now_s(), latest = 0;
    MPI_Allreduce(&ended, &latest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    EXPECT_GE(begin, latest);
    logged.flow->iterate(i);
    for (const BlockEvent& e : logged.flow->log().events())
      if (e.kind == "barrier") ended = e.begin_s;
  }
}

TEST(BlockClock, NI2_LaterAnswersLieOnTheLine) {
  Rig rig("baseline");
  ClockReader reader(*rig.device, true);
  const ClockPoint first = reader.read();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const ClockMap map(first, reader.read());
  for (int i = 0; i < 20; ++i) {
    const ClockPoint point = reader.read(5);
    EXPECT_NEAR(map.seconds(static_cast<std::uint64_t>(point.ticks)), point.cpu_s,
                2 * map.precision_s() + point.precision_s + 1e-7);
  }
}

TEST(BlockClock, NI2_TheLineFollowsAClockThatRunsFasterThanItsNominalRate) {
  constexpr double rate = 1.05;
  Rig rig("baseline", "", [](auto& now) { now.clock_rate = rate; });
  ClockReader reader(*rig.device, true);
  const double hz = rig.device->info().clock_hz;
  const ClockPoint first = reader.read();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const ClockMap map(first, reader.read());
  EXPECT_NEAR(map.seconds_per_tick() * hz * rate, 1, 0.01);
  for (int i = 0; i < 20; ++i) {
    const double before = now_s();
    const ClockPoint point = reader.read_once();
    const double mapped = map.seconds(static_cast<std::uint64_t>(point.ticks)), precision = 2 * map.precision_s();
    EXPECT_GE(mapped, before - precision);
    EXPECT_LE(mapped, now_s() + precision);
    EXPECT_GT(first.cpu_s + (point.ticks - first.ticks) / hz, now_s() + precision);  // a line of the nominal rate
  }
}

TEST(BlockClock, NI4_PostingIsTimedOnlyWhereItIsAskedFor) {
  for (Detail detail : {Detail::off, Detail::on, Detail::posting}) {
    Logged logged("taskqueue");
    logged.context.detail = detail;
    logged.look();
    EXPECT_EQ(logged.events("post").size(), detail == Detail::posting ? 4u : 0u);
    EXPECT_EQ(logged.events("pack").size(), detail == Detail::off ? 0u : 4u);
    EXPECT_EQ(logged.flow->log().events().empty(), detail == Detail::off);
  }
}

// ---- failures ------------------------------------------------------------------------------------------------------

/// The error text of `work`. Barriers of others would wait indefinitely: one rank only.
std::string failure(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(BlockFaults, NC6_AWrongElementEndsTheRunAndNamesTheBlock) {
  if (world_size() > 1) GTEST_SKIP() << "a rank that fails leaves the others waiting";
  for (const char* variant : {"taskqueue", "baseline:testany", "kernels"}) {
    Rig rig(variant);
    rig.context.on_arrival = [](BlocksFlow& flow, int block, int) {
      if (block == 2) flow.received(2)[7] = -5;
      return true;
    };
    const std::string error = failure([&] { rig.run(1); });
    EXPECT_NE(error.find("block 2 received -5 instead of"), std::string::npos) << variant << ": " << error;
    EXPECT_NE(error.find("in element 7"), std::string::npos) << error;
  }
}

TEST(BlockFaults, NT6_ABlockThatIsNeverToldEndsTheRunWithTheStateOfAll) {
  if (world_size() > 1) GTEST_SKIP() << "a rank that fails leaves the others waiting";
  for (const char* variant : {"taskqueue", "taskqueue:queue,device", "kernels"}) {
    Rig rig(variant);
    rig.context.limit_s = 0.2;
    rig.context.on_arrival = [](BlocksFlow&, int block, int) { return block != 1; };
    const double begin = now_s();
    const std::string error = failure([&] {
      rig.run(1);
      rig.flow.reset();
    });
    EXPECT_LT(now_s() - begin, 10) << variant;
    if (rig.context.variant.flow == Variant::Flow::kernels) continue;  // no report: the kernel is not launched
    EXPECT_NE(error.find("block 1: packed 1, sent 1 to rank 0, received 1 from rank 0, notified 0"), std::string::npos)
        << variant << ": " << error;
  }
}

TEST(BlockFaults, NP2_MoreBlocksThanTheDeviceHoldsAreRefusedWithNumbers) {
  Rig rig("taskqueue", "resident=3");
  const std::string error = failure([&] { rig.open(); });
  EXPECT_NE(error.find("all 4 blocks of 16 threads"), std::string::npos) << error;
  EXPECT_NE(error.find("holds 3"), std::string::npos) << error;
  Rig baseline("baseline", "resident=3");
  baseline.run(1);
}

TEST(BlockRequest, BadFieldsAreRefusedByName) {
  using Json = nlohmann::json;
  for (const Json& bad :
       {Json{{"workload", "XXL"}}, Json{{"variant", "taskq"}}, Json{{"threads", 0}}, Json{{"threads", 5000}},
        Json{{"bytes", {7}}}, Json{{"bytes", {1 << 30}}}, Json{{"scheme", "star"}}, Json{{"sides", 0}},
        Json{{"detail", "much"}}, Json{{"type", "long"}}, Json{{"check", "none"}}, Json{{"iterations", 0}},
        Json{{"limit_s", 0}}, Json{{"timeline", true}, {"detail", "off"}}, Json{{"wat", 1}}, Json{{"bytes", "8"}}})
    EXPECT_THROW(blocks_request(bad, "x"), UsageError) << bad;
}

}  // namespace
}  // namespace haloscope
