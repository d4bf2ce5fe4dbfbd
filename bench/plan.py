"""Figure `plan`: how long the whole process `haloscope plan ... --ranks 2048` takes, start of Python included."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

RUNS = 20
CASES = {
    "2048 ranks, 3D": ["advection3d", "--cells", "420x420x420", "--strategy", "ordered/p2p"],
    "2048 ranks, 3D, 26 messages a rank": ["advection3d", "--cells", "420x420x420", "--strategy", "direct/p2p"],
}
BAR_S = 1.0


def seconds(command: list[str]) -> float:
    """Run a command to its end and return the wall time. Raises CalledProcessError when it fails."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    """Print one JSON line per case: the times of all runs and the bar."""
    program = str(Path(sys.executable).with_name("haloscope"))
    commands = {name: [program, "plan", *words, "--ranks", "2048"] for name, words in CASES.items()}
    samples = {name: [] for name in CASES}
    for command in commands.values():
        seconds(command)  # fills the file cache
    for _ in range(RUNS):
        for name, command in commands.items():
            samples[name].append(seconds(command))
    for name, times in samples.items():
        line = {"figure": "plan", "case": name, "unit": "s", "samples_a": times, "value": "a", "bar": BAR_S}
        print(json.dumps({**line, "direction": "<="}), flush=True)


if __name__ == "__main__":
    main()
