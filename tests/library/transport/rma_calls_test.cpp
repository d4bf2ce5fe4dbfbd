// One-sided transports make the calls that characterise each form of synchronisation, counted in front of MPI.
#include <algorithm>

#include "haloscope/error.hpp"
#include "haloscope/extend/candidate.hpp"
#include "pmpi_counter.hpp"
#include "rma_cases.hpp"

namespace haloscope::test {
namespace {

// ---- the calls of each form -----------------------------------------------------------------------------------------

/// The calls of `exchanges` exchanges of an open link, without opening and closing it.
struct Loop {
  Calls before, after;
  std::int64_t messages = 0, bytes = 0;
  std::int64_t operator()(std::int64_t Calls::*which) const { return after.*which - before.*which; }
};

constexpr int exchanges = 6;

Loop loop_of(Rig& rig) {
  Loop loop;
  const Sent sent_before = sent();
  loop.before = calls();
  for (int i = 0; i < exchanges; ++i) rig.exchange(i % 2);
  loop.after = calls();
  loop.messages = sent().messages - sent_before.messages;
  loop.bytes = sent().bytes - sent_before.bytes;
  return loop;
}

Loop loop_of(const Case& c) {
  Rig rig(c);
  return loop_of(rig);
}

TEST(RmaPscw, SC3_NoCollectiveCallAndNoMessageInTheLoop) {
  for (const WordList& options : sampled_lists("rma-pscw"))
    for (const Case& c : patterns(uneven(rma_case("rma-pscw", options)))) {
      const Loop loop = loop_of(c);
      EXPECT_EQ(loop(&Calls::collectives), 0) << describe(c);
      EXPECT_EQ(loop.messages, 0) << describe(c);
      EXPECT_EQ(loop(&Calls::puts) + loop(&Calls::gets) > 0, world_size() > 1) << describe(c);
    }
}

std::int64_t fences(const WordList& options) {
  Case c = row(rma_case("rma-fence", options), true);
  c.spec.pattern = Pattern::direct;
  return loop_of(c)(&Calls::fences);
}

TEST(RmaFence, SD4_FenceCountHalvesWithOneWindowForBothLines) {
  for (const char* way : {"put", "get"}) {
    EXPECT_EQ(fences({way, "single"}), 2 * exchanges);
    EXPECT_EQ(fences({way, "per-message"}), world_size() > 1 ? 2 * fences({way, "single"}) : 0);
  }
}

TEST(RmaFence, SD5_FencesOfSplitWindowsJoinARankAndItsPeersOnly) {
  for (const char* way : {"put", "get"}) {
    calls().largest_fence_group = 0;
    Rig rig(row(rma_case("rma-fence", {way, "split"}), false));
    const Loop loop = loop_of(rig);
    EXPECT_LE(calls().largest_fence_group, 3);
    EXPECT_EQ(calls().largest_fence_group,
              std::min(world_size(), world_size() > 2 && rig.plan.messages_out() > 0 ? 3 : 2));
    EXPECT_EQ(loop(&Calls::fences), 2 * exchanges * (1 + rig.plan.messages_out()) * rig.plan.rounds);
  }
}

TEST(RmaLock, SC4_GetNeedsNoBarrierAndLocksEachAccess) {
  const Loop loop = loop_of(row(rma_case("rma-lock", {"get"}), true));
  const std::int64_t accesses = world_size() > 1 ? 2 * exchanges : 0;
  EXPECT_EQ(loop(&Calls::barriers), 0);
  EXPECT_EQ(loop(&Calls::collectives), 0);
  EXPECT_EQ(loop(&Calls::puts), 0);
  EXPECT_EQ(loop(&Calls::gets), accesses);
  EXPECT_EQ(loop(&Calls::locks), accesses);
  EXPECT_EQ(loop(&Calls::unlocks), accesses);
  EXPECT_EQ(loop.bytes, 0) << "messages that say 'ready' and 'read' are empty";
  EXPECT_EQ(loop.messages, 2 * accesses);
}

TEST(RmaLock, SC4_BarriersAroundTheGetsReplaceAllSignals) {
  for (const char* transport : {"rma-lock", "rma-lockall"})
    for (const bool periodic : {false, true}) {
      Rig rig(row(rma_case(transport, {"barrier"}), periodic));
      const Loop loop = loop_of(rig);
      EXPECT_EQ(loop(&Calls::barriers), 2 * exchanges * rig.plan.rounds) << transport;
      EXPECT_EQ(loop(&Calls::collectives), loop(&Calls::barriers)) << transport;
      EXPECT_EQ(loop(&Calls::gets), exchanges * rig.plan.messages_out()) << transport;
      EXPECT_EQ(loop.messages + loop(&Calls::puts) + loop(&Calls::atomics), 0) << transport;
    }
}

TEST(RmaLock, SC4_BarriersWithPutsOrSignalsAreRefused) {
  for (const char* transport : {"rma-lock", "rma-lockall"}) {
    EXPECT_PART(error_of([&] { Strategy(std::string("ordered/") + transport + ":put,barrier"); }), "receiver fetches");
    EXPECT_PART(error_of([&] { Strategy(std::string("ordered/") + transport + ":flag,barrier"); }), "drop one of them");
  }
}

TEST(RmaLock, SC4_FlagsReplaceTheEmptyMessages) {
  for (const char* transport : {"rma-lock", "rma-lockall"}) {
    const Loop loop = loop_of(row(rma_case(transport, {"get", "flag"}), true));
    EXPECT_EQ(loop.messages, 0);
    EXPECT_EQ(loop(&Calls::collectives), 0);
    EXPECT_EQ(loop(&Calls::atomics), world_size() > 1 ? 4 * exchanges : 0);
  }
}

TEST(RmaLockAll, SC8_OneLockAllAndOneUnlockAllPerWindow) {
  for (const WordList& options : sampled_lists("rma-lockall")) {
    const Calls before = calls();
    {
      Rig rig(row(rma_case("rma-lockall", options), true));
      const Loop loop = loop_of(rig);
      for (auto which : {&Calls::lock_alls, &Calls::unlock_alls, &Calls::locks}) EXPECT_EQ(loop(which), 0);
      EXPECT_EQ(loop(&Calls::collectives), loop(&Calls::barriers));
    }
    const std::int64_t windows = calls().windows_allocated - before.windows_allocated;
    EXPECT_EQ(calls().lock_alls - before.lock_alls, windows);
    EXPECT_EQ(calls().unlock_alls - before.unlock_alls, windows);
    const bool single = std::find(options.begin(), options.end(), "single") != options.end();
    const bool flag = std::find(options.begin(), options.end(), "flag") != options.end();
    if (single) {
      EXPECT_EQ(windows, flag ? 2 : 1);
    }
  }
}

TEST(RmaLockAll, SC9_RequestBasedGetsRunUnderLockAllAndNeverBetweenFences) {
  const Loop loop = loop_of(row(rma_case("rma-lockall", {"rget"}), true));
  EXPECT_EQ(loop(&Calls::request_gets), world_size() > 1 ? 2 * exchanges : 0);
  EXPECT_EQ(loop(&Calls::gets) + loop(&Calls::puts) + loop(&Calls::fences), 0);
  EXPECT_PART(error_of([&] { Strategy("ordered/rma-fence:rget"); }), "rma-lockall:rget");
}

// ---- hints, memory model, memory ------------------------------------------------------------------------------------

TEST(Rma, SF1_PlainGivesNeitherHintsNorAssertions) {
  for (const char* transport : {"rma-fence", "rma-pscw", "rma-lock", "rma-lockall"})
    for (bool plain : {false, true}) {
      const Calls before = calls();
      const WordList flags = std::string(transport).starts_with("rma-lock") ? WordList{"flag"} : WordList{};
      WordList options = flags;
      if (plain) options.push_back("plain");
      loop_of(row(rma_case(transport, options), true));
      const std::int64_t made = calls().windows_allocated - before.windows_allocated;
      EXPECT_EQ(calls().hinted_windows - before.hinted_windows, plain ? 0 : made) << transport;
      EXPECT_EQ(calls().asserted - before.asserted > 0,
                !plain && (world_size() > 1 || calls().fences > before.fences || calls().lock_alls > before.lock_alls))
          << transport;
    }
}

/// The hints and assertions of a transport, without those that depend on sizes.
struct Promises {
  const char* transport;
  WordList options;
  std::set<std::string> hints;
  int assertions;
};

TEST(Rma, SF1_EachFormPromisesWhatItKeeps) {
  const int fence = MPI_MODE_NOPRECEDE | MPI_MODE_NOSTORE | MPI_MODE_NOSUCCEED | MPI_MODE_NOPUT;
  const std::set<std::string> ordering{"accumulate_ordering", "same_disp_unit"};
  const std::set<std::string> flags{"accumulate_ordering", "accumulate_ops", "same_disp_unit"};
  const Promises all[] = {{"rma-fence", {"put"}, {"no_locks", "same_disp_unit"}, fence},
                          {"rma-fence", {"get"}, {"no_locks", "same_disp_unit"}, fence},
                          {"rma-pscw", {"put"}, {"no_locks", "same_disp_unit"}, MPI_MODE_NOSTORE},
                          {"rma-pscw", {"get"}, {"no_locks", "same_disp_unit"}, MPI_MODE_NOPUT},
                          {"rma-lock", {"put"}, ordering, MPI_MODE_NOCHECK},
                          {"rma-lock", {"get", "barrier"}, ordering, MPI_MODE_NOCHECK},
                          {"rma-lock", {"get", "flag"}, flags, MPI_MODE_NOCHECK},
                          {"rma-lockall", {"put"}, ordering, MPI_MODE_NOCHECK},
                          {"rma-lockall", {"get", "flag"}, flags, MPI_MODE_NOCHECK}};
  for (const Promises& expected : all)
    for (const bool plain : {false, true}) {
      WordList options = expected.options;
      if (plain) options.push_back("plain");
      calls() = {};
      loop_of(row(rma_case(expected.transport, options), true));
      const Case described = rma_case(expected.transport, options);
      calls().hints.erase("same_size");
      EXPECT_EQ(calls().hints, plain ? std::set<std::string>{} : expected.hints) << describe(described);
      if (world_size() > 1) {
        EXPECT_EQ(calls().assertions, plain ? 0 : expected.assertions) << describe(described);
      }
    }
}

/// Every access of a rank to its own segment of a window is in an epoch (locks) or next to MPI_Win_sync (lock_all).
TEST(Rma, SF2_EachLocalAccessIsSynchronised) {
  for (const WordList& options : {WordList{"put", "separate"}, {"get", "separate"}, {"barrier", "separate"}})
    for (const std::string transport : {"rma-lock", "rma-lockall"}) {
      Rig rig(row(rma_case(transport, options), true));
      const Loop loop = loop_of(rig);
      const std::int64_t accesses = exchanges * rig.plan.messages_out();  // as many segments as messages each way
      EXPECT_EQ(loop(transport == "rma-lock" ? &Calls::own_locks : &Calls::syncs), accesses) << transport;
    }
}

TEST(Rma, SF2_TheMemoryModelThatMpiNamesIsReported) {
  void* data = nullptr;
  MPI_Win window;
  MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&data), &window);
  int* model = nullptr;
  int known = 0;
  MPI_Win_get_attr(window, MPI_WIN_MODEL, static_cast<void*>(&model), &known);
  ASSERT_TRUE(known);
  const std::string name = *model == MPI_WIN_UNIFIED ? "unified" : "separate";
  MPI_Win_free(&window);
  for (const char* transport : {"rma-fence", "rma-pscw", "rma-lock", "rma-lockall"})
    EXPECT_PART(Rig(row(rma_case(transport, {}), true)).link->report(), "memory model " + name);
}

TEST(Rma, SF3_AllWindowsHaveMemoryFromMpi) {
  for (const char* transport : {"rma-fence", "rma-pscw", "rma-lock", "rma-lockall"})
    for (const WordList& options : sampled_lists(transport)) {
      const Calls before = calls();
      const Case c = row(rma_case(transport, options), true);
      Rig rig(c);
      EXPECT_EQ(calls().windows_created, before.windows_created);
      if (!rig.plan.messages.empty()) {
        EXPECT_GT(calls().windows_allocated, before.windows_allocated);
      }
    }
}

}  // namespace
}  // namespace haloscope::test
