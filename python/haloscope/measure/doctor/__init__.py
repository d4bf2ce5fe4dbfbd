"""Examinations of this allocation: launcher, pinning, shared memory, huge pages, clocks, MPI, devices, messages.

Each examination uses its subject directly, on the requested ranks, with a time limit for every start of them. The
`judge_...` functions turn findings into verdicts and start only short queries.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from haloscope.errors import HaloscopeError, UnavailableError
from haloscope.measure import launch, probes
from haloscope.measure.doctor import launcher, mpi, node, runs
from haloscope.measure.doctor.check import BROKEN, LAUNCHER_FIRST, NOT_HERE, OK, WARNING, Check

__all__ = ["BROKEN", "NOT_HERE", "OK", "WARNING", "Check", "carry_out", "plan"]

Examination = Callable[[], "Check | list[Check]"]


def plan(ranks: int, device: str = "") -> dict[str, Examination]:
    """Return all examinations by name, in the most helpful order: each tests one subject when `carry_out` calls it.

    device: back end to test; "" = the back end of a GPU found here.
    """
    here = Allocation(ranks)
    return {
        "launcher": lambda: launcher.judge_launcher(ranks, *launcher.ask_launcher(ranks)),
        "mpi4py": lambda: launcher.examine_mpi4py(ranks),
        "pinning": lambda: node.judge_pinning("pinning", here.views),
        "mpiexec alone": lambda: node.judge_pinning("mpiexec alone", node.process_views(node.plain_words(ranks))),
        "shared memory": lambda: node.judge_shared_memory(here.findings, here.views),
        "/dev/shm": lambda: node.judge_room(here.views),
        "left-over segments": lambda: node.judge_left_over(here.views),
        "huge pages": lambda: node.judge_huge_pages(here.findings, here.views),
        "clocks": lambda: node.judge_clocks(here.findings),
        "MPI functions": lambda: mpi.judge_functions(probes.by_name(probes.probe(ranks)), probes.findings()),
        "device": lambda: mpi.examine_device(ranks, device),
        "exchange": lambda: runs.judge_runs("exchange", runs.verified_runs(ranks, "ordered/p2p")),
    }


def carry_out(name: str, examination: Examination) -> list[Check]:
    """Return the checks of an examination. An exception becomes its result, so that the others continue."""
    try:
        found = examination()
    except UnavailableError as error:
        found = Check(name, NOT_HERE, str(error))
    except HaloscopeError as error:
        found = Check(name, BROKEN, str(error), LAUNCHER_FIRST)
    except Exception as error:
        found = Check(name, BROKEN, f"the examination itself failed: {error}", "'haloscope info' may show more")
    return found if isinstance(found, list) else [found]


class Allocation:
    """Results of queries of the ranks here; each query runs once, when first needed."""

    def __init__(self, ranks: int):
        """Store the number of ranks."""
        self._ranks = ranks

    @functools.cached_property
    def views(self) -> list[dict]:
        """The view of each process of its node, with processes placed like Haloscope's ranks."""
        return node.process_views(launch.launcher_words(launch.mpiexec(), self._ranks, 1))

    @functools.cached_property
    def findings(self) -> dict[str, dict]:
        """Findings of the probes that are about the node, by name."""
        return probes.by_name(probes.probe(self._ranks, node.PROBES))
