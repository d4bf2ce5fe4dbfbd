"""Allocations that fail: every opening without memory is an error on all ranks or ends the job by name, and none leaves
anything behind.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from haloscope.measure import launch
from paths import RANK_PROGRAMS
from test_exchange import on_ranks
from test_mpi_faults import CASES, JOBS, PROGRAMS, skip_without

FAILS_ALLOCATIONS = PROGRAMS / "liballocation_faults.so"
RANKS = 2
# Case, what fails, on which ranks, whether openings share a communicator, and of how many allocations one fails: a
# sample in every test run.
QUICK = [
    (("ordered/p2p", "own"), "once", "all", "fresh", 37),
    (("direct/shared", "shared"), "once", "all", "kept", 53),
    (("direct/auto", "own"), "once", "all", "fresh", 167),
    (("direct:merged/staged", "device"), "once", "all", "kept", 71),
    (("direct/rma-fence:split", "own"), "on", "all", "kept", 211),
    (("direct/shared", "shared"), "once", "1", "fresh", 173),
    (("ordered/p2p", "guarded"), "once", "all", "kept", 53),
    (("ordered/p2p", "stepper"), "once", "all", "kept", 67),
    (("ordered/p2p", "stepper"), "once", "1", "kept", 211),
    (("ordered/p2p", "c"), "once", "all", "kept", 37),
    (("ordered/p2p", "fortran"), "once", "all", "kept", 11),
]
GUARDED = [("ordered/p2p", "guarded"), ("direct/auto", "guarded"), ("direct/rma-lock", "guarded")]
GUARDED += [("ordered/p2p", "guarded-stepper"), ("ordered/rma-fence", "guarded-stepper")]


def steps(case: tuple[str, str], ranks: str) -> int:
    """Return the step between the allocations that fail in the long tests.

    It is longer for auto, since the transports that it opens have their own cases.
    """
    if ranks != "all":
        return 47
    return 17 if case[0].endswith("auto") else 3


EVERY = [
    (case, much, ranks, comm, steps(case, ranks))
    for case in CASES + GUARDED
    if case[1] != "python"
    for much, comm in (("once", "fresh"), ("once", "kept"), ("on", "kept"))
    for ranks in ("all", "1")
]
# Allocations that may stay: the text of the last failure and, on a communicator that an opening has got of its own,
# what the library keeps of its duplicate, since messages may be in flight (docs/use/reliability.md, "Not promised").
KEPT, KEPT_OF_COMMUNICATOR = 1, 40
# A communicator keeps the races of auto: one, of three allocations, for each set of candidates that could be opened, of
# exchanges, accumulations and shares. Where memory ends while one of four candidates is opened, the set lacks it.
KEPT_OF_RACES = 3 * 4 * 3
NAMED = "memory is exhausted|Cannot allocate memory"  # the second from the system, for memory of another process
LINE = re.compile(r"^(\d+): (.*); again: (.*)$", re.MULTILINE)


def run(words: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    language = words[1] if words[1:2] in (["c"], ["fortran"]) else "haloscope"
    skip_without(language)
    program = PROGRAMS / f"openings_without_memory_{language}"
    command = [*launch.launcher_words(launch.mpiexec(), RANKS, 1), str(program), *words]
    variables = {**os.environ, "LD_PRELOAD": str(FAILS_ALLOCATIONS), "HALOSCOPE_PATIENCE": "0.5", **environment}
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=600, check=False)


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


def openings(
    case: tuple[str, str], much: str, ranks: str, comm: str, first: int, step: int
) -> tuple[dict[int, str], int]:
    """Return how each opening ended, by the number of its failing allocation, and how many allocations stay held."""
    ends: dict[int, str] = {}
    number, held = first, 0
    while True:
        ended = run([*case, str(number), str(step), much, ranks, comm])
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
    ("case", "much", "ranks", "comm", "step"),
    [pytest.param(*sample, id="-".join((*sample[0], *sample[1:4]))) for sample in QUICK]
    + [
        pytest.param(*sample, marks=pytest.mark.long, id="-".join(("every", *sample[0], *sample[1:4])))
        for sample in EVERY
    ],
)
def test_no_opening_without_memory_passes_in_silence_or_leaves_memory(case, much, ranks, comm, step):
    begin = 1 + (much == "once") + (comm == "fresh")  # other numbers than in the other tests of the case
    with ThreadPoolExecutor(JOBS) as pool:  # each begins at a number of its own
        firsts = range(begin, begin + JOBS * step, step)
        parts = list(pool.map(lambda first: openings(case, much, ranks, comm, first, JOBS * step), firsts))
    ends, held = {k: v for part, _ in parts for k, v in part.items()}, max(held for _, held in parts)
    counts = Counter(end if end in ("right", "refused", "job ended") else "bad" for end in ends.values())
    print(f"{'-'.join(case)} {much} {ranks} {comm}: {dict(counts)}, {held} allocations held")
    bad = {number: end for number, end in ends.items() if end not in ("right", "refused", "job ended")}
    assert not bad, f"{len(bad)} of {len(ends)}: " + "\n".join(f"{k}: {v[:700]}" for k, v in list(bad.items())[:8])
    assert counts["refused"] + counts["job ended"] > 0
    kept = KEPT + (KEPT_OF_RACES if case[0].endswith("auto") else 0)
    assert held <= kept + (counts["refused"] * KEPT_OF_COMMUNICATOR if comm == "fresh" else 0)


@pytest.mark.parametrize("ranks", ["all", "1"])
@pytest.mark.parametrize("strategy", ["direct:merged/staged", "direct:merged/taskqueue"])
def test_exhausted_pinned_memory_of_a_device_is_an_error_on_all_ranks_or_ends_the_job_by_name(strategy, ranks):
    ended = run([strategy, "device", "1", "1", "pinned", ranks, "kept"])
    named = r"a buffer needs \d+ bytes of host memory for a device, and \d+ are available"
    if ended.returncode != 0:
        assert ranks == "1"
        assert re.search(rf"^haloscope: rank 1: memory is exhausted: {named}", ended.stderr, re.M), ended.stderr
        return
    assert "done: 0 allocations held" in ended.stdout, ended.stdout + ended.stderr
    found = list(results_of(ended.stdout).values())
    assert [verdict(results) for results in found] == ["refused"] * (len(found) - 1) + ["right"]
    assert len(found) > 1
    assert all(re.search(named, text) for results in found[:-1] for text, _ in results), ended.stdout


def test_ranks_that_fail_together_go_on():
    ended = run(["together"])
    assert len(re.findall(r"^refused: memory is exhausted", ended.stdout, re.MULTILINE)) == RANKS, ended.stderr


@pytest.mark.parametrize("how", ["apart", "kept"])
def test_ranks_that_differ_in_what_they_did_before_they_failed_end_the_job(how):
    ended = run([how])
    assert ended.returncode != 0 and "refused" not in ended.stdout
    assert re.search(r"^haloscope: rank \d: memory is exhausted", ended.stderr, re.MULTILINE), ended.stderr


def test_fields_that_no_machine_has_memory_for_are_refused_on_all_ranks():
    ended = run([])
    needed = r"need [0-9]{12,} bytes, and \d+ are available"
    assert len(re.findall(rf"^own: refused: memory is exhausted: fields {needed}", ended.stdout, re.M)) == RANKS
    shared = r"^shared: refused: .*request [0-9]{12,} bytes of shared memory, but only \d+ are left in /dev/shm"
    assert len(re.findall(shared, ended.stdout, re.M)) == RANKS, ended.stdout + ended.stderr


def test_windows_that_no_machine_has_memory_for_are_refused_on_all_ranks():
    ended = run(["windows"])
    needed = r"memory is exhausted: windows need [0-9]{12,} bytes, and \d+ are available"
    assert len(re.findall(rf"^refused: (?:rank 1: )?{needed}", ended.stdout, re.M)) == RANKS, (
        ended.stdout + ended.stderr
    )


@pytest.mark.parametrize("step", [29, pytest.param(1, marks=pytest.mark.long)])
def test_a_python_program_gets_an_error_about_memory_and_goes_on(step, monkeypatch):
    monkeypatch.setenv("LD_PRELOAD", str(FAILS_ALLOCATIONS))
    assert on_ranks(RANKS, RANK_PROGRAMS / "exhausted_memory.py", "ordered/p2p", step) == ["refused"]


SHARED = [
    ("direct:merged/shared:packed", "own", ("refused", "right")),
    ("ordered/p2p", "own", ("right", "right")),
    ("direct/shared", "shared", ("refused", "right")),
    ("ordered/shared", "shared", ("refused", "right")),
    ("direct/shared:pull", "shared", ("refused", "right")),
    ("ordered/shared:fence", "shared", ("refused", "right")),
    ("direct/shared:packed", "own", ("refused", "right")),
    ("ordered/shared:packed", "own", ("refused", "right")),
    ("direct/auto", "own", ("right", "right")),
    ("direct/auto", "shared", ("refused", "right")),
    ("ordered/rma-fence", "own", ("right", "right")),
    ("direct/rma-fence:split", "own", ("right", "right")),
    ("direct/rma-pscw", "own", ("right", "right")),
    ("direct/rma-lock:flag", "own", ("right", "right")),
    ("direct/rma-lockall:get,per-message", "own", ("right", "right")),
    ("direct/shared:packed+p2p", "own", ("refused", "right")),
]


@pytest.mark.parametrize(
    ("strategy", "memory", "expected"),
    [pytest.param(*one, marks=[] if one in SHARED[:3] else [pytest.mark.long], id="-".join(one[:2])) for one in SHARED],
)
@pytest.mark.parametrize("size", ["12m", "400m"])
def test_a_small_file_system_of_shared_memory_is_refused_or_does(strategy, memory, expected, size):
    """A container has a small one; a mount namespace imitates that, where it may be made."""
    own = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    mount = f"mount -t tmpfs -o size={size} tmpfs /dev/shm"
    if subprocess.run([*own, "sh", "-c", mount], capture_output=True, check=False).returncode != 0:
        pytest.skip("this user may not make mount namespaces")
    words = [*launch.launcher_words(launch.mpiexec(), RANKS, 1), str(PROGRAMS / "openings_without_memory_haloscope")]
    program = shlex.join([*words, strategy, memory])
    ended = subprocess.run(
        [*own, "sh", "-c", f"{mount} && exec {program}"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    named = r"refused: .*request \d+ bytes of shared memory, but only \d+ are left in /dev/shm.*"
    first = {"refused": named, "right": "right"}[expected[size != "12m"]]
    assert len(re.findall(rf"^{first}; again: right$", ended.stdout, re.MULTILINE)) == RANKS, ended.stdout
