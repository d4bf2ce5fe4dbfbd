"""Cases of this study for the general tests: solves of conjugate gradients, descriptions of an application."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from random import Random

from haloscope import records
from haloscope_studies.davis2017.data import DATA
from haloscope_studies.davis2017.measured import cg, paired
from haloscope_studies.davis2017.replay import terms
from mutate import document_of, lines_of

SOLVES = Path(__file__).resolve().parents[1] / "results" / "cg.jsonl"
APPLICATION = json.loads((DATA / "hydra.json").read_text())


@functools.cache
def solves() -> list[dict]:
    """Every fifth of the measured solves."""
    return [json.loads(line) for line in SOLVES.read_text().splitlines()[::5]]


def of_solves(random: Random) -> bytes:
    """The solves, changed by chance."""
    return lines_of(random, solves())


def put_beside_records(file: Path) -> Path:
    """Rename a file to that of the conjugate gradients of records; return the records."""
    from reports import skipped_study
    from test_records import write

    file.replace(file.with_name("study-cg.jsonl"))
    return write(file.with_name("study.jsonl"), *skipped_study("davis2017", sizes=(8, 10, 12)))


def use_solves(file: Path) -> None:
    """Make all that the study makes of solves."""
    found = records.read(file, records.CG).records
    cg.tables(found)
    paired.lines({}, found)


FILES_OF_COMMANDS = {
    "conjugate gradients": (of_solves, lambda file: ("study", "davis2017", "--from", put_beside_records(file)))
}
FILES_OF_READERS = {
    "conjugate gradients": (of_solves, use_solves),
    "application": (lambda random: document_of(random, APPLICATION), terms.load),
}
READERS = {"application": terms.load}
OF_THE_RANK_PROGRAM = {
    "run-cg": ("cg3d", "--cells", "8x8x8", "--steps", "2", "--repetitions", "2", "--verify", "2"),
}
CALIBRATED = {"hydro3d": ("hydro3d", "laplace3d")}
REORDERED = {"cg3d": None}
WITHOUT_PRICE = {"temporaries": {"app": "hydro3d", "cells": (32,) * 3, "process_grid": "1x2x2", "temporaries": "freed"}}
FUZZED = {
    "hydro3d": {
        "app": "hydro3d",
        "cells": [24, 24, 24],
        "ranks": 4,
        "reorder": "nodes",
        "nodes": 2,
        "placement": "round-robin",
    }
}
