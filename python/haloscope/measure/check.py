"""Runs of a program on several numbers of ranks, each compared with the first successful one."""

from __future__ import annotations

import math
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from haloscope import scratch
from haloscope.measure import check_request, launch, progress, user_program
from haloscope.measure.user_program import Ended
from haloscope.records import differences
from haloscope.records.differences import Difference, Rules
from haloscope.records.text import count_of


@dataclass
class Run:
    """One run: its number of ranks, its failure if any, and its differences from the base."""

    ranks: int
    seconds: float
    failure: str
    last_lines: list[str]
    differences: list[Difference] = field(default_factory=list)
    repeated: bool = False  # each rank has printed the base's output, like a separate program on one rank

    @property
    def oversubscribed(self) -> bool:
        """True if it had more ranks than cores, so that its time is unreliable."""
        return self.ranks > launch.cores()


@dataclass
class Check:
    """The runs of a program on several numbers of ranks, each compared with the first successful one."""

    rules: Rules
    commands: Mapping[int, Sequence[str]]
    mpiexec: Path
    timeout: float
    inputs: Sequence[Path]
    root: Path
    keep: bool
    runs: list[Run] = field(default_factory=list)
    base: int = 0  # ranks of the run that the others are compared with; 0: none was successful
    unsteady: str = ""  # difference of a second run of the base from the first, if any

    @property
    def passed(self) -> bool:
        """True if every run was successful and had the same output."""
        return not any(run.failure or run.differences for run in self.runs)

    @property
    def first(self) -> Run | None:
        """The first run that differs, None when none does."""
        return next((run for run in self.runs if run.differences), None)

    def run(self) -> Check:
        """Run and compare all. Raises UsageError for a base without anything to compare."""
        base: Ended | None = None
        with progress.Line(len(self.commands), "check") as line:
            for ranks in self.commands:
                ended = self._start(ranks)
                run = Run(ranks, ended.seconds, ended.failure, ended.last_lines if ended.failure else [])
                self.runs.append(run)
                if not run.failure and base is None:
                    base, self.base = ended, ranks
                    differences.check_base(self.rules, ended.folder, ended.printed, count_of(ranks, "rank"))
                elif not run.failure and base is not None:
                    run.differences = self._compare(base, ended)
                    run.repeated = _is_repeated(base, ended)
                if ended is not base and not self.keep:
                    ended.remove()
                line.step(count_of(ranks, "rank"))
        if self.first and base is not None:
            self.unsteady = self._repeat(base)
        return self

    def _start(self, ranks: int, suffix: str = "") -> Ended:
        folder = self.root / f"{ranks}-ranks{suffix}"
        folder.mkdir()
        for path in self.inputs:
            copy = shutil.copytree if path.is_dir() else shutil.copy2
            copy(path, folder / path.resolve().name)
        differences.mark_inputs(folder)
        return user_program.run(self.commands[ranks], ranks, folder, self.mpiexec, self.timeout)

    def _compare(self, base: Ended, other: Ended) -> list[Difference]:
        return differences.compare_runs(self.rules, (base.folder, base.printed), (other.folder, other.printed))

    def _repeat(self, base: Ended) -> str:
        again = self._start(base.ranks, "-again")
        found = [] if again.failure else self._compare(base, again)
        return again.failure or (differences.summarize(found) if found else "")


def check(program: Sequence[str], options: Mapping[str, Any]) -> Check:
    """Run a program on several numbers of ranks and compare its outputs, as the options of `haloscope check` specify.

    Raises UsageError and UnavailableError for impossible options, before the first run, and as `Check.run` does.
    """
    rules, counts = check_request.rules_of(options), check_request.counts_of(options["ranks"])
    rule, dims = options["process_grid"], options["dims"]
    commands = {count: user_program.words_of(program, count, rule, dims) for count in counts}
    launcher = user_program.mpiexec_of(options["mpiexec"])
    inputs, keep = options["inputs"], options["keep"]
    check_request.refuse_inputs(inputs, keep)
    limit = options["timeout"] or math.inf
    with ExitStack() as stack:
        root = check_request.prepare_folder(keep) if keep else stack.enter_context(scratch.folder())
        return Check(rules, commands, launcher, limit, inputs, root.absolute(), bool(keep)).run()


def _is_repeated(base: Ended, other: Ended) -> bool:
    """Return whether each of several ranks printed each line of the one rank, like separate programs on one rank."""
    once, often = (Counter(line for line in run.printed.splitlines() if line.strip()) for run in (base, other))
    return base.ranks == 1 and bool(once) and often == Counter({line: n * other.ranks for line, n in once.items()})
