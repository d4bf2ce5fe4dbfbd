"""Figures of the wall time of whole processes, start of Python included."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

RUNS, QUICK_RUNS = 20, 2
HALOSCOPE = str(Path(sys.executable).with_name("haloscope"))


def seconds(command: list[str]) -> float:
    """Run a command to its end and return the wall time. Raises CalledProcessError when it fails."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def report(figure: str, cases: Mapping[str, tuple[list[str], float]]) -> None:
    """Run every case's command in turn and print one JSON line per case. cases: commands with the bar in seconds."""
    for command, _ in cases.values():
        seconds(command)  # fills the file cache
    samples = {name: [] for name in cases}
    for _ in range(QUICK_RUNS if "--quick" in sys.argv else RUNS):
        for name, (command, _) in cases.items():
            samples[name].append(seconds(command))
    for name, (_, bar) in cases.items():
        line = {"figure": figure, "case": name, "unit": "s", "samples_a": samples[name], "value": "a", "bar": bar}
        print(json.dumps({**line, "direction": "<="}), flush=True)
