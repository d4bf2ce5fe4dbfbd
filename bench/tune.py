"""Figure `tune`: regret of the pick of `haloscope tune`, found in a tenth of the time of measuring every candidate.

For every case all candidates are enumerated and searched in the manner of `haloscope tune`, without its last re-run.
Then each candidate is measured, and the pick and the three fastest again, interleaved. The regret is the time of the
pick over the time of the one that is then the fastest, so it is never below 1. Records and decisions are stored in
results/tune/; `python bench/tune.py --kept` prints the figures of the stored records again. `--cases N`: only N cases.
"""

from __future__ import annotations

import dataclasses
import json
import lzma
import math
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from statistic import line, resampled

from haloscope import bridge, records
from haloscope.advice import tune, tuning
from haloscope.measure import isolated
from haloscope.measure.request import Request
from haloscope.model import profile as profiles
from haloscope.options.request import measured_space
from haloscope.records import stats
from haloscope.records.rows import Row, group_rows

FIGURE = "tune"
ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "results" / "tune"
SCRATCH = ROOT / "out" / "tune"
# App and side; sizes that no calibration contains.
CASES = (
    ("laplace2d", 140),
    ("advection3d", 44),
    ("laplace3d", 112),
    ("laplace2d", 720),
    ("advection3d", 20),
    ("laplace3d", 30),
)
STRATEGIES = (
    "ordered/p2p",
    "ordered:merged,self-first/persistent",
    "ordered/shared",
    "ordered/rma-pscw",
    "ordered/neighbor",
    "direct:merged/p2p",
)
SPACE = {
    "ranks": "2",
    "strategy": ",".join(STRATEGIES),
    "schedule": "bulk,split",
    "depth": "1,2,4,8",
    "substeps": "*",
    "given_set": (),
}
ROUNDS = (tune.Length(0.02, 3), tune.Length(0.05, 3), tune.Length(0.1, 3))  # shortened: all are measured too
FINALISTS = 3  # fastest of all, measured again with the pick: a single measurement may be fast by chance
CONFIRMED = tune.Length(0.1, 5), 5  # length and number of launches of this second measurement


@dataclass(frozen=True)
class Outcome:
    """The result of one case: ids of the pick and the fastest ones, number of candidates, seconds spent on either."""

    case: str
    pick: str
    best: list[str]
    candidates: int
    searching_s: float
    measuring_all_s: float

    @property
    def share(self) -> float:
        """Time of the search as a part of the time of measuring all."""
        return self.searching_s / self.measuring_all_s


def calibrated(path: Path) -> Path:
    """Calibrate this machine quickly into a profile. Raises CalledProcessError when that fails."""
    words = [sys.executable, "-m", "haloscope.cli", "calibrate", "--quick", "-o", str(path)]
    subprocess.run(words, check=True, stdout=sys.stderr)
    return path


def candidates(app: str, side: int) -> list[Request]:
    """Return the candidates of one case."""
    options = SPACE | {"cells": str(side)}
    return tuning.plan(measured_space(bridge.find_app(app), options), options).requests


def decided(app: str, side: int, machine: profiles.Profile) -> Outcome:
    """Search one case, measure all of its candidates, and the pick and the finalists again; records go to SCRATCH."""
    name = f"{app}-{side}"
    measurer = isolated.Isolated(SCRATCH / f"{name}.jsonl")
    order = tune.order(candidates(app, side), machine)
    trials = tune.TrialRounds(order.candidates, measurer.once, rounds=ROUNDS).run()
    ranking, seconds = tune.exhaustively(order.candidates, measurer.once, ROUNDS[-1])
    pick, best = trials.ranking[0].request, ranking[:FINALISTS]
    length, launches = CONFIRMED
    tune.rerun(measurer.paired, [pick, *best], launches, "again", length)
    print(f"tune: {name}: {trials.spent_s:.1f} s for {pick.id}, {seconds:.1f} s for {best[0].id}", file=sys.stderr)
    return Outcome(f"{app} {side}", pick.id, [c.id for c in best], len(order.candidates), trials.spent_s, seconds)


def regret(outcome: Outcome, rows: dict[str, Row]) -> float:
    """Return the time of the pick over the least time of the finalists and the pick, paired by launch, at least 1."""
    ratios = (stats.ratio_of_launches(rows[outcome.pick].launches, rows[name].launches) for name in outcome.best)
    return max(1.0, *(ratio.value for ratio in ratios))


def report(outcomes: list[Outcome], again: list[dict]) -> None:
    """Print the regret over all cases and the part of the time spent. again: records of the second measurements."""
    rows = {row.id: row for row in group_rows(again)}
    regrets = [regret(o, rows) for o in outcomes]
    launches = CONFIRMED[1]
    each = "; ".join(f"{o.case}: {value:.3f}" for o, value in zip(outcomes, regrets, strict=True))
    found = resampled(np.log(regrets), np.mean, launches)
    value, low, high = (math.exp(v) for v in (found.value, found.low, found.high))
    mean = stats.Estimate(value, low, high, len(regrets), launches)
    line(FIGURE, "regret of what was found, geometric mean", mean, "<=", 1.02, f"2 ranks; {each}")
    counts = sorted(o.candidates for o in outcomes)
    note = f"all: one launch of each of the {counts[0]} to {counts[-1]} candidates of a case, as long as the last round"
    shares = resampled([o.share for o in outcomes], np.mean, 1)
    line(FIGURE, "time of searching over measuring all, mean", shares, "<=", 0.1, note)


def keep() -> None:
    """Store profile, records and decisions in the repository."""
    KEPT.mkdir(parents=True, exist_ok=True)
    (KEPT / "machine.json.xz").write_bytes(lzma.compress((SCRATCH / "machine.json").read_bytes(), preset=9))
    again = sorted(SCRATCH.glob("*-again.jsonl"))
    searched = [file for file in sorted(SCRATCH.glob("*-*.jsonl")) if file not in again]
    for name, files in (("cases", [SCRATCH / "cases.jsonl"]), ("searched", searched), ("again", again)):
        text = b"".join(file.read_bytes() for file in files)
        (KEPT / f"{name}.jsonl.xz").write_bytes(lzma.compress(text, preset=9))


@click.command()
@click.option("--kept", is_flag=True, help="Measure nothing: print the figures of results/tune again.")
@click.option("--quick", is_flag=True, help="One case, not kept.")
@click.option(
    "--cases",
    "count",
    type=click.IntRange(1, len(CASES)),
    default=len(CASES),
    help="Number of cases; fewer than all are not kept.",
)
def main(kept: bool, quick: bool, count: int) -> None:
    """Measure (or with --kept read results/tune) and print one JSON line per figure."""
    if kept:
        text = lzma.decompress((KEPT / "cases.jsonl.xz").read_bytes()).decode()
        outcomes = [Outcome(**json.loads(each)) for each in text.splitlines()]
        report(outcomes, records.read(KEPT / "again.jsonl.xz").records)
        return
    SCRATCH.mkdir(parents=True, exist_ok=True)
    for old in SCRATCH.glob("*.jsonl"):
        old.unlink()
    machine = profiles.load(calibrated(SCRATCH / "machine.json"))
    outcomes = [decided(app, side, machine) for app, side in CASES[: 1 if quick else count]]
    (SCRATCH / "cases.jsonl").write_text("".join(f"{json.dumps(dataclasses.asdict(o))}\n" for o in outcomes))
    report(outcomes, [r for file in sorted(SCRATCH.glob("*-again.jsonl")) for r in records.read(file).records])
    if len(outcomes) == len(CASES):
        keep()


if __name__ == "__main__":
    main()
