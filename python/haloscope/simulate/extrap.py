"""Simulated times in the input format of Extra-P, JSON Lines."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

from haloscope import outputs
from haloscope.bridge import Choice


def write(made: list, path: Path) -> None:
    """Write the measurements of simulations to a file. Raises as `outputs.writing` does."""
    outputs.write(path, outputs.POINTS, "".join(f"{json.dumps(line)}\n" for line in measurements(made)))


def measurements(made: list) -> list[dict]:
    """Return simulated seconds per step in the input format of Extra-P: one line per point and operation.

    Parameters are the ranks and, if they vary, cells, threads and depth; app, schedule, strategy and operation are part
    of the call path. Extra-P ignores the origin.
    """
    axes: dict[str, Callable[[Choice], int]] = {
        "ranks": lambda c: c.ranks,
        "cells": lambda c: math.prod(c.cells),
        "threads": lambda c: c.threads,
        "depth": lambda c: c.depth,
    }
    used = {name: of for name, of in axes.items() if name == "ranks" or len({of(r.choice) for r, _ in made}) > 1}
    lines = []
    for request, s in made:
        choice = request.choice
        params = {name: of(choice) for name, of in used.items()}
        path = f"{choice.app} {choice.schedule} {choice.strategy}"
        times = {path: s.time_s} | {f"{path}->{kind}": t for kind, t in s.by_operation.items() if t > 0}
        lines += [
            {"origin": outputs.SIMULATED, "params": params, "callpath": p, "metric": "simulated_s", "value": t}
            for p, t in times.items()
        ]
    return lines
