"""Figure `davis2017`, the measured study of a hydrodynamics code: the share of the time that its timers name, the error
of the walltime composed of components, and the errors of its model at sizes that no cost was fitted to.

The script measures the study's scaling runs and stores the records in results/runs.jsonl.xz of the study. `python
studies/davis2017/bench/davis2017.py --kept` prints the figures of the stored records again.
"""

from __future__ import annotations

import dataclasses
import lzma
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from haloscope import records
from haloscope.measure import launch
from haloscope.measure.campaign import Campaign
from haloscope.measure.space import Space
from haloscope.records.rows import Row, group_rows
from haloscope.report import components
from haloscope.studies import Options
from haloscope_studies.davis2017 import study
from haloscope_studies.davis2017.measured import experiments, scaling

STUDY = Path(__file__).resolve().parents[1]
ROOT = STUDY.parents[1]
sys.path.append(str(ROOT / "bench"))

from statistic import line, resampled  # found by the line above

FIGURE = "davis2017"
KEPT = STUDY / "results" / "runs.jsonl.xz"
SCRATCH = ROOT / "out" / "davis2017.jsonl"
SIZES = (24, 32, 40, 48, 56, 64, 72, 80, 96)
LARGE = 64  # cells per side from which timers and composition are judged: smaller steps last a few milliseconds


def options(quick: bool) -> Options:
    """Return the study's options: short runs of more sizes than `--quick` has."""
    return dataclasses.replace(
        study.DEFAULTS["quick"], sizes=SIZES[::2] if quick else SIZES, launches=2 if quick else 4, cores=launch.cores()
    )


def wanted(chosen: Options) -> dict:
    """Return the scaling runs of the studied set-up and of conjugate gradients."""
    points = [*experiments.scalings(chosen), *experiments.scalings(chosen, experiments.CG)]
    return {point: experiments.request(point, chosen) for point in points}


def report_timers(rows: Sequence[Row], launches: int) -> None:
    """Print the share of the time that no timer names, and the error of the composed walltime."""
    serial = [r for r in rows if r.request.get("ranks", 1) == 1]
    unnamed = [1 - components.named_share(r.records) for r in serial]
    notes = f"{len(serial)} serial sizes from {LARGE}^3 on; part of the walltime that no timer names"
    line(FIGURE, "time without a name", resampled(unnamed, np.median, launches), "<=", 0.005, notes)
    off = [abs(components.composed(r.records) / components.step_time(r.records) - 1) for r in rows]
    notes = f"{len(rows)} runs; largest work and least waiting over ranks against the walltime"
    line(FIGURE, "composed walltime, median error", resampled(off, np.median, launches), "<=", 0.015, notes)


def report_iterations(found: Sequence, launches: int) -> None:
    """Print the median error of the model's iterations of conjugate gradients on held-out sizes."""
    lists = scaling.error_lists(found)
    steps, least = lists["serial"] + lists["parallel"], float(np.median(lists["repeatability"]))
    notes = f"{len(steps)} values of held-out sizes; halves of the launches differ by {least:.1%} (median)"
    case = "iteration of cg3d, median error of the model"
    line(FIGURE, case, resampled(steps, np.median, launches), "<=", max(0.08, 1.5 * least), notes)


def report_errors(found: Sequence, launches: int) -> None:
    """Print medians of the model's errors on held-out sizes."""
    lists = scaling.error_lists(found)
    least = float(np.median(lists["repeatability"]))
    for name, bar in (("serial", 0.03), ("parallel", 0.08), ("components", 0.15)):
        notes = f"{len(lists[name])} values of held-out sizes; halves of the launches differ by {least:.1%} (median)"
        case = f"{name}, median error of the model"
        line(FIGURE, case, resampled(lists[name], np.median, launches), "<=", max(bar, 1.5 * least), notes)


def main() -> None:
    """Measure (--kept: read the stored records), print one JSON line per figure; without options, store the records."""
    quick, kept = "--quick" in sys.argv, "--kept" in sys.argv
    chosen = options(quick)
    runs = wanted(chosen)
    if not kept:
        SCRATCH.parent.mkdir(parents=True, exist_ok=True)
        SCRATCH.unlink(missing_ok=True)
        Campaign(Space(list(runs.values())), SCRATCH, launches=chosen.launches, label="measuring hydro3d").run()
    rows = {row.id: row for row in group_rows(records.read(KEPT if kept else SCRATCH).records)}
    measured = {p: rows[r.id] for p, r in runs.items() if r.id in rows}
    large = [row for p, row in measured.items() if p.app == experiments.APP and p.side >= LARGE]
    report_timers(large, chosen.launches)
    report_errors(scaling.errors(measured), chosen.launches)
    report_iterations(scaling.errors(measured, app=experiments.CG), chosen.launches)
    if not (quick or kept):
        KEPT.write_bytes(lzma.compress(SCRATCH.read_bytes(), preset=9))


if __name__ == "__main__":
    main()
