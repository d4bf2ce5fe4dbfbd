"""Allocations that fail: every opening without memory is an error on all ranks or ends the job by name, and none leaves anything behind."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from haloscope.measure import launch
from test_exchange import RANKS as RANKS_FOLDER
from test_exchange import on_ranks
from test_mpi_faults import CASES, JOBS, PROGRAMS

PROGRAM = PROGRAMS / "openings_without_memory_haloscope"
FAILS_ALLOCATIONS = PROGRAMS / "liballocation_faults.so"
RANKS = 2
# Case, what fails, on which ranks, and of how many allocations one fails: a sample in every test run.
QUICK = [
    (("ordered/p2p", "own"), "once", "all", 37),
    (("direct/shared", "shared"), "once", "all", 53),
    (("direct/auto", "own"), "once", "all", 167),
    (("direct:merged/staged", "device"), "once", "all", 71),
    (("direct/rma-fence:split", "own"), "on", "all", 211),
    (("direct/shared", "shared"), "once", "1", 173),
]
EVERY = [
    ((case, much, ranks, 1 if ranks == "all" else 23))
    for case in CASES
    if case[1] in ("own", "shared", "device")
    for much in ("once", "on")
    for ranks in ("all", "1")
]
NAMED = "memory is exhausted|Cannot allocate memory"  # the second from the system, for memory of another process
LINE = re.compile(r"^(\d+): (.*); again: (.*)$", re.MULTILINE)


def run(words: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    command = [*launch.launcher_words(launch.mpiexec(), RANKS, 1), str(PROGRAM), *words]
    variables = {**os.environ, "LD_PRELOAD": str(FAILS_ALLOCATIONS), "HALOSCOPE_PATIENCE": "0.5", **environment}
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60, check=False)


def verdict(results: list[tuple[str, str]]) -> str:
    """Return how an opening of all ranks ended: "right", "refused", or what is wrong with it."""
    if len(results) != RANKS or any(again != "right" for _, again in results):
        return f"bad: {results}"
    refused = [text for text, _ in results if text.startswith("refused: ")]
    if not refused and all(text == "right" for text, _ in results):
        return "right"
    if len(refused) == RANKS and any(re.search(NAMED, text) for text in refused):
        return "refused"
    return f"bad: {results}"


def results_of(output: str) -> dict[int, list[tuple[str, str]]]:
    found: dict[int, list[tuple[str, str]]] = {}
    for number, first, again in LINE.findall(output):
        found.setdefault(int(number), []).append((first, again))
    return found


def openings(case: tuple[str, str], much: str, ranks: str, first: int, step: int) -> tuple[dict[int, str], int]:
    """Return how each opening ended, by the number of its failing allocation, and how many allocations stay held."""
    ends: dict[int, str] = {}
    number, held = first, 0
    while True:
        ended = run([*case, str(number), str(step), much, ranks])
        found = results_of(ended.stdout)
        ends.update({n: verdict(results) for n, results in found.items() if len(results) == RANKS})
        for line in re.findall(r"^done: (-?\d+) allocations", ended.stdout, re.MULTILINE):
            held = max(held, int(line))
        if "done: " in ended.stdout:
            return ends, held
        number = max((int(n) for n in re.findall(r"^(\d+)$", ended.stdout, re.MULTILINE)), default=number)
        named = re.search(r"^haloscope: rank \d+: .*memory", ended.stderr, re.MULTILINE)
        ends[number] = "job ended" if named else f"rc {ended.returncode}: {(ended.stdout + ended.stderr)[-1500:]}"
        number += step


@pytest.mark.parametrize(
    ("case", "much", "ranks", "step"),
    [pytest.param(*sample, id="-".join(map(str, (*sample[0], *sample[1:3])))) for sample in QUICK]
    + [
        pytest.param(*sample, marks=pytest.mark.long, id="-".join(("every", *map(str, (*sample[0], *sample[1:3])))))
        for sample in EVERY
    ],
)
def test_no_opening_without_memory_passes_in_silence(case, much, ranks, step):
    with ThreadPoolExecutor(JOBS) as pool:  # each begins at a number of its own
        firsts = range(1, 1 + JOBS * step, step)
        parts = list(pool.map(lambda first: openings(case, much, ranks, first, JOBS * step), firsts))
    ends, held = {k: v for part, _ in parts for k, v in part.items()}, max(held for _, held in parts)
    counts = Counter(end if end in ("right", "refused", "job ended") else "bad" for end in ends.values())
    print(f"{'-'.join(case)} {much} {ranks}: {dict(counts)}, {held} allocations held")
    bad = {number: end for number, end in ends.items() if end not in ("right", "refused", "job ended")}
    assert not bad, f"{len(bad)} of {len(ends)}: " + "\n".join(f"{k}: {v[:700]}" for k, v in list(bad.items())[:8])
    assert counts["refused"] + counts["job ended"] > 0


def test_ranks_that_fail_together_go_on():
    ended = run(["together"])
    assert len(re.findall(r"^refused: memory is exhausted", ended.stdout, re.MULTILINE)) == RANKS, ended.stderr


def test_ranks_that_fail_before_and_in_a_collective_call_of_mpi_end_the_job():
    ended = run(["apart"])
    assert ended.returncode != 0 and "refused" not in ended.stdout
    assert re.search(r"^haloscope: rank \d: memory is exhausted", ended.stderr, re.MULTILINE), ended.stderr


def test_fields_that_no_machine_has_memory_for_are_refused_on_all_ranks():
    ended = run([])
    needed = r"need [0-9]{12,} bytes, and \d+ are available"
    assert len(re.findall(rf"^own: refused: memory is exhausted: fields {needed}", ended.stdout, re.M)) == RANKS
    shared = r"^shared: refused: .*ask for [0-9]{12,} bytes of shared memory, but only \d+ are left in /dev/shm"
    assert len(re.findall(shared, ended.stdout, re.M)) == RANKS, ended.stdout + ended.stderr


@pytest.mark.parametrize("step", [29, pytest.param(1, marks=pytest.mark.long)])
def test_a_python_program_gets_an_error_about_memory_and_goes_on(step, monkeypatch):
    monkeypatch.setenv("LD_PRELOAD", str(FAILS_ALLOCATIONS))
    assert on_ranks(RANKS, RANKS_FOLDER / "exhausted_memory.py", "ordered/p2p", step) == ["refused"]


@pytest.mark.parametrize("strategy", ["direct:merged/shared:packed", "ordered/p2p"])
def test_a_small_file_system_of_shared_memory_is_refused_or_does(strategy):
    """A container has a small one; a mount namespace imitates that, where it may be made."""
    own = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    mount = "mount -t tmpfs -o size=12m tmpfs /dev/shm"
    if subprocess.run([*own, "sh", "-c", mount], capture_output=True, check=False).returncode != 0:
        pytest.skip("this user may not make mount namespaces")
    words = [*launch.launcher_words(launch.mpiexec(), RANKS, 1), sys.executable]
    program = shlex.join([*words, str(RANKS_FOLDER / "small_shared_memory.py"), strategy])
    ended = subprocess.run(
        [*own, "sh", "-c", f"{mount} && exec {program}"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.split() in (["right"], ["refused"]), ended.stdout
