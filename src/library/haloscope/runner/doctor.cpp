#include "haloscope/doctor.hpp"

#include <sys/statvfs.h>
#include <unistd.h>

#include <functional>
#include <set>

#include "haloscope/comm/cores.hpp"
#include "haloscope/comm/gather.hpp"
#include "haloscope/comm/handles.hpp"
#include "haloscope/comm/huge_pages.hpp"
#include "haloscope/comm/text.hpp"
#include "haloscope/error.hpp"
#include "haloscope/exchange.hpp"
#include "haloscope/extend/agree.hpp"
#include "haloscope/extend/topology.hpp"
#include "haloscope/field/memory.hpp"

namespace haloscope {
namespace {

constexpr double room_share = 0.05;  // of a node's memory, free in /dev/shm: containers have 64 MiB by default
const char* const bind_ranks =
    "bind each rank: -bind-to core (MPICH, Intel MPI), --bind-to core (Open MPI), --cpu-bind=cores (srun)";

std::string count_of(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

/// Checks the cores that the ranks of this node may use, separately for each rank.
Diagnosis check_pinning(MPI_Comm comm) {
  Diagnosis check{.name = "pinning", .found = {}, .remedy = {}};
  BriefComm node;
  CHECK_MPI(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, node.address()));
  const std::vector<int>& mine = allowed_cores();
  const auto of_ranks = lists_of_all(node.get(), {mine.begin(), mine.end()});
  std::set<std::int64_t> used;
  std::size_t sum = 0;
  for (const auto& cores : of_ranks) {
    used.insert(cores.begin(), cores.end());
    sum += cores.size();
  }
  const std::size_t ranks = of_ranks.size(), there = static_cast<std::size_t>(cores_of_node());
  check.found =
      count_of(ranks, "rank") + " of a node on " + count_of(used.size(), "core") + " of " + std::to_string(there);
  if (ranks > there) {
    check.verdict = Verdict::warning;
    check.found += ": they take turns, and waiting is slow";
    check.remedy = "start at most " + count_of(there, "rank") + " a node, or ask the batch system for more cores";
  } else if (used.size() < ranks) {
    check.verdict = Verdict::broken;
    check.remedy = bind_ranks;
  } else if (sum > used.size()) {
    check.verdict = Verdict::warning;
    check.found += ", which some of them share: they are not pinned apart";
    check.remedy = bind_ranks;
  }
  return check;
}

Diagnosis check_room(MPI_Comm) {
  struct statvfs room = {};
  if (statvfs("/dev/shm", &room) != 0)
    return {"/dev/shm", Verdict::not_here, "this node has none", "use strategies without 'shared'"};
  const double free = static_cast<double>(room.f_bavail) * static_cast<double>(room.f_frsize);
  const double all = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  const std::string text = std::to_string(static_cast<std::int64_t>(free) >> 20) + " MiB free";
  if (free >= room_share * all) return {"/dev/shm", Verdict::ok, text, ""};
  return {"/dev/shm", Verdict::warning, text + ": fields of strategies 'shared' may not fit",
          "mount -o remount,size=50% /dev/shm, in a container --shm-size=8g; or strategies without 'shared'"};
}

Diagnosis check_huge_pages(MPI_Comm) {
  const HugePages pages = try_huge_pages();
  const std::string setting = huge_page_setting();
  const std::string text = pages.text() + (setting.empty() ? "" : "; enabled: " + setting);
  if (pages.all()) return {"huge pages", Verdict::ok, text, ""};
  if (setting.empty())
    return {"huge pages", Verdict::not_here, text + "; this kernel has no transparent huge pages", ""};
  if (setting == "never")
    return {"huge pages", Verdict::warning, text,
            "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"};
  return {"huge pages", Verdict::warning, text,
          "memory is in pieces or short: as root, echo 1 > /proc/sys/vm/compact_memory; or another node"};
}

/// Exchanges halos of two lines a rank, with values that identify their source. @return the number of wrong ones.
std::int64_t wrong_values(MPI_Comm comm, std::int64_t width) {
  const int rank = rank_in(comm), ranks = ranks_in(comm);
  const Layout layout({2, {width, 2 * ranks, 1}, {false, true, false}}, {1, ranks, 1});
  std::vector<double> values(static_cast<std::size_t>(4 * width), -1);
  const std::int64_t bytes = static_cast<std::int64_t>(sizeof(double));
  FieldRef field;
  field.low = field.high = {0, 1, 0};
  field.slots = {{reinterpret_cast<std::byte*>(values.data() + width), {bytes, width * bytes, 0}, bytes}};
  const auto value = [&](std::int64_t line, std::int64_t column) {
    const std::int64_t lines = 2 * ranks, global = (2 * rank + line + lines) % lines;
    return static_cast<double>(global * width + column);
  };
  for (std::int64_t line : {0, 1})
    for (std::int64_t i = 0; i < width; ++i) values[(line + 1) * width + i] = value(line, i);
  Exchange(comm, layout, {field}, Strategy("ordered/p2p")).exchange();
  std::int64_t wrong = 0;
  for (std::int64_t line : {-1, 0, 1, 2})
    for (std::int64_t i = 0; i < width; ++i) wrong += values[(line + 1) * width + i] != value(line, i);
  return wrong;
}

Diagnosis check_exchange(MPI_Comm comm) {
  const std::int64_t wrong = wrong_values(comm, 2) + wrong_values(comm, 2048);
  if (wrong == 0)
    return {"exchange", Verdict::ok,
            "halos of " + count_of(static_cast<std::size_t>(ranks_in(comm)), "rank") + " are right", ""};
  return {"exchange", Verdict::broken, std::to_string(wrong) + " wrong values in the halos of a rank",
          "haloscope doctor tries the functions of this MPI one by one"};
}

/// Returns the order of verdicts: the gravest first.
int gravity(Verdict verdict) {
  constexpr int places[] = {3, 1, 0, 2};  // ok, warning, broken, not here
  return places[static_cast<int>(verdict)];
}

/// Returns the gravest of all ranks' checks, the first of several.
Diagnosis gravest(MPI_Comm comm, const Diagnosis& mine) {
  struct {
    int gravity, rank;
  } place{gravity(mine.verdict), 0};
  place.rank = rank_in(comm);
  CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, &place, 1, MPI_2INT, MPI_MINLOC, comm));
  Diagnosis check = mine;
  int verdict = static_cast<int>(mine.verdict);
  CHECK_MPI(MPI_Bcast(&verdict, 1, MPI_INT, place.rank, comm));
  check.verdict = static_cast<Verdict>(verdict);
  check.found = text_of_rank(comm, place.rank, mine.found);
  check.remedy = text_of_rank(comm, place.rank, mine.remedy);
  return check;
}

}  // namespace

std::vector<Diagnosis> doctor(MPI_Comm comm) {
  require_communicator(comm);
  std::vector<Diagnosis> checks;
  const OwnedComm own = collectively(comm, "a report of the doctor", [&] {
    checks.reserve(4);
    return duplicate(comm);
  });
  const auto examine = [&](const char* name, const std::function<Diagnosis(MPI_Comm)>& check) {
    checks.push_back(collectively(own.get(), "a report of the doctor", [&] {
      Diagnosis mine;
      try {
        mine = collectively(own.get(), "a report of the doctor", [&] { return check(own.get()); });
      } catch (const Error& error) {
        mine = {name, Verdict::not_here, error.what(), ""};
      }
      return gravest(own.get(), mine);
    }));
  };
  examine("pinning", check_pinning);
  examine("/dev/shm", check_room);
  examine("huge pages", check_huge_pages);
  examine("exchange", check_exchange);
  return checks;
}

}  // namespace haloscope
