"""Figure `accuracy`: predictions for configurations that the calibration never ran, against measured times.

The script calibrates this machine, measures every held-out case with all of its choices, and measures the model's pick
and the fastest again, interleaved. It stores everything in results/accuracy/, together with the held-out cases of the
previous run, which show the difference between two runs on this machine. `python bench/accuracy.py --kept` prints the
figures of the stored records again.
"""

from __future__ import annotations

import dataclasses
import lzma
import math
import random
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from statistic import line, resampled

from haloscope import bridge, records
from haloscope.advice import validate
from haloscope.measure.campaign import Campaign
from haloscope.measure.request import Request
from haloscope.measure.space import Space
from haloscope.model import profile as profiles
from haloscope.records import stats
from haloscope.records.rows import group_rows

FIGURE = "accuracy"
ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "results" / "accuracy"
HELD_OUT, EARLIER = "held-out.jsonl.xz", "earlier.jsonl.xz"  # in KEPT: of the stored run, and of the previous one
SCRATCH = ROOT / "out" / "accuracy"
LAUNCHES = 4  # their halves show the expected deviation of a repetition
FOLDS = 4  # of the grids: intervals from three of them for the fourth
CONFIRMED = 5  # launches in which the pick and the fastest are measured again
SETTINGS = {"seconds": 0.04, "repetitions": 2}
EXCHANGES = ("ordered/p2p", "ordered:merged,self-first/persistent", "ordered/shared", "ordered/rma-pscw")
# Strategy, schedule, depth, substeps; choices that are illegal for an app are left out.
CHOICES = (
    *((strategy, "bulk", depth, "full") for strategy in EXCHANGES for depth in (1, 4)),
    *((strategy, "split", 1, "full") for strategy in ("ordered/p2p", "ordered/shared")),
    ("ordered/p2p", "bulk", 4, "blocked"),
)
# Sides that no calibration contains.
SQUARES = (40, 90, 140, 200, 360, 720, 1400, 2800)
CUBES = (20, 30, 44, 56, 72, 112, 176)
# App, form, real, sides, process grid. Another process grid is another choice for the same case.
GRIDS = (
    ("laplace2d", "", "f64", SQUARES, "1x2"),
    ("laplace2d", "", "f64", SQUARES[::2], "2x1"),
    ("laplace2d", "", "f32", SQUARES, "1x2"),
    ("laplace3d", "", "f64", CUBES, "1x1x2"),
    ("laplace3d", "", "f64", CUBES[::2], "2x1x1"),
    ("laplace3d", "", "f32", CUBES, "1x1x2"),
    ("advection3d", "separable", "f64", CUBES, "1x1x2"),
    ("advection3d", "dense", "f64", CUBES, "1x1x2"),
)


def held_out(quick: bool = False) -> Iterator[Request]:
    """Yield every request: all choices of every case; quick: only every second side."""
    for app, form, real, sides, grid in GRIDS:
        for side in sides[:: 2 if quick else 1]:
            for strategy, schedule, depth, substeps in CHOICES:
                choice = bridge.Choice(
                    app,
                    (side,) * len(grid.split("x")),
                    ranks=2,
                    process_grid=grid,
                    form=form,
                    real=real,
                    strategy=strategy,
                    schedule=schedule,
                    depth=depth,
                    substeps=substeps,
                )
                if not bridge.illegal(choice):
                    yield Request.of(choice, **SETTINGS)


def calibrated(quick: bool) -> Path:
    """Calibrate this machine and return the profile. Raises CalledProcessError when that fails."""
    path = SCRATCH / "machine.json"
    there = str(path.relative_to(ROOT))  # the profile names its records, and is stored
    words = [sys.executable, "-m", "haloscope.cli", "calibrate", "-o", there, *(["--quick"] if quick else [])]
    subprocess.run(words, check=True, stdout=sys.stderr, cwd=ROOT)
    return path


def error_of(pair: validate.Pair, exchange: bool) -> float | None:
    """Return the relative error of a prediction, None for the exchange of a pair without exchange."""
    return pair.exchange_error if exchange else pair.error


Halves = tuple[list[validate.Pair], list[validate.Pair]]


def halved(measured: Sequence[dict], machine: profiles.Profile) -> Halves:
    """Predict the records of every second launch, and separately the records of the others."""
    names = sorted({r["launch"]["id"] for r in measured})
    first, second = (
        validate.validate([r for r in measured if r["launch"]["id"] in names[side::2]], machine, samples=0).pairs
        for side in (0, 1)
    )
    return list(first), list(second)


def floor(halves: Halves, exchange: bool) -> float:
    """Return the expected deviation of a repeated measurement at equal pace, as the median over the configurations.

    Halves of the launches differ by a factor of sqrt(2) more, since each contains only half of them.
    """
    return drift(*halves, exchange) / math.sqrt(2)


def drift(pairs: Sequence[validate.Pair], earlier: Sequence[validate.Pair], exchange: bool) -> float:
    """Return the deviation of an earlier run, as the median over the configurations, at equal pace: each run is
    compared with the prediction for its pace."""
    before = {pair.row.id: error_of(pair, exchange) for pair in earlier}
    both = [(error_of(pair, exchange), before.get(pair.row.id)) for pair in pairs]
    return float(np.median([abs(math.log((1 + a) / (1 + b))) for a, b in both if None not in (a, b)]))


def again(
    cases: Sequence[validate.MeasuredCase], file: Path, requests: Iterable[Request] = ()
) -> list[stats.Estimate | None]:
    """Return the ratio of the pick to the fastest of every case, both measured again together; None for the same one.

    requests: to measure again. Without any of them, the records of the file are used, and cases that it lacks are left
    out.
    """
    pairs = {case.pick.row.id: case.best.row.id for case in cases if case.pick is not case.best}
    wanted = {name for both in pairs.items() for name in both}
    if both := [request for request in requests if request.id in wanted]:
        Campaign(Space(both), file, launches=CONFIRMED, resume=True, label="confirming").run()
    rows = {row.id: row for row in group_rows(records.read(file).records)} if pairs else {}
    found = {
        pick: stats.ratio_of_launches(rows[pick].launches, rows[best].launches)
        for pick, best in pairs.items()
        if pick in rows and best in rows
    }
    return [found.get(case.pick.row.id) for case in cases if case.pick is case.best or case.pick.row.id in found]


@dataclasses.dataclass(frozen=True)
class Bars:
    """Bars of a figure of held-out configurations: errors as (median, 90th percentile), regret as (mean, worst)."""

    exchange: tuple[float, float]
    step: tuple[float, float]
    regret: tuple[float, float]
    launches: int  # number of launches that measured each configuration


BARS = Bars(exchange=(0.12, 0.25), step=(0.08, 0.15), regret=(1.05, 1.25), launches=LAUNCHES)


def report_errors(
    pairs: Sequence[validate.Pair],
    halves: Halves,
    bars: Bars = BARS,
    figure: str = FIGURE,
    earlier: Sequence[validate.Pair] = (),
) -> None:
    """Print median and 90th percentile of the errors of exchange and step. earlier: pairs of the previous run."""
    for quantity, exchange, (median_bar, p90_bar) in (("exchange", True, bars.exchange), ("step", False, bars.step)):
        errors = [abs(e) for p in pairs if (e := error_of(p, exchange)) is not None]
        least = floor(halves, exchange)
        notes = (
            f"{len(errors)} held-out configurations; measured again at equal pace they differ by {least:.1%} (median)"
        )
        if earlier:
            notes += f", in another run by {drift(pairs, earlier, exchange):.1%}"
        line(
            figure,
            f"{quantity} time, median error",
            resampled(errors, np.median, bars.launches),
            "<=",
            max(median_bar, 1.2 * least),
            notes,
        )
        line(
            figure,
            f"{quantity} time, 90th percentile",
            resampled(errors, lambda v: np.percentile(v, 90), bars.launches),
            "<=",
            p90_bar,
            notes,
        )


def grid_of(pair: validate.Pair) -> str:
    """Return the properties that similar configurations share: app, form, real and cells."""
    return str([pair.row.request[name] for name in ("app", "form", "real", "cells")])


def cross_fitted(
    measured: Sequence[dict], machine: profiles.Profile, pairs: Sequence[validate.Pair]
) -> list[validate.Pair]:
    """Predict each of FOLDS parts of the grids with intervals from the other grids."""
    grids = sorted({grid_of(pair) for pair in pairs})
    random.Random(0).shuffle(grids)
    found: list[validate.Pair] = []
    for fold in range(FOLDS):
        judged = set(grids[fold::FOLDS])
        residuals = validate.residuals([p for p in pairs if grid_of(p) not in judged])
        ids = {p.row.id for p in pairs if grid_of(p) in judged}
        with_intervals = profiles.checked(machine.data | {"held_out": residuals})
        found += validate.validate((r for r in measured if r["id"] in ids), with_intervals).pairs
    return found


def report_intervals(pairs: Sequence[validate.Pair], bars: Bars = BARS, figure: str = FIGURE) -> None:
    """Print the share of steps and of exchanges that lie in the intervals."""
    for quantity in ("step", "exchange"):
        found = validate.coverage(pairs, quantity == "exchange")
        share = found.inside / found.count
        estimate = stats.Estimate(share, share, share, found.count, bars.launches)
        notes = f"{found.inside} of {found.count} in {validate.NOMINAL:.0%} intervals from other grids"
        line(figure, f"intervals of the {quantity}, share held", estimate, ">=", 0.87, notes)
        line(figure, f"intervals of the {quantity}, share held, not more", estimate, "<=", 0.93, notes)


def report_regret(found: Sequence[stats.Estimate | None], bars: Bars = BARS, figure: str = FIGURE) -> None:
    """Print geometric mean and worst of the regrets, measured again."""
    fresh = [one for one in found if one]
    values = [one.value if one else 1.0 for one in found]
    notes = f"{len(found)} held-out cases, {len(fresh)} of them with another fastest than the pick, both measured again"
    mean = resampled(np.log(values), np.mean, CONFIRMED)
    ends = (math.exp(v) for v in (mean.value, mean.low, mean.high))
    line(
        figure,
        "regret of the pick, geometric mean",
        stats.Estimate(*ends, len(values), CONFIRMED),
        "<=",
        bars.regret[0],
        notes,
    )
    worst = max(fresh, key=lambda e: e.value, default=stats.Estimate(1.0, 1.0, 1.0, 0, CONFIRMED))
    line(
        figure,
        "regret of the pick, worst",
        dataclasses.replace(worst, samples=len(values)),
        "<=",
        bars.regret[1],
        notes,
    )


def main() -> None:
    """Measure (or with --kept read results/accuracy), store the records and print one JSON line per figure."""
    quick, kept = "--quick" in sys.argv, "--kept" in sys.argv
    if kept:
        machine, measured = profiles.load(KEPT / "machine.json.xz"), records.read(KEPT / HELD_OUT).records
        confirmed = KEPT / "confirmed.jsonl.xz"
    else:
        SCRATCH.mkdir(parents=True, exist_ok=True)
        machine, file, confirmed = (
            profiles.load(calibrated(quick)),
            SCRATCH / "held-out.jsonl",
            SCRATCH / "confirmed.jsonl",
        )
        for old in (file, confirmed):
            old.unlink(missing_ok=True)
        measured = Campaign(
            Space(list(held_out(quick))), file, launches=LAUNCHES, label="measuring held-out cases"
        ).run()
    found = validate.validate(measured, machine)
    before = KEPT / (EARLIER if kept else HELD_OUT)
    report_errors(
        found.pairs, halved(measured, machine), earlier=validate.validate(records.read(before).records, machine).pairs
    )
    report_intervals(cross_fitted(measured, machine, found.pairs))
    cases = validate.cases(found.pairs)
    report_regret(again(cases, confirmed, [] if kept else held_out()))
    if not (quick or kept):
        before.rename(KEPT / EARLIER)
        keep(SCRATCH, KEPT)


def keep(measured: Path, kept: Path) -> None:
    """Copy the profile of one folder and all records except the calibration's to another, compressed."""
    kept.mkdir(parents=True, exist_ok=True)
    for file in (measured / "machine.json", *measured.glob("*.jsonl")):
        if file.name != "machine.jsonl":
            (kept / f"{file.name}.xz").write_bytes(lzma.compress(file.read_bytes(), preset=9))


if __name__ == "__main__":
    main()
