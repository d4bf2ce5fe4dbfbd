"""Times and ratios of the study's tables over launches: one statistic, honest intervals, verdicts inside the noise."""

from __future__ import annotations

import dataclasses
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haloscope import bridge
from haloscope.records import stats
from haloscope.records.rows import Row, group_rows
from haloscope.report import tables
from haloscope_studies.davis2017 import study
from haloscope_studies.davis2017.measured import cg, experiments, launches, scaling
from reports import section
from test_davis2017_cg import solve
from test_davis2017_study import linear, made_up
from test_records import measurement

TWO_CORES = dataclasses.replace(study.DEFAULTS["quick"], sizes=(16, 20, 24), cores=2)
SECONDS = st.lists(st.floats(0.01, 100), min_size=2, max_size=5)


def row_of(seconds: list[float], **more) -> Row:
    """Return a row with a launch for each time of a step."""
    records = [measurement("a", f"launch-{n}", [s], steps=1) | more for n, s in enumerate(seconds)]
    return group_rows(records)[0]


def row_of_parts(seconds: float, communication: float, computing: float, launch: str) -> Row:
    components = {
        "point_to_point": dict.fromkeys(("min", "mean", "max"), communication),
        "compute": dict.fromkeys(("min", "mean", "max"), computing),
    }
    return group_rows([measurement("a", launch, [seconds], steps=1) | {"components_s": components}])[0]


def variant_cells(rows: dict[str, Row]) -> dict[str, list[str]]:
    """Return the cells of the table of variants, by letter, of runs on two ranks."""
    measured = {experiments.Point("variants", letter, 32, 2): row for letter, row in rows.items()}
    return {cells[0][0]: cells for cells in section(f"### Variants\n{scaling.variants(measured)}", "Variants")}


@given(SECONDS, SECONDS)
@settings(deadline=None)  # the first example loads SciPy
def test_a_ratio_in_a_table_is_the_quotient_of_its_times(one, other):
    count = min(len(one), len(other))
    above, below = (dict(enumerate(map(float, values[:count]))) for values in (one, other))
    named = [{str(k): v for k, v in side.items()} for side in (above, below)]
    quotient = stats.mean_over_launches(named[0]).value / stats.mean_over_launches(named[1]).value
    assert launches.ratio(*named).value == pytest.approx(quotient)


def test_the_table_of_variants_has_one_statistic():
    cells = variant_cells({"A": row_of([2.0, 8.0]), "B": row_of([1.0, 1.0])})
    assert (cells["A"][3], cells["B"][3]) == ("4000", "1000")
    assert cells["B"][7].startswith("4.00 (")


def test_a_ratio_inside_the_noise_has_no_winner():
    clear = variant_cells({"A": row_of([2.0, 2.02, 1.98]), "B": row_of([1.0, 1.01, 1.0])})
    noisy = variant_cells({"A": row_of([2.0, 0.6, 1.4]), "B": row_of([1.0, 1.1, 0.9])})
    assert re.fullmatch(r"[\d.]+ \([\d.]+ \.\. [\d.]+\)", clear["B"][7])
    assert noisy["B"][7].endswith(", cannot tell apart")


def test_one_launch_has_no_interval():
    cells = variant_cells({"A": row_of([2.0]), "B": row_of([1.0])})
    assert cells["B"][7] == "2.00 (one launch has no interval)"
    measured = {experiments.Point("serial", "A", 32, 1): row_of([2.0])}
    [line] = section(f"### Serial\n{scaling.serial(measured)}", "Serial")
    assert tables.NO_INTERVAL in line
    assert "one launch has no interval" in cg.iterations([solve(), solve(method="single-reduction")])


def test_launches_of_one_side_only_give_no_ratio():
    assert launches.ratio({"a": 1.0}, {"b": 1.0}) is None and launches.text(None) == ""


@pytest.mark.ids("DE4")
@pytest.mark.parametrize(
    ("seconds", "share"),
    [(0.8, 0.2 / 0.4), (1.0, 0.0), (1.2, -0.2 / 0.4)],
)
def test_overlap_is_the_time_saved_over_the_shorter_of_communication_and_computing(seconds, share):
    control = row_of_parts(1.0, communication=0.4, computing=0.6, launch="launch-1")
    assert scaling.hidden_shares(row_of_parts(seconds, 0.4, 0.6, "launch-1"), control) == pytest.approx([share])
    assert scaling.hidden_shares(row_of_parts(seconds, 0.4, 0.6, "launch-2"), control) == []


@pytest.mark.ids("DE4")
def test_the_report_has_the_efficiency_of_overlap_with_its_interval():
    def rows(letter_seconds: list[float]) -> Row:
        parts = [row_of_parts(s, 0.4, 0.6, f"launch-{n}").records[0] for n, s in enumerate(letter_seconds)]
        return group_rows(parts)[0]

    def text(hidden: list[float]) -> str:
        measured = {
            experiments.Point("variants", letter, 32, 2): rows(seconds)
            for letter, seconds in (("G", [1.0, 1.0, 1.0]), ("H", hidden))
        }
        return scaling.variants(measured)

    assert "H hides +50% (+50% .. +50%) at 2 PEs" in text([0.8, 0.8, 0.8])
    assert "H hides -50% (-50% .. -50%) at 2 PEs" in text([1.2, 1.2, 1.2])
    assert "cannot tell apart from 0) at 2 PEs" in text([0.8, 1.0, 1.2])


@pytest.mark.ids("DE5")
def test_the_sweep_over_pieces_has_a_row_for_each_and_compares_it_with_even_shares():
    planned = experiments.planned(TWO_CORES)
    seconds = {p: 1.0 + 1.0 / p.piece for p in planned if p.experiment == "pieces"}
    assert {p.piece for p in seconds} == {1, 2, 4, 8, 16} and {p.pes for p in seconds} == {2}
    assert {dict(planned[p].request())["piece"] for p in seconds} == {1, 2, 4, 8, 16}
    measured = {p: row_of([s, s]) for p, s in seconds.items()}
    shares = {experiments.Point("variants", "I", 20, 2): row_of([1.0, 1.0])}
    lines = section(f"### Pieces\n{scaling.pieces(measured | shares)}", "Pieces")
    assert [line[:2] for line in lines] == [
        ["1", "2000"],
        ["2", "1500"],
        ["4", "1250"],
        ["8", "1125"],
        ["16", "1062"],
    ]
    assert [line[2].split(" ")[0] for line in lines] == ["0.50", "0.67", "0.80", "0.89", "0.94"]


@pytest.mark.ids("DG2")
def test_a_product_has_its_four_parts_over_ranks_next_to_the_means_of_the_study_on_as_many_ranks():
    def over_ranks(mean: float) -> dict:
        return {"min": mean / 2, "mean": mean, "max": 2 * mean}

    def timer(name: str, mean: float, stage: str = "multiply") -> dict:
        return {"stage": stage, "name": name, "seconds": over_ranks(mean)}

    seconds = {
        "post": 1e-5,
        "pack": 2e-5,
        "send": 4e-5,
        "wait": 1e-4,
        "unpack": 2e-4,
        "complete": 4e-4,
        "multiply": 2e-3,
    }
    timers = [timer(name, mean) for name, mean in seconds.items()] + [timer("direction", 9.0, "update")]
    row = row_of([1.0, 1.0], timers=timers, phases_s={"outer": over_ranks(4e-4)})
    points = [experiments.Point("product", "A", 50, pes, app=experiments.CG) for pes in (2, 3)]
    lines = section(f"### Parts\n{scaling.products(dict.fromkeys(points, row))}", "Parts")
    assert [(line[2], *map(float, line[3:6])) for line in lines[:4]] == [
        ("VecScatterBegin", 0.035, 0.07, 0.14),
        ("Multiply", 0.2, 1.6, 3.8),  # cells that wait for messages are taken off by their largest, mean and least time
        ("VecScatterEnd", 0.35, 0.7, 1.4),
        ("MultiplyAdd", 0.2, 0.4, 0.8),
    ]
    assert [line[6] for line in lines] == ["0.019", "4.240", "0.032", "0.579", "", "", "", ""]


@pytest.mark.ids("DG2")
def test_the_product_is_the_only_sweep_of_its_stage_and_exchanges():
    point = experiments.Point("product", "A", experiments.CG_SIDE, 2, app=experiments.CG)
    request = experiments.planned(TWO_CORES)[point]
    stages = {stage.name: [sweep.name for sweep in stage.sweeps] for stage in bridge.step_of(request.choice).stages}
    assert stages[scaling.PRODUCT_STAGE] == ["multiply"] and request.choice.cells == (50, 50, 100)
    for number, name in enumerate(stages):
        plan = bridge.make_plan(bridge.make_layout(request.choice), 0, bridge.exchange_spec(request.choice, number))
        assert bool(plan.sent()) == (name == scaling.PRODUCT_STAGE)


@pytest.mark.ids("DF3")
def test_a_part_leaves_its_line_only_outside_of_the_noise():
    def steep(factor):
        def law(part, amount):
            late = part.name == "remap-nodes-2" and amount > 10000
            return linear(part, amount) * (factor if late else 1)

        return law

    def table(factors: list[float]) -> str:
        measured = {}
        for point in experiments.scalings(dataclasses.replace(TWO_CORES, cores=1)):
            choice = experiments.request(point, TWO_CORES).choice
            found = [
                made_up(choice, steep(factor), launches=1).records[0] | {"launch": {"id": f"launch-{n}"}}
                for n, factor in enumerate(factors)
            ]
            measured[point] = group_rows(found)[0]
        return scaling.anomalies(measured)

    assert "leaves the line" in table([2.0, 2.1, 1.9]) and "cannot be told" in table([2.0, 1.0, 4.0])


def test_parts_of_a_table_do_not_exceed_the_whole():
    """The geometric mean of a sum is at least the sum of the geometric means."""
    records = []
    for n, (compute, exchange) in enumerate([(0.9, 0.1), (0.2, 0.8), (0.5, 0.5)]):
        records += row_of_parts(compute + exchange, exchange, compute, f"launch-{n}").records
    row = group_rows(records)[0]
    assert scaling.counting(row, "compute") + scaling.counting(row, "point_to_point") <= launches.mean(row).value
