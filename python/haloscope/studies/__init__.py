"""Published experiments, each a module of another distribution: a plan of measurements, and a report.

A study is an entry point of group `haloscope.studies`. Its module has SUMMARY (one sentence), `plan(options)` ->
space.Space, DEFAULTS (`quick` and `full` Options) and `report(records, options)` -> Markdown. It may have ON_DEVICE
(versions for devices), ANY_PLAN (its report takes all records of its kind, whatever options planned them),
`figures(records, options, stem)` -> files, `slurm_jobs(options)` -> jobs for a cluster, `other_programs(file, options,
measure)` -> Markdown of their measurements, `paper_lines(records, options, stem)` -> lines of the paper's figures
besides the printed ones, which panels.toml of its data lists, `findings(records, options)` -> the conclusions of the
paper as findings.Finding, judged, and `replay()` -> checks.Replay, which recomputes the results of the paper from its
published data alone. The package that holds the module has a package `data` with the published tables.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from types import ModuleType

from haloscope import guests


@dataclass(frozen=True)
class Options:
    """Options of a study.

    sizes: cells per side, or sizes in the unit of the study. ranks: 0 = ranks of the study. steps: length of a
    repetition; 0 = `seconds`. nodes: max nodes to spread ranks over. device: the back end whose device holds the
    fields, "" = none. short: whether runs are short where the publication specifies their length.
    """

    sizes: tuple[int, ...]
    ranks: int = 0
    steps: int = 0
    seconds: float = 0.0
    repetitions: int = 5
    launches: int = 3
    depths: tuple[int, ...] = ()
    cores: int = 1
    nodes: int = 1
    device: str = ""
    short: bool = False

    def settings(self) -> dict:
        """Return the fields of a request that define its measurement."""
        length = {"steps": self.steps} if self.steps else {"seconds": self.seconds}
        return length | {"repetitions": self.repetitions}


def names() -> tuple[str, ...]:
    """Return the names of the installed studies."""
    return tuple(guests.find_guests(guests.STUDIES))


def load(name: str) -> ModuleType:
    """Import a study's module. Raises UnavailableError where that fails."""
    module: ModuleType = guests.load(guests.STUDIES, name)
    return module


def data_of(study: str) -> Traversable:
    """Return the folder of a study's published tables. Raises ModuleNotFoundError where it has none."""
    module = guests.find_guests(guests.STUDIES)[study].module
    return resources.files(f"{module.rpartition('.')[0] or module}.data")


def published(study: str, table: str) -> list[dict[str, str]]:
    """Return the rows of a published table of a study."""
    text = data_of(study).joinpath(f"{table}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines(keepends=True)))
