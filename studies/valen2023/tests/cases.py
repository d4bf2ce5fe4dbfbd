"""Cases of this study for the general tests."""

from __future__ import annotations

import dataclasses
import functools
from random import Random

from haloscope import records
from haloscope_studies.valen2023 import study
from mutate import lines_of


@functools.cache
def measured() -> list[dict]:
    """The options of a study of two depths, and its measurements."""
    from test_records import measurement

    options = dataclasses.replace(study.DEFAULTS["quick"], sizes=(64,), depths=(1, 2))
    found = [records.of_study("valen2023", dataclasses.asdict(options))]
    for request in study.plan(options).requests:
        own = {name: value for name, value in request.request().items() if name != "process_grid"}
        found += [measurement(request.id, f"launch-{k}", (0.1, 0.11), **own) for k in (1, 2)]
    return found


def of_records(random: Random) -> bytes:
    """The options and records of a study of two depths, changed by chance."""
    return lines_of(random, measured())


FILES_OF_COMMANDS = {"study": (of_records, lambda file: ("study", "valen2023", "--from", file))}
APPENDING = {"study": ("study", "valen2023", "--quick")}
READING = {"study": ("valen2023", "--from")}
