"""Checks of a node: the cores and memory that its ranks get, and their clocks."""

from __future__ import annotations

import functools
import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from haloscope.bridge import build
from haloscope.measure import answers, launch, probes
from haloscope.measure.doctor import check, process_view
from haloscope.measure.doctor.check import BROKEN, NOT_HERE, OK, WARNING, Check, nothing_started, size_of, worst_of
from haloscope.records.text import count_of

ROOM_SHARE = 0.05  # of a node's memory that /dev/shm should have free: containers come with 64 MiB
SHARED = ("shared-load-store", "shared-flags")
PROBES = ",".join((probes.FIRST, *SHARED, "clock", "huge-pages"))
BIND = "bind each rank: -bind-to core (MPICH, Intel MPI), --bind-to core (Open MPI), --cpu-bind=cores (srun)"


def plain_words(ranks: int) -> list[str]:
    """Return the command words of an mpiexec with only the number of ranks, and Open MPI's permission for root."""
    path = launch.mpiexec()
    as_root = ["--allow-run-as-root"] if launch.flavour(path) == "openmpi" and os.geteuid() == 0 else []
    return [str(path), *as_root, "-n", str(ranks)]


def process_views(words: Sequence[str]) -> list[dict]:
    """Start processes that inspect their nodes; return their views, [] if they do not start."""
    _, output, _ = answers.ended_after(check.LIMIT_S, [*words, *build.python("-I", "-S", process_view.__file__)])
    return answers.objects_of(output)


def _by_host(views: Sequence[Mapping]) -> dict[str, list[Mapping]]:
    hosts: dict[str, list[Mapping]] = defaultdict(list)
    for view in views:
        hosts[view["host"]].append(view)
    return hosts


def _of_nodes(name: str, views: Sequence[Mapping], judge: Callable[[list[Mapping]], Check]) -> Check:
    """Return the gravest check of all nodes. judge: returns the check of one node from the views of its processes."""
    return worst_of([judge(members) for members in _by_host(views).values()]) if views else nothing_started(name)


# ---- cores -----------------------------------------------------------------------------------------------------------


def judge_pinning(name: str, views: Sequence[Mapping]) -> Check:
    """Judge the cores that the processes of each node may use, from their views."""
    return _of_nodes(name, views, functools.partial(_placed, name))


def _placed(name: str, members: Sequence[Mapping]) -> Check:
    host = members[0]["host"]
    sets = [set(view["cores"]) for view in members]
    used, there = set().union(*sets), set().union(*(view["node_cores"] for view in members))
    ranks, total = count_of(len(sets), "rank"), count_of(len(there), "core")
    if len(sets) > len(there):
        remedy = f"start at most {count_of(len(there), 'rank')} a node, or ask the batch system for more cores"
        return Check(name, WARNING, f"{ranks} on {total} of {host}: they take turns, and waiting is slow", remedy)
    if len(used) < len(sets):
        text = f"{ranks} on {count_of(len(used), 'core')} of {host}, which has {total} for them"
        return Check(name, BROKEN, text, BIND)
    if sum(map(len, sets)) > len(used):
        if all(cores == there for cores in sets):
            return Check(name, WARNING, f"{ranks} of {host} are not pinned: each may run on all {total}", BIND)
        shared = [cores for i, cores in enumerate(sets) if any(cores & o for j, o in enumerate(sets) if i != j)]
        return Check(name, WARNING, f"{len(shared)} of {ranks} of {host} share cores with another one", BIND)
    return _spread(name, host, sets, there, members[0]["numa"])


def _spread(name: str, host: str, sets: Sequence[set[int]], there: set[int], numa: Sequence[Sequence[int]]) -> Check:
    """Judge the number of NUMA nodes over which ranks with separate cores are spread."""
    usable = [set(cores) & there for cores in numa if set(cores) & there]
    used = sum(any(cores & own for own in sets) for cores in usable)
    each = f"{min(map(len, sets))} to {max(map(len, sets))}" if len(set(map(len, sets))) > 1 else str(len(sets[0]))
    text = f"{count_of(len(sets), 'rank')} of {host} with {each} of {count_of(len(there), 'core')} each"
    if usable:
        text += f", on {used} of {count_of(len(usable), 'NUMA node')}"
    if len(sets) > 1 and used < min(len(usable), len(sets)):
        remedy = "spread them, each NUMA node has its own memory: -map-by numa (MPICH), --map-by numa (Open MPI)"
        return Check(name, WARNING, text, remedy)
    return Check(name, OK, text)


# ---- memory and clocks -----------------------------------------------------------------------------------------------


def judge_shared_memory(findings: Mapping[str, Mapping], views: Sequence[Mapping]) -> Check:
    """Judge whether ranks of a node see each other's stores, from the probes."""
    name = "shared memory"
    lines = [findings[probe] for probe in SHARED if probe in findings]
    if not lines:
        return nothing_started(name)
    if wrong := [f"{line['probe']}: {line['reason']}" for line in lines if not line["ok"]]:
        remedy = "use strategies without 'shared'; ranks in containers need one /dev/shm (--ipc=host)"
        return Check(name, BROKEN, "; ".join(wrong), remedy)
    if max(map(len, _by_host(views).values()), default=0) == 1:
        return Check(name, NOT_HERE, "each node has one rank: nothing is shared")
    return Check(name, OK, "ranks of a node see each other's stores, by load and by flag")


def judge_room(views: Sequence[Mapping]) -> Check:
    """Judge whether /dev/shm has room for fields."""
    return _of_nodes("/dev/shm", views, _room)


def _room(members: Sequence[Mapping]) -> Check:
    view, room = members[0], members[0]["shared_memory"]
    if not room:
        return Check("/dev/shm", NOT_HERE, f"{view['host']} has none", "use strategies without 'shared'")
    text = f"{size_of(room['free_bytes'])} of {size_of(room['bytes'])} free on {view['host']}"
    if room["free_bytes"] >= ROOM_SHARE * view["memory_bytes"]:
        return Check("/dev/shm", OK, text)
    remedy = "mount -o remount,size=50% /dev/shm, in a container --shm-size=8g; or strategies without 'shared'"
    return Check("/dev/shm", WARNING, f"{text}: fields of strategies 'shared' may not fit", remedy)


def judge_left_over(views: Sequence[Mapping]) -> Check:
    """Judge the segments that killed jobs have left in /dev/shm."""
    return _of_nodes("left-over segments", views, _left_over)


def _left_over(members: Sequence[Mapping]) -> Check:
    view, left, folder = members[0], members[0]["left_over"], process_view.SHARED_MEMORY
    if not left["count"]:
        return Check("left-over segments", OK, f"no unused segment older than a day on {view['host']}")
    text = f"{count_of(left['count'], 'segment')} of yours older than a day on {view['host']}, {size_of(left['bytes'])}"
    if left["count"] == len(left["names"]):
        return Check("left-over segments", WARNING, text, f"rm {' '.join(str(folder / n) for n in left['names'])}")
    patterns = " -o ".join(f"-name '{pattern}'" for pattern in process_view.SEGMENTS)
    find = f"find {folder} -maxdepth 1 -user $USER -mtime +0 \\( {patterns} \\) -delete"
    return Check("left-over segments", WARNING, text, f"when no job of yours runs there: {find}")


def judge_huge_pages(findings: Mapping[str, Mapping], views: Sequence[Mapping]) -> Check:
    """Judge whether a large field of the library got huge pages."""
    name, line = "huge pages", findings.get("huge-pages")
    if not line:
        return nothing_started(name)
    setting = views[0]["huge_pages"] if views else {}
    text = line["reason"] + "".join(f"; {key}: {word}" for key, word in setting.items())
    if line["ok"]:
        return Check(name, OK, text)
    if not setting:
        return Check(name, NOT_HERE, f"{text}; this kernel has no transparent huge pages")
    if setting.get("enabled") == "never":
        return Check(name, WARNING, text, "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled")
    remedy = "memory is in pieces or short: as root, echo 1 > /proc/sys/vm/compact_memory; or another node"
    return Check(name, WARNING, text, remedy)


def judge_clocks(findings: Mapping[str, Mapping]) -> Check:
    """Judge whether ranks of a node read one clock."""
    line = findings.get("clock")
    if not line:
        return nothing_started("clocks")
    remedy = "" if line["ok"] else "ranks of a node need one time namespace; do not trust --trace across ranks here"
    return Check("clocks", OK if line["ok"] else BROKEN, line["reason"], remedy)
