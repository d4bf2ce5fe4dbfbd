"""Findings of the 2017 study: the printed values behind them, and verdicts of made-up runs, both ways."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable

import pytest

from haloscope.records.rows import Row, group_rows
from haloscope.studies import Options
from haloscope.studies.findings import FAILS, HOLDS, NEEDS, UNCLEAR
from haloscope_studies.davis2017 import findings, study
from haloscope_studies.davis2017.measured import experiments
from haloscope_studies.davis2017.measured.experiments import Point
from reports import made_up
from test_davis2017_study import linear
from test_davis2017_study import made_up as made_up_row
from test_records import measurement

SMALL = dataclasses.replace(study.DEFAULTS["quick"], sizes=(16, 20, 24), cores=16)
TWO_CORES = dataclasses.replace(SMALL, cores=2)
LAUNCHES = 4
ELSEWHERE = {"accuracy": "more than one node", "mapping": "two sockets"}  # findings that no run here can judge

Change = Callable[[Point, int], float]  # of the seconds of a run in a launch


def of(letter: str) -> Callable[[Point], bool]:
    return lambda p: (p.app, p.letter) == (experiments.APP, letter)


# Finding -> the runs that are changed, and the factors of their time with which it holds and does not.
STEPS = {
    "barrier": (lambda p: p.experiment == "barrier", 1.01, 1.2),
    "rows": (of("A"), 1.3, 0.8),
    "arrays": (of("C"), 1.2, 0.8),
    "direct": (of("F"), 1.0, 1.2),
    "overlap": (of("H"), 1.2, 0.8),
    "threads": (of("I"), 1.2, 0.8),
    "pieces": (lambda p: p.experiment == "pieces" and p.piece == 1, 1.2, 0.8),
    "comm-thread": (of("K"), 1.2, 0.8),
    "single-reduction": (lambda p: p.experiment == "single-reduction", 1.1, 0.9),
}
PARTS = {
    "held-out": (lambda p: p.side == 20, 1.0, 1.3),
    "contention": (lambda p: p.experiment == "weak", 1.2, 0.8),
    "vectors": (of("D"), 1.3, 0.8),
}
WHOLE = {"composition": (lambda p: p.pes > 1, 1.0, 1.05)}


def rows(make: Callable[[Point, int], dict], options: Options) -> dict[Point, Row]:
    """Return a row of each planned point, with some launches."""
    names = {launch: {"launch": {"id": f"launch-{launch}"}} for launch in range(LAUNCHES)}
    return {
        point: group_rows([make(point, launch) | name for launch, name in names.items()])[0]
        for point in experiments.planned(options)
    }


def with_steps(change: Change) -> dict[Point, Row]:
    """Return rows whose steps take the seconds of the change."""

    def make(point: Point, launch: int) -> dict:
        return measurement(seconds=[change(point, launch)], steps=1)

    return rows(make, SMALL)


@functools.cache
def timed_record(point: Point) -> dict:
    """Return a record whose parts take linear costs, and whose time is their sum."""
    return made_up_row(experiments.request(point, SMALL).choice, linear, launches=1).records[0]


def with_parts(change: Change, whole: Change = lambda *_: 1.0) -> dict[Point, Row]:
    """Return rows whose parts take their costs times the change; whole: factor of the time of all parts."""

    def make(point: Point, launch: int) -> dict:
        record, factor = copy.deepcopy(timed_record(point)), change(point, launch)
        for spread in [t["seconds"] for t in record["timers"]] + list(record["components_s"].values()):
            spread.update({statistic: factor * seconds for statistic, seconds in spread.items()})
        record["time_s"]["repetitions"] = [factor * s * whole(point, launch) for s in record["time_s"]["repetitions"]]
        return record

    return rows(make, TWO_CORES)


def verdict(measured: dict[Point, Row], name: str) -> str:
    return next(f.here.verdict for f in findings.judged(measured) if f.name == name)


def changes(changed: Callable[[Point], bool], holds: float, fails: float) -> dict[str, Change]:
    """Return the change of the changed runs for each verdict: unclear where launches take turns."""
    return {
        HOLDS: lambda p, _: holds if changed(p) else 1.0,
        FAILS: lambda p, _: fails if changed(p) else 1.0,
        UNCLEAR: lambda p, launch: (holds, fails)[launch % 2] if changed(p) else 1.0,
    }


@pytest.mark.parametrize("name", [f.name for f in findings.judged({})])
def test_every_finding_turns_with_the_runs_unless_it_needs_another_machine(name):
    if name in ELSEWHERE:
        assert verdict(with_steps(lambda *_: 1.0), name) == NEEDS
        return
    [(case, make)] = [
        (cases[name], make)
        for cases, make in (
            (STEPS, with_steps),
            (PARTS, with_parts),
            (WHOLE, lambda change: with_parts(lambda *_: 1.0, change)),
        )
        if name in cases
    ]
    for expected, change in changes(*case).items():
        assert verdict(make(change), name) == expected, expected


def test_a_communicating_thread_is_judged_from_twelve_cores_on_only():
    few = {p: row for p, row in with_steps(lambda *_: 1.0).items() if p.pes < 12}
    [found] = [f.here for f in findings.judged(few) if f.name == "comm-thread"]
    assert str(found) == "needs 12 cores"


def test_runs_with_wrong_results_judge_no_finding():
    measured = with_steps(lambda *_: 1.0)
    for row in measured.values():
        row.records[-1]["verification"]["status"] = "failed"
    assert {f.here.verdict for f in findings.judged(measured)} == {NEEDS}


def test_records_of_the_study_judge_its_findings():
    planned = [r for r in study.plan(SMALL).requests if r.choice.app == experiments.APP]
    found = made_up(planned, lambda choice: 1.5 if choice.form == "lines" else 1.0, LAUNCHES)
    verdicts = {f.name: f.here.verdict for f in study.findings(found, SMALL)}
    assert verdicts["rows"] == HOLDS and verdicts["overlap"] == UNCLEAR
    assert {f.name: str(f.here) for f in study.findings((), SMALL)}.items() >= {
        name: f"needs {what}" for name, what in ELSEWHERE.items()
    }.items()


@pytest.mark.parametrize(
    ("numbers", "ends", "count"),
    [
        (findings.validated()["minerva"], (1 - 0.0912, 1 + 0.0623), 24),
        (findings.validated()["dawndev"], (1 - 0.1401, 1 - 0.0413), 12),
        (findings.validated()["hera"], (1 - 0.1349, 1 + 0.0781), 14),
        (findings.slowed_computing(), (425.68 / 382.08, 8.44 / 3.15), 6),
        (findings.spread_over_sockets(), (655.61 / 581.63, 671.10 / 584.44), 2),
        (findings.printed_ratios("OpenMPI-1.4.3", "A", "B"), (54.62 / 45.08, 1941.77 / 1355.32), 24),
        (findings.printed_ratios("OpenMPI-1.4.3", "C", "B"), (16.27 / 15.13, 47.25 / 38.23), 24),
        (findings.printed_ratios("OpenMPI-1.4.3", "F", "C"), (387.49 / 387.85, 30.44 / 29.24), 18),
        (findings.printed_ratios("OpenMPI-1.4.3", "H", "G", least=2), (31.60 / 30.83, 766.49 / 658.24), 16),
        (findings.printed_ratios("OpenMPI-1.4.4", "I", "C"), (568.82 / 562.57, 27.36 / 19.80), 14),
        (findings.printed_ratios("OpenMPI-1.4.4", "K", "L", least=12), (336.44 / 326.94, 985.88 / 892.63), 10),
        (findings.printed_pieces(), (337.70 / 324.67, 337.70 / 264.34), 6),
        (findings.printed_reductions(), (12.1 / 11.2, 12.0 / 9.72), 24),
    ],
)
def test_printed_ratios_are_those_of_the_digest(numbers, ends, count):
    assert (min(numbers), max(numbers)) == pytest.approx(ends, abs=5e-4) and len(numbers) == count


def test_the_printed_numbers_bear_the_findings_out():
    assert findings.typical_composition() == pytest.approx(1.003, abs=1e-3)
    assert all(f.printed.verdict == HOLDS for f in findings.judged({}))
