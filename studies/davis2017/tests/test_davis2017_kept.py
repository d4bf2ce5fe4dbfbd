"""The kept runs of hydro3d against bars of the checklist."""

from __future__ import annotations

import dataclasses
import statistics
from pathlib import Path

import keep
import pytest

from haloscope import records
from haloscope.records.rows import Row
from haloscope.report import components
from haloscope.studies import running
from haloscope.studies.findings import HOLDS, judge_cases
from haloscope_studies.davis2017 import findings, study
from haloscope_studies.davis2017.measured import launches, scaling
from haloscope_studies.davis2017.measured.experiments import APP
from haloscope_studies.davis2017.measured.scaling import Measured

KEPT = Path(__file__).resolve().parents[1] / "results" / "runs.jsonl.xz"
SIZES = (24, 32, 40, 48, 56, 64, 72, 80, 96)
LARGE = 64  # cells per side: smaller steps last a few milliseconds


@pytest.fixture(scope="module")
def serial() -> dict[int, Row]:
    """The serial runs of the studied set-up, by cells per side."""
    options = dataclasses.replace(study.DEFAULTS["quick"], sizes=SIZES, cores=2)
    measured = study.measured_points(records.read(KEPT).records, options)
    return {p.side: row for p, row in measured.items() if (p.app, p.experiment, p.letter) == (APP, "serial", "A")}


@pytest.mark.ids("DB1")
def test_named_timers_add_up_to_the_serial_walltime_but_for_half_a_percent(serial):
    large = [row for side, row in serial.items() if side >= LARGE]
    assert len(large) == 4
    for row in large:
        for record in row.records:
            named = sum(t["seconds"]["mean"] for t in record["timers"] if t["component"] != "rest")
            walltime = statistics.fmean(records.step_times(record))
            assert named == pytest.approx(walltime, rel=0.005), record["id"]


@pytest.mark.ids("DA8")
def test_memory_management_takes_longer_the_more_cells_there_are(serial):
    spent = [components.component(serial[side].records, "memory", "max") for side in sorted(serial)]
    assert spent == sorted(spent) and spent[0] > 0 and len(set(spent)) == len(SIZES)


@pytest.mark.ids("DA12")
def test_the_remap_has_the_share_of_the_time_that_the_studied_one_has(serial):
    """Madv takes 60 to 70 % of the serial time: here the stages of the remap, with their exchanges and boundaries."""
    for side in (side for side in serial if side >= LARGE):
        assert 0.6 <= statistics.median(map(share_of_the_remap, serial[side].records)) <= 0.7, side


def share_of_the_remap(record: dict) -> float:
    seconds = [(t["stage"], t["seconds"]["max"]) for t in record["timers"]]
    return sum(s for stage, s in seconds if stage.startswith(("cells-", "nodes-"))) / sum(s for _, s in seconds)


# ---- the kept run of the whole study ---------------------------------------------------------------------------------


def kept(name: str) -> Measured:
    """Return the runs that `make studies` has measured."""
    file = keep.KEPT / name / "records.jsonl.xz"
    return study.measured_points(*reversed(running.options_and_records(study, "davis2017", False, {}, [file])))


@pytest.fixture(scope="module")
def studied() -> Measured:
    return kept("davis2017")


@pytest.fixture(scope="module")
def of_hosts() -> Measured:
    """The runs on two hosts of an emulated cluster."""
    return kept("davis2017-lab")


@pytest.mark.ids("DE1")
def test_x_innermost_is_a_fifth_faster_than_the_order_of_the_remap_from_100_cells_on(studied):
    large = {point: row for point, row in studied.items() if point.side >= 100}
    assert judge_cases(findings.against(large, "A", "B"), low=1.2, lacking="runs of A and B").verdict == HOLDS


@pytest.mark.ids("DE2")
def test_vectors_make_kernels_that_compute_much_a_third_faster(studied):
    assert judge_cases(findings.vectorised(studied), low=1.3, lacking="runs of D and E").verdict == HOLDS


@pytest.mark.ids("DB2")
def test_components_add_up_to_the_walltime_of_balanced_runs(studied):
    balanced = {
        p: r for p, r in studied.items() if (p.app, p.letter) == (APP, "A") and p.experiment in ("weak", "strong")
    }
    off = {
        p: components.composed(r.records) / components.step_time(r.records) for p, r in balanced.items() if p.pes > 1
    }
    assert len(off) >= 4 and all(abs(ratio - 1) <= 0.015 for ratio in off.values()), off


@pytest.mark.ids("DB6")
def test_a_barrier_before_each_exchange_makes_runs_less_than_5_percent_longer_in_the_mean(studied, of_hosts):
    for runs in (studied, of_hosts):
        [(barriered, plain)] = findings.with_barriers(runs)
        means = {n: statistics.fmean(barriered[n]) / statistics.fmean(plain[n]) for n in barriered if n in plain}
        assert len(means) >= 3 and statistics.geometric_mean(means.values()) < 1.05, means


@pytest.mark.ids("DE3")
def test_messages_to_all_26_neighbours_cost_no_more_than_one_percent(studied):
    cases = findings.against(studied, "F", "E")
    assert judge_cases(cases, high=1.01, lacking="runs of E and F").verdict == HOLDS


@pytest.mark.ids("DG2")
def test_parts_of_the_kept_product_have_all_its_timers_but_the_reduction_over_ranks(studied):
    [row] = [row for p, row in studied.items() if p.experiment == "product"]
    parts = {
        part: [launches.mean(row, scaling.of_product(part, statistic)).value for statistic in ("min", "mean", "max")]
        for part in scaling.PARTS_OF_PRODUCT
    }
    assert all(0 < least <= mean <= largest for least, mean, largest in parts.values()), parts
    for record in row.records:
        timers = [t for t in record["timers"] if t["stage"] == scaling.PRODUCT_STAGE]
        whole = sum(t["seconds"]["mean"] for t in timers if t["component"] != "collectives")
        assert sum(scaling.of_product(part, "mean")([record]) for part in parts) == pytest.approx(whole)
