"""Published experiments, each a module: what to measure (data), and the report with the published figures beside ours.

A study module has SUMMARY (one sentence), `plan(options)` -> space.Space, DEFAULTS (`quick` and `full` Options) and
`report(records, options)` -> Markdown. It may have `figures(records, options, stem)` -> files,
`slurm_jobs(options)` -> jobs for a cluster, `beside(file, options, measure)` -> Markdown of what other programs
measure, and `replay()` -> checks.Replay, which recomputes, from the published data alone, what the paper computed.
"""

from __future__ import annotations

import csv
import importlib
from dataclasses import dataclass

from haloscope.data import DATA

NAMES = ("white2011", "valen2023", "schroeter2021", "davis2017", "vanecek2020")


@dataclass(frozen=True)
class Options:
    """Options of a study: sizes (cells per side, or the study's own measure), ranks (0 = the study's), how long, how
    often, most nodes to spread ranks over, the back end whose device holds the fields ("": none), whether runs are
    short ones where the study prints their length."""

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


def load(name: str):
    """Import a study's module."""
    return importlib.import_module(f"haloscope.studies.{name}.study")


def published(study: str, table: str) -> list[dict[str, str]]:
    """Return the rows of a published table kept with the package."""
    with (DATA / study / f"{table}.csv").open(newline="") as file:
        return list(csv.DictReader(file))
