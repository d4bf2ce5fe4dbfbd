"""Figure `subnormal`: the slowdown of the blocks of lines whose numbers have left the normal range.

The front of poisson2d's solution moves inwards from the border, and ahead of it numbers are subnormal: there a sweep
takes longer on many CPUs, not on all, and flushing to zero should prevent this. On a CPU that does not slow down, the
figure has no bar, and its line notes this.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from haloscope import records
from haloscope_studies.schroeter2021 import partdiff

FIGURE = "subnormal"
NO_SLOWER = "this CPU does not slow down"
Pairs = list[tuple[float, float]]  # seconds of a slow block (their mean) and of the median block


@dataclass(frozen=True)
class Problem:
    """A problem, and the position of its front. bands: the blocks in the front, by the last iteration of a window."""

    name: str
    interlines: int
    steps: int
    blocks: int
    window: int
    bands: Mapping[int, Sequence[int]]
    runs: int

    def pairs(self, *words: str) -> Pairs:
        """Run it once, alone on one core, and return the pair of each window. Raises CalledProcessError."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "r.jsonl"
            settings = {
                "interlines": self.interlines,
                "steps": self.steps,
                "work-blocks": self.blocks,
                "output": file,
                "work-window": self.window,
                "ranks": 1,
                "launches": 1,
                "repetitions": 1,
                "warmup": 0,
                "verify": 0,
            }
            options = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
            command = [sys.executable, "-m", "haloscope.cli", "run", "poisson2d", *options, *words]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            (record,) = records.read(file).measurements
        return self.of_work(record["app"]["work_seconds"])

    def of_work(self, seconds: Sequence[Sequence[float]]) -> Pairs:
        """Return the pairs of a record's seconds by window and block."""
        rows = {end: seconds[(end - 1) // self.window] for end in self.bands}
        return [(statistics.mean(row[b] for b in self.bands[end]), statistics.median(row)) for end, row in rows.items()]


CASES = (
    Problem("256 interlines, iteration 600", 256, 600, 48, 50, {600: (13, 34)}, 20),
    # The slow ranks of 16 in the study, by iteration.
    Problem("512 interlines, iterations 2500 and 5000", 512, 5000, 16, 100, {2500: (5, 10), 5000: (7, 8)}, 3),
)


def report(case: Problem, usual: Pairs, flushed: Pairs) -> None:
    """Print the two lines of a case: by default (no bar: it depends on the CPU only), and flushed to zero."""
    slow = statistics.median(a / b for a, b in usual) > partdiff.SLOW
    bar = partdiff.SLOW if slow else None
    for name, pairs, judged in ((case.name, usual, None), (f"{case.name}, flushed to zero", flushed, bar)):
        line = {"figure": FIGURE, "case": name, "unit": "ratio", "value": "a/b", "direction": "<=", "bar": judged}
        line |= {"a": "blocks at the front", "b": "median block", "notes": "" if slow else NO_SLOWER}
        print(json.dumps(line | {"samples_a": [a for a, _ in pairs], "samples_b": [b for _, b in pairs]}), flush=True)


def main() -> None:
    """Measure every case by default and flushed to zero in turn. With --quick: only the first case, twice."""
    quick = "--quick" in sys.argv
    for case in CASES[: 1 if quick else None]:
        usual, flushed = [], []
        for _ in range(2 if quick else case.runs):
            usual += case.pairs()
            flushed += case.pairs("--ftz", "on")
        report(case, usual, flushed)


if __name__ == "__main__":
    main()
