// Choices of transports that one program leaves to the next: their files, that they return whole, and their effect.
#include "haloscope/transport/cached_choice.hpp"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "allocation_counter.hpp"
#include "haloscope/comm/text.hpp"
#include "haloscope/haloscope.hpp"
#include "haloscope/imitated.hpp"
#include "haloscope/transport/automatic.hpp"
#include "random_case.hpp"

namespace haloscope::test {
namespace {

/// An empty folder of all ranks in which choices are cached for a while.
class CacheFolder {
 public:
  CacheFolder() : path_(make()), setting_("HALOSCOPE_CACHE", path_.c_str()) {}
  ~CacheFolder() {
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank() == 0) std::filesystem::remove_all(path_);
  }
  const std::string& path() const { return path_; }
  std::ptrdiff_t files() const {
    MPI_Barrier(MPI_COMM_WORLD);
    const auto count = std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator());
    MPI_Barrier(MPI_COMM_WORLD);
    return count;
  }

 private:
  static std::string make() {
    std::string path = std::filesystem::temp_directory_path() / "haloscope-test-XXXXXX";
    if (world_rank() == 0 && mkdtemp(path.data()) == nullptr) path.clear();
    return text_of_rank(MPI_COMM_WORLD, 0, path);
  }
  std::string path_;
  Environment setting_;
};

const CachedChoice some{"shared", "persistent", "2026-11-23T09:30:00Z"};

TEST(CachedChoice, ComesBackToThoseWhoAskWithTheSameKey) {
  const CacheFolder cache;
  const std::string mine = "rank " + std::to_string(world_rank());
  const ChoiceFile file(mine);
  EXPECT_EQ(file.read(), std::nullopt);
  file.write(some);
  EXPECT_EQ(ChoiceFile(mine).read(), some);
  EXPECT_EQ(ChoiceFile(mine + " of another machine").read(), std::nullopt);
  file.write({"p2p", "shared", some.since});
  EXPECT_EQ(file.read()->chosen, "p2p");
  EXPECT_EQ(cache.files(), world_size());
  file.remove();
  EXPECT_EQ(file.read(), std::nullopt);
}

TEST(CachedChoice, LiesWhereTheEnvironmentSays) {
  const Environment home("HOME", "/h"), cache("XDG_CACHE_HOME", "/x"), own("HALOSCOPE_CACHE", "/o");
  EXPECT_EQ(ChoiceFile("a").path().rfind("/o/auto-", 0), 0u);
  const Environment unset("HALOSCOPE_CACHE", nullptr);
  EXPECT_EQ(ChoiceFile("a").path().rfind("/x/haloscope/auto-", 0), 0u);
  const Environment none("XDG_CACHE_HOME", nullptr);
  EXPECT_EQ(ChoiceFile("a").path().rfind("/h/.cache/haloscope/auto-", 0), 0u);
  EXPECT_NE(ChoiceFile("a").path(), ChoiceFile("b").path());
  const Environment empty("HALOSCOPE_CACHE", "");
  EXPECT_EQ(ChoiceFile("a").path(), "");
}

TEST(CachedChoice, WhatCannotBeReadOrWrittenIsNotThere) {
  const CacheFolder cache;
  const std::string in_the_way = cache.path() + "/file" + std::to_string(world_rank());
  std::ofstream(in_the_way) << "text";
  for (const std::string& folder : {std::string(), in_the_way, std::string("/proc/no such folder")}) {
    const Environment setting("HALOSCOPE_CACHE", folder.c_str());
    const ChoiceFile file("a");
    file.write(some);
    EXPECT_EQ(file.read(), std::nullopt) << folder;
    file.remove();
  }
  const ChoiceFile file(in_the_way);
  const std::string time = "\n2026-11-23T09:30:00Z\n";
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("\n\n\n\n"), in_the_way, in_the_way + "\np2p\n" + time,
        in_the_way + "\n\np2p" + time, in_the_way + "\np2p\nrma-fence\nyesterday\n",
        in_the_way + "\np2p\nrma-fence" + time + "more\n", "another\np2p\nrma-fence" + time}) {
    std::ofstream(file.path()) << text;
    EXPECT_EQ(file.read(), std::nullopt) << text;
  }
}

/// The contents of a file that stores `some` for a key.
std::string text_of(const ChoiceFile& file) {
  std::ostringstream text;
  text << std::ifstream(file.path()).rdbuf();
  return text.str();
}

TEST(CachedChoice, ThatOthersMayHaveMadeIsNotThere) {
  const CacheFolder cache;
  const ChoiceFile file("rank " + std::to_string(world_rank()));
  file.write(some);
  const std::string whole = text_of(file), elsewhere = cache.path() + "/other" + std::to_string(world_rank());
  const auto spoilt = [&](const char* how, const auto& spoil) {
    file.remove();
    std::ofstream(file.path()) << whole;
    ASSERT_EQ(file.read(), some);
    spoil();
    EXPECT_EQ(file.read(), std::nullopt) << how;
    file.write(some);
    EXPECT_EQ(file.read(), some) << how;
    EXPECT_EQ(text_of(file), whole) << how;
  };
  const auto holds = [&](const std::string& text) { return [&file, text] { std::ofstream(file.path()) << text; }; };
  spoilt("a pipe", [&] {
    file.remove();
    ASSERT_EQ(mkfifo(file.path().c_str(), 0600), 0);
  });
  spoilt("a link", [&] {
    std::filesystem::rename(file.path(), elsewhere);
    std::filesystem::create_symlink(elsewhere, file.path());
  });
  spoilt("a file that its group can write", [&] { ASSERT_EQ(chmod(file.path().c_str(), 0620), 0); });
  if (geteuid() == 0) spoilt("a file of another user", [&] { ASSERT_EQ(chown(file.path().c_str(), 12345, 0), 0); });
  spoilt("a large file", holds(whole + std::string(64 << 10, ' ')));
  spoilt("lists in lists", holds(std::string(300000, '[') + std::string(300000, ']')));
  std::string steering = whole;
  steering.replace(steering.find(some.since), 4, "\x1b[2J");
  spoilt("a time that steers a terminal", holds(steering));
  EXPECT_TRUE(std::filesystem::is_regular_file(elsewhere));  // nothing was written through the link
}

TEST(CachedChoice, LiesInAFolderThatOthersCannotLookInto) {
  const CacheFolder cache;
  const std::string folder = cache.path() + "/new" + std::to_string(world_rank());
  const Environment setting("HALOSCOPE_CACHE", folder.c_str());
  const mode_t before = umask(0);
  const ChoiceFile file("a");
  file.write(some);
  umask(before);
  EXPECT_EQ(std::filesystem::status(folder).permissions(), std::filesystem::perms::owner_all);
  EXPECT_EQ(std::filesystem::status(file.path()).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST(CachedChoice, IsReadWholeWhileOthersWriteIt) {
  const CacheFolder cache;  // of all ranks
  const CachedChoice other{"p2p", std::string(3000, 'x'), some.since};
  ChoiceFile("a").write(some);
  MPI_Barrier(MPI_COMM_WORLD);
  std::vector<std::thread> writers;
  for (const CachedChoice& choice : {some, other})
    writers.emplace_back([&choice = choice == some ? some : other] {
      for (int i = 0; i < 200; ++i) ChoiceFile("a").write(choice);
    });
  for (int i = 0; i < 200; ++i) {
    const auto read = ChoiceFile("a").read();
    EXPECT_TRUE(read == some || read == other);
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(cache.files(), 1);  // no file is left over
}

// ---- cached choices in links ---------------------------------------------------------------------------------------

/// A link by `auto` that remembers, or not, on a small cube.
struct Remembering {
  Rig rig;
  LinkContext context;
  bool without_memory = false;  // when the link ends

  explicit Remembering(bool remembers = true) : rig(cube()), context(rig.context()) { context.remembers = remembers; }
  static Case cube() {
    Case c;
    c = periodic_cube(0, c);
    c.yield = true;
    return c;
  }
  AutoLink& open(const char* strategy) {
    rig.link = open_link(Strategy(strategy), context);
    return dynamic_cast<AutoLink&>(*rig.link);
  }
  /// Exchanges until the choice is in use, then ends the link. Returns its report.
  std::string decide(const char* strategy, int* chosen = nullptr) {
    AutoLink& link = open(strategy);
    const std::int64_t most = TrialLimits{}.rounds * (link.deadline() + 4);
    for (std::int64_t e = 0; link.chosen() < 0 && e < most; ++e) rig.exchange(static_cast<int>(e % 2));
    if (chosen) *chosen = link.chosen();
    const std::string report = link.report();
    refuse_allocations(without_memory);
    rig.link.reset();
    refuse_allocations(false);
    MPI_Barrier(MPI_COMM_WORLD);
    return report;
  }
  bool has_messages() const { return !rig.plan.messages.empty(); }
};

bool names_a_kept_choice(const std::string& report) { return has_part(report, "was chosen on 20"); }

TEST(CachedChoice, TheNextLinkTriesItAgainstTheSecondBestAlone) {
  const CacheFolder cache;
  Remembering one;
  if (!one.has_messages()) GTEST_SKIP() << "a lone rank has no message";
  EXPECT_FALSE(names_a_kept_choice(one.decide("auto")));
  ASSERT_EQ(cache.files(), 1);
  const ChoiceFile file(text_of_rank(MPI_COMM_WORLD, 0, key_of(one.context)));
  const auto kept = file.read();
  ASSERT_TRUE(kept);
  Remembering another;
  EXPECT_EQ(another.open("auto").open(), 2);
  EXPECT_EQ(another.rig.link->report().find("auto: " + kept->chosen + " until it has decided"), 0u);
  MPI_Barrier(MPI_COMM_WORLD);
  const std::string report = another.decide("auto");
  EXPECT_PART(report, kept->chosen + " was chosen on " + kept->since);
  EXPECT_PART(report, kept->second);
}

TEST(CachedChoice, IsForgottenWhereTheSecondBestIsFasterNow) {
  const CacheFolder cache;
  Remembering one;
  if (!one.has_messages()) GTEST_SKIP() << "a lone rank has no message";
  const ChoiceFile file(text_of_rank(MPI_COMM_WORLD, 0, key_of(one.context)));
  for (const auto& [chosen, second] : {std::pair{"p2p", "shared:packed"}, {"shared:packed", "p2p"}}) {
    if (world_rank() == 0) file.write({chosen, second, some.since});
    MPI_Barrier(MPI_COMM_WORLD);
    int winner = -1;
    const std::string report = one.decide("auto", &winner);
    EXPECT_TRUE(names_a_kept_choice(report)) << report;
    EXPECT_EQ(file.read().has_value(), winner == 0) << report;
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST(CachedChoice, IsLeftAloneByLinksThatDoNotRememberAndByFreshOnes) {
  const CacheFolder cache;
  Remembering one, measured(false);
  if (!one.has_messages()) GTEST_SKIP() << "a lone rank has no message";
  EXPECT_FALSE(names_a_kept_choice(measured.decide("auto:quick")));
  EXPECT_EQ(cache.files(), 0);
  one.decide("auto:quick");
  EXPECT_EQ(cache.files(), 1);
  EXPECT_FALSE(names_a_kept_choice(measured.decide("auto:quick")));
  EXPECT_FALSE(names_a_kept_choice(one.decide("auto:fresh,quick")));
  EXPECT_TRUE(names_a_kept_choice(one.decide("auto:quick")));
}

TEST(CachedChoice, IsNotKeptWhereALinkEndsWithoutMemory) {
  const CacheFolder cache;
  Remembering one;
  if (!one.has_messages()) GTEST_SKIP() << "a lone rank has no message";
  one.without_memory = true;
  one.decide("auto:quick");
  EXPECT_EQ(cache.files(), 0);
  one.without_memory = false;
  one.decide("auto:quick");
  EXPECT_EQ(cache.files(), 1);
}

TEST(CachedChoice, OfTransportsThatAreNotHereDoesNotCount) {
  const CacheFolder cache;
  Remembering one;
  if (!one.has_messages()) GTEST_SKIP() << "a lone rank has no message";
  const ChoiceFile file(text_of_rank(MPI_COMM_WORLD, 0, key_of(one.context)));
  const std::array<CachedChoice, 3> odd{{{"carrier-pigeon", "p2p", "then"},
                                         {"p2p", "p2p", "then"},
                                         {"shared", "p2p", "then"}}};  // fields in private memory
  for (const CachedChoice& choice : odd) {
    if (world_rank() == 0) file.write(choice);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_GT(one.open("auto").open(), 2) << choice.chosen;
    EXPECT_FALSE(names_a_kept_choice(one.rig.link->report()));
    one.rig.link.reset();
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST(CachedChoice, ExchangesRememberAndKeysTellThemApart) {
  const CacheFolder cache;
  const Grid<2> grid(MPI_COMM_WORLD, {.cells = {16, 17}, .periodic = {true, true}});
  Field<double, 2> u(grid, {.halo = 1}), v(grid, {.halo = 2});
  for (const bool again : {false, true})
    for (const Field<double, 2>* field : {&u, &v}) {
      Exchange exchange = make_exchange(grid, {*field});
      const bool tries = has_part(exchange.report(), "until");
      EXPECT_EQ(names_a_kept_choice(exchange.report()), again && tries);
      for (int e = 0; e < 1500 && has_part(exchange.report(), "until"); ++e) exchange.exchange();
      EXPECT_EQ(has_part(exchange.report(), "chose"), tries) << exchange.report();
    }
}

TEST(CachedChoice, ExchangesOfDevicesKeepTheirs) {
  if (world_size() == 1) GTEST_SKIP() << "a lone rank has no message";
  const CacheFolder cache;
  const Grid<2> grid(MPI_COMM_WORLD, {.cells = {8 * world_size(), 9}, .periodic = {true, true}});
  const std::int64_t row = grid.cells()[0] + 2, points = row * (grid.cells()[1] + 2);
  auto* const memory = static_cast<double*>(imitated::allocate(static_cast<std::size_t>(points) * sizeof(double)));
  for (const bool kept : {false, true}) {
    Exchange halo = make_exchange(grid, {view<double, 2>(grid, {memory + row + 1}, row, 0, 1)}, "auto:quick");
    for (int n = 0; n < 80; ++n) halo.exchange();
    EXPECT_PART(halo.report(), "auto: chose ");
    EXPECT_EQ(has_part(halo.report(), "was chosen on"), kept) << halo.report();
  }
  MPI_Barrier(MPI_COMM_WORLD);
  imitated::release(memory);
}

}  // namespace
}  // namespace haloscope::test
