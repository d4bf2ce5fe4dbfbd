"""Behaviour of this MPI, probed in separate jobs of `haloscope-rank --probe`, and the strategies that it rules out.

Findings are cached in $HALOSCOPE_CACHE, else $XDG_CACHE_HOME/haloscope (~/.cache/haloscope), a file per MPI and build.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from haloscope import bridge, files
from haloscope.bridge import build
from haloscope.errors import USAGE, HaloscopeError, UnavailableError
from haloscope.measure import answers, launch, lists
from haloscope.records.text import count_of

RANKS = (1, 2, 4)  # defects show at process grids of extent 1 and 2
ALL_LIMIT_S = 60.0  # for all probes together; crowded ranks are slow
ONE_LIMIT_S = 15.0  # for a probe run alone
TIMED_OUT = "it gave no answer within"
DOUBT_S = 3600.0  # a time-out may be due to a busy machine: such probes are run again after this time
FIRST = "start"  # tests only that ranks start
# The only probes run where ranks must share cores, which is slow: those that depend on the shape of the process grid.
CROWDED = (
    "start,neighbor-cart-blocking,neighbor-cart-nonblocking,neighbor-cart-persistent,neighbor-graph-blocking,"
    "neighbor-graph-nonblocking,neighbor-graph-persistent,partitioned"
)


def lacking(*strategies: str) -> str:
    """Return why this MPI cannot run some strategies, "" if it can or if nothing is known. May start the probes."""
    for strategy in dict.fromkeys(strategies):
        wanted = bridge.find_strategy(strategy).probes
        failed = findings()["failed"] if wanted else {}
        if reasons := [f"{name}: {failed[name]}" for name in wanted if name in failed]:
            return f"this MPI fails probes that strategy '{strategy}' relies on ({'; '.join(reasons)})"
    return ""


def refuse_lacking(strategies: str) -> None:
    """Raise UnavailableError for a strategy of a comma list that this MPI cannot run; "" names none.

    Strategies that a glob found are left to the campaign, which skips them.
    """
    for strategy in lists.named_strategies(strategies) if strategies else ():
        if reason := lacking(strategy):
            raise UnavailableError(f"{reason}; 'haloscope info' shows what works here")


def findings(names: str = "all") -> dict:
    """Return {"mpi_library", "passed": [names], "failed": {name: reason}, "notes": {name: text}}.

    Findings come from the cache, if there is one, when this MPI library and build were probed before. They are empty,
    and not cached, if no rank could be started (by the mpiexec of another MPI, say): the next measurement then reports
    the reason.
    """
    file = _cache_file(names)
    found: dict | None = files.kept(file, _is_whole) if file else None
    if file and found and not _is_doubtful(file, found):
        return found
    found = _ask(names)
    if file and found["passed"]:
        files.keep(file, found)
    return found


def _is_whole(found: Any) -> bool:
    """Return whether a value has the shape of findings."""
    kinds = {"mpi_library": str, "passed": list, "failed": dict, "notes": dict}
    if not isinstance(found, dict) or {name: type(part) for name, part in found.items()} != kinds:
        return False
    texts = [found["mpi_library"], *found["passed"], *found["failed"].values(), *found["notes"].values()]
    return all(isinstance(text, str) for text in texts)


def _is_doubtful(file: Path, found: dict) -> bool:
    """Return whether a probe timed out, so long ago that it is worth another try."""
    if all(TIMED_OUT not in reason for reason in found["failed"].values()):
        return False
    with contextlib.suppress(OSError):
        return time.time() - file.stat().st_mtime >= DOUBT_S
    return True


def for_records() -> dict | None:
    """Return the part of the findings that every record keeps: failures with reasons, notes, count of passes."""
    found = findings()
    about = {"passed": len(found["passed"]), "failed": found["failed"], "notes": found["notes"]}
    return about if found["passed"] else None


def _cache_file(names: str) -> Path | None:
    folder = _cache_folder()
    if folder is None:
        return None
    parts = [names]
    for path in (mpi_library(), build.rank_program()):
        state = path.stat()
        parts += [str(path.resolve()), str(state.st_mtime_ns), str(state.st_size)]
    return folder / f"probes-{hashlib.sha256(' '.join(parts).encode()).hexdigest()[:16]}.json"


def _cache_folder() -> Path | None:
    """Return the folder of cached findings; None for a user without a home folder, as in containers."""
    if own := os.environ.get("HALOSCOPE_CACHE"):  # empty: the library caches no choices; findings have a default folder
        return Path(own)
    if cache := os.environ.get("XDG_CACHE_HOME"):
        return Path(cache) / "haloscope"
    try:
        return Path.home() / ".cache" / "haloscope"
    except RuntimeError:
        return None


def mpi_library() -> Path:
    """Return the MPI library that the program is linked to; the program itself where `ldd` does not show it."""
    program = build.rank_program()
    match = re.search(r"lib(?:mpi|mpich|mpi_mpich|pmpi)\.so\S* => (/\S+)", launch.output_of("ldd", program))
    return Path(match[1]) if match else program


def _ask(names: str) -> dict:
    found: dict[str, Any] = {"mpi_library": "", "passed": [], "failed": {}, "notes": {}}
    by_name: dict[str, dict] = {}
    for ranks in RANKS:
        lines = probe(ranks, names)
        if not lines:
            return found
        for line in lines:
            name = line["probe"]
            if name not in by_name or by_name[name]["ok"]:  # the first failure stays, else the last pass
                by_name[name] = line | {"ranks": ranks}
    found["mpi_library"] = " ".join(answers.information()["mpi_library"].split())
    good = {name: line["reason"] for name, line in by_name.items() if line["ok"]}
    bad = {name: line for name, line in by_name.items() if not line["ok"]}
    found["passed"], found["notes"] = list(good), {name: reason for name, reason in good.items() if reason}
    found["failed"] = {name: f"{line['reason']} ({count_of(line['ranks'], 'rank')})" for name, line in bad.items()}
    return found


def probe(ranks: int, names: str = "all") -> list[dict]:
    """Run probes without the cache: return {"probe", "ok", "reason"} of each in `names`; [] if ranks do not start.

    All run in one job. If that dies, each probe without an answer runs in a separate job; if it gives none there
    either, its answer has "died". Cost: at most ALL_LIMIT_S, and ONE_LIMIT_S for each separate job.
    """
    if names == "all" and ranks > launch.cores():
        names = CROWDED
    together, ended = _job(ranks, names, ALL_LIMIT_S)
    if not ended or not any(line["probe"] == FIRST for line in together):
        return together
    for name in _names(names):
        if all(line["probe"] != name for line in together):
            alone, why = _job(ranks, name, ONE_LIMIT_S)
            together += alone or [{"probe": name, "ok": False, "reason": why or "it gave no answer", "died": True}]
    return together


def by_name(lines: Sequence[dict]) -> dict[str, dict]:
    """Return the answers of `probe`, by the probes' names."""
    return {line["probe"]: line for line in lines}


def _names(names: str) -> list[str]:
    if names == "all":
        lines, _ = _job(1, "list", ONE_LIMIT_S)
        return [line["probe"] for line in lines]
    return names.split(",")


def _job(ranks: int, names: str, limit_s: float) -> tuple[list[dict], str]:
    """Start one job; return its answers and, if it failed, the reason."""
    words = ["--probe", names, "--expect-ranks", str(ranks)]
    try:
        code, output = answers.quietly(ranks, words, limit_s)
    except HaloscopeError:
        return [], "it could not be started"
    lines = answers.objects_of(output)
    if code is None:
        return lines, f"{TIMED_OUT} {limit_s:g} s"
    return lines, "" if code in (0, USAGE) else f"it ended with code {code}"


def table(found: dict) -> list[list[str]]:
    """Return a line per probe: name, state here, fault or note."""
    notes = found["notes"]
    return [[name, "no", reason] for name, reason in found["failed"].items()] + [
        [name, "yes", notes.get(name, "")] for name in found["passed"] if name != FIRST
    ]
