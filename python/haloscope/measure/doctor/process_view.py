"""One process's view of its node, as one line of JSON: its cores, NUMA nodes, shared memory, huge pages.

This is a separate program: a launcher starts it in place of the ranks, so it needs neither MPI nor any package.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import sys
import time
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")  # folder of the memory that ranks of a node share, in MPI libraries on Linux
# Files there of MPICH, Open MPI (4; 5), PSM, libfabric, NCCL. Files of killed jobs remain.
SEGMENTS = ("mpich_shm_*", "vader_segment.*", "sm_segment.*", "psm*_shm*", "fi_shm_*", "nccl-*")
OLD_S = 86400.0
FEW = 3


def view() -> dict:
    """Return everything that this process sees."""
    return {
        "host": platform.node(),
        "cores": sorted(os.sched_getaffinity(0)),
        "node_cores": node_cores(),
        "numa": numa_nodes(Path("/sys/devices/system/node")),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "shared_memory": room(SHARED_MEMORY),
        "left_over": left_over(SHARED_MEMORY, set(mapped_files(SHARED_MEMORY))),
        "huge_pages": huge_pages(Path("/sys/kernel/mm/transparent_hugepage")),
    }


def node_cores() -> list[int]:
    """Return the cores that this node's processes may use together: also those of the launcher, which is not pinned."""
    cores = os.sched_getaffinity(0)
    with contextlib.suppress(OSError):
        cores |= os.sched_getaffinity(os.getppid())
    return sorted(cores)


def numa_nodes(folder: Path) -> list[list[int]]:
    """Return the cores of each NUMA node that has cores; [] if Linux does not list them."""
    lists = [numbers(file.read_text()) for file in sorted(folder.glob("node[0-9]*/cpulist"))]
    return [cores for cores in lists if cores]


def numbers(text: str) -> list[int]:
    """Return the numbers of a list of Linux, `0-3,8`."""
    pairs = [(int(low), int(high or low)) for low, high in re.findall(r"(\d+)(?:-(\d+))?", text)]
    return [number for low, high in pairs for number in range(low, high + 1)]


def room(folder: Path) -> dict:
    """Return {"bytes", "free_bytes"} of the file system of shared memory; {} without one."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return {}
    return {"bytes": found.f_blocks * found.f_frsize, "free_bytes": found.f_bavail * found.f_frsize}


def left_over(folder: Path, used: set[str]) -> dict:
    """Return {"count", "bytes", "names": the first few} of this user's segments in `folder` that are older than a day.

    used: paths of files that processes have mapped; these are not left over.
    """
    names, total = [], 0
    for pattern in SEGMENTS:
        for file in folder.glob(pattern):
            with contextlib.suppress(OSError):
                state = file.stat()
                old = time.time() - state.st_mtime > OLD_S
                if old and state.st_uid == os.geteuid() and str(file) not in used:
                    names.append(file.name)
                    total += state.st_blocks * 512
    return {"count": len(names), "bytes": total, "names": sorted(names)[:FEW]}


def mapped_files(folder: Path) -> list[str]:
    """Return the files in `folder` that processes of this user have mapped."""
    found = set()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            found |= set(re.findall(rf"{re.escape(str(folder))}/\S+", maps.read_text()))
    return sorted(found)


def huge_pages(folder: Path) -> dict:
    """Return the settings of transparent huge pages, as `enabled`: "madvise"; {} if this kernel has none."""
    found = {}
    for name in ("enabled", "shmem_enabled", "defrag"):
        with contextlib.suppress(OSError):
            chosen = re.search(r"\[(\S+)\]", (folder / name).read_text())
            found[name] = chosen[1] if chosen else ""
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(view()) + "\n")
