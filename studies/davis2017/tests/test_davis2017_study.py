"""`haloscope study davis2017`: what it measures, its model fitted to some runs and held against others, its tables."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haloscope import bridge, records
from haloscope.bridge import build
from haloscope.errors import UsageError
from haloscope.model import segments
from haloscope.records.rows import Row, group_rows
from haloscope.report import components
from haloscope.studies import Options
from haloscope_studies.davis2017 import study
from haloscope_studies.davis2017.measured import experiments, scaling, timed
from reports import section

SMALL = dataclasses.replace(study.DEFAULTS["quick"], sizes=(8, 10, 12), cores=2)


def made_up(choice: bridge.Choice, law, noise: float = 1.0, launches: int = 2) -> Row:
    """Return a row as if measured: every part takes law(part, amount of its work) seconds a call."""
    timers, sums = [], dict.fromkeys(components.COMPONENTS, 0.0)
    for stage in bridge.step_of(choice).stages:
        work = timed.works(choice)[stage.name]
        names = [(s.name, "compute") for s in stage.sweeps] + [("edges", "update_boundary"), ("wait", "point_to_point")]
        for name, component in names + [(r.name, "collectives") for r in stage.reductions]:
            part = timed.Part(stage.name, name, component)
            seconds = noise * law(part, work.of(part))
            sums[component] += seconds
            spread = dict.fromkeys(("rank0", "min", "mean", "max"), seconds)
            timers.append({"stage": stage.name, "name": name, "component": component, "calls": 1.0, "seconds": spread})
    record = {
        "kind": "measurement",
        "id": str(choice),
        "request": choice.to_json() | {"steps": 1},
        "timers": timers,
        "components_s": {name: dict.fromkeys(("min", "mean", "max"), s) for name, s in sums.items()},
        "time_s": {"repetitions": [sum(sums.values())]},
        "environment": {"oversubscribed": False},
        "verification": {"status": "passed"},
        "counts": {"resident_bytes": 1},
    }
    return group_rows([record | {"launch": {"id": f"launch-{i}"}} for i in range(launches)])[0]


def linear(part: timed.Part, amount: float) -> float:
    """A fixed time and a time per unit, different for every part."""
    seed = sum(map(ord, part.stage + part.name))
    return 1e-5 * (1 + seed % 7) + 1e-9 * (1 + seed % 5) * amount


def runs_of(options: Options, law) -> dict[experiments.Point, Row]:
    points = [*experiments.scalings(options), *experiments.scalings(options, experiments.CG)]
    return {p: made_up(experiments.request(p, options).choice, law) for p in points}


@pytest.mark.ids("DD3")
@pytest.mark.parametrize("make_law", [timed.joined, timed.by_rule])
def test_a_model_fitted_to_every_second_size_predicts_the_others_where_costs_are_linear(make_law):
    measured = runs_of(SMALL, linear)
    found = scaling.errors(measured, make_law) + scaling.errors(measured, make_law, experiments.CG)
    assert {p.side for p, *_ in found} == {10} and {p.pes for p, *_ in found} == {1, 2}
    for _, row, prediction in found:
        assert prediction.total == pytest.approx(components.step_time(row.records), rel=1e-6)
        for name, seconds in components.counting(row.records).items():
            assert prediction.by_component.get(name, 0.0) == pytest.approx(seconds, rel=1e-6)


@pytest.mark.ids("DD3")
@given(st.floats(0.5, 2.0))
@settings(max_examples=5, deadline=None)
def test_times_of_a_held_out_run_do_not_enter_its_prediction(factor):
    measured = runs_of(SMALL, linear)
    before = {p: prediction.total for p, _, prediction in scaling.errors(measured)}
    tested = {p: made_up(bridge.Choice.from_json(measured[p].request), linear, noise=factor) for p in before}
    after = {p: prediction.total for p, _, prediction in scaling.errors({**measured, **tested})}
    assert after == before


def test_a_joined_law_meets_every_measured_point_and_goes_on_beyond_them():
    law = timed.joined([1.0, 2.0, 4.0], [1.0, 3.0, 4.0])
    assert [segments.evaluate(law, x) for x in (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)] == [0, 1, 2, 3, 3.5, 4, 5]


def test_a_part_that_was_never_timed_has_no_prediction():
    measured = runs_of(SMALL, linear)
    serial = [row for p, row in measured.items() if p.pes == 1]
    two = next(row for p, row in measured.items() if p.pes == 2)
    with pytest.raises(UsageError, match="2 processing elements"):
        timed.Model(serial, timed.joined).predict(two)
    with pytest.raises(UsageError, match="no timed run"):
        timed.Model([], timed.joined)


@pytest.mark.ids("DF3")
def test_a_part_that_leaves_its_line_is_named_and_others_are_not():
    def steep(part, amount):
        late = part.name == "remap-nodes-2" and amount > 1500
        return linear(part, amount) * (2 if late else 1)

    options = dataclasses.replace(SMALL, cores=1)
    assert "every part is within" in scaling.anomalies(runs_of(options, linear))
    found = scaling.anomalies(runs_of(options, steep))
    assert "remap-nodes-2" in found and "remap-nodes-1" not in found


@pytest.mark.ids("DE7")
def test_every_variant_names_an_earlier_baseline_and_control():
    letters = [v.letter for v in experiments.VARIANTS]
    assert letters == list("ABCDEFGHIJKLM")
    for variant in experiments.VARIANTS[1:]:
        assert variant.baseline in letters[: letters.index(variant.letter)]
        assert variant.control in letters[: letters.index(variant.letter)]


@pytest.mark.ids("DA11")
def test_weak_runs_grow_the_grid_with_the_ranks_and_strong_ones_keep_it():
    planned = experiments.planned(dataclasses.replace(SMALL, cores=8, sizes=(16,)))
    cells = {(p.experiment, p.pes): r.choice.cells for p, r in planned.items() if (p.app, p.letter) == ("hydro3d", "A")}
    assert cells["weak", 2] == (16, 16, 32) and cells["weak", 8] == (32, 32, 32)
    assert cells["strong", 2] == cells["strong", 8] == (16, 16, 16)


@pytest.mark.ids("DA11")
@pytest.mark.parametrize("side", [50, 75, 100])
def test_weak_runs_of_the_studied_blocks_grow_near_cubes_with_one_histogram(side):
    full = dataclasses.replace(study.DEFAULTS["full"], sizes=(side,), cores=256)
    counts = experiments.pe_counts(full.cores)
    assert counts == [1, 2, 4, 8, 16, 32, 64, 128, 256]
    kind = {1: "serial"}
    runs = [
        experiments.request(experiments.Point(kind.get(pes, "weak"), "A", side, pes), full).choice for pes in counts
    ]
    for pes, run in zip(counts, runs, strict=True):
        assert math.prod(run.cells) == pes * side**3 and max(run.cells) <= 2 * min(run.cells)
        assert bridge.make_layout(run).owned(pes - 1).shape == (side,) * 3
    assert len({dict(run.set)["replay"] for run in runs}) == 1
    strong = {experiments.request(experiments.Point("strong", "A", 150, pes), full).choice.cells for pes in counts}
    assert strong == {(150, 150, 150)}


@pytest.mark.ids("DA11")
def test_full_runs_replay_the_printed_histograms():
    full = dataclasses.replace(study.DEFAULTS["full"], cores=2)
    runs = [r.choice for p, r in experiments.planned(full).items() if (p.app, p.pes) == ("hydro3d", 1)]
    replays = {choice.cells[0]: dict(choice.set)["replay"] for choice in runs}
    assert replays[150] == "136,18,10,94" and replays[30] == "209,0,0,0"
    assert full.sizes == (30, 50, 80, 100, 120, 150)


@pytest.mark.ids("DD1")
def test_published_walltimes_stand_next_to_runs_of_the_same_size_steps_and_number_only():
    assert scaling.published_walltime("A", "weak", 100, 2, 217) == 468.52
    assert scaling.published_walltime("B", "serial", 150, 1, 258) == 1355.32
    assert scaling.published_walltime("A", "weak", 48, 2, 217) is None
    assert scaling.published_walltime("B", "serial", 150, 1, 4) is None


def test_a_short_run_of_a_printed_size_has_no_published_time_next_to_it():
    measured = runs_of(dataclasses.replace(SMALL, cores=1, sizes=(80,)), linear)
    [[*_, printed]] = section(f"### Serial\n{scaling.serial(measured)}", "Serial")
    assert printed == ""
    for row in measured.values():
        for record in row.records:
            record["request"]["steps"] = 210  # of the study, by table 4.3
    [[*_, printed]] = section(f"### Serial\n{scaling.serial(measured)}", "Serial")
    assert float(printed) == pytest.approx(205.1, abs=0.1)


@pytest.mark.ids("DB1", "DB2", "DB6", "DD1", "DD2", "DE3", "DE4", "DE5", "DE6", "DE7")
def test_the_study_measures_verifies_and_prints_its_tables(haloscope, monkeypatch):
    monkeypatch.setattr(
        build, "preset_folder", lambda preset: Path("none")
    )  # an old build of PETSc would be built anew
    short = ("--quick", "--sizes", "8,10,12", "--repetitions", "1", "--launches", "1", "--output", "r.jsonl")
    result = haloscope("study", "davis2017", *short)
    assert result.code == 0, result.err
    found = [r for r in records.read("r.jsonl").records if r["kind"] == "measurement"]
    assert all(r["verification"]["status"] == "passed" for r in found)
    serial = section(result.out, "Serial runs")
    assert {row[0] for row in serial} >= {"A", "B", "E"} and {row[1] for row in serial} == {"8^3", "10^3", "12^3"}
    for title in ("Weak scaling, ms per step", "Strong scaling, ms per step"):
        for row in section(result.out, title):
            assert row[-4].endswith("(one launch has no interval)"), row  # composed over measured
    variants = section(result.out, "Variants")
    assert {row[0][0] for row in variants} >= {"A", "B", "D", "E"}
    assert all(row[7] and row[9] for row in variants if row[0][0] != "A")  # against baseline and control
    assert {row[1] for row in section(result.out, "Memory management")} == {"kept", "freed"}
    parts = section(result.out, "Parts of a product of conjugate gradients")
    assert len(parts) == 4 and all(float(row[3]) > 0 for row in parts)
    assert section(result.out, "The model against runs that it was not fitted to")
    for stem in ("r", "r-scaling", "r-model", "r-variants", "r-solver"):
        assert all(Path(f"{stem}.{ending}").stat().st_size > 20000 for ending in ("svg", "png"))
        assert f"{stem}.svg" in result.err
    text = Path("r.svg").read_text()
    for title in ("Serial runs", "Weak scaling of A", "Variants", "Pieces of a threaded", "A barrier before each"):
        assert title in text
    assert "measured here" not in Path("r-scaling.svg").read_text()  # no printed size was measured
