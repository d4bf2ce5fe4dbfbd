"""The figures of Davis 2017 redrawn: every panel against its published table, and what was measured here in them."""

from __future__ import annotations

import dataclasses
import html
import json

import pytest

from haloscope import bridge
from haloscope.records.rows import Row, group_rows
from haloscope.report import components
from haloscope.report import figures as report_figures
from haloscope.studies import Options, published
from haloscope_studies.davis2017 import study
from haloscope_studies.davis2017.measured import experiments, paired, scaling
from haloscope_studies.davis2017.replay import figures as redrawn
from haloscope_studies.davis2017.replay import panels, variants
from test_davis2017_cg import ALONE, KEPT, solve
from test_davis2017_study import linear, made_up

FULL = dataclasses.replace(study.DEFAULTS["full"], sizes=(50, 100, 150), cores=2)
PANELS = {name: panel for sheet in panels.sheets().values() for name, panel in sheet.items()}

# Panel: the table, its columns of x and y, the factor to the panel's unit, and which of its rows it shows.
PRINTED = {
    "weak": ("scaling_components", "pes", ["time_s"], 1, {"machine": "minerva", "scaling": "weak"}),
    "strong": ("scaling_components", "pes", ["time_s"], 1, {"machine": "minerva", "scaling": "strong"}),
    "others": ("scaling_components", "pes", ["time_s"], 1, {"machine": ("hera", "dawndev")}),
    "spread": ("process_spread", "pes", ["time_s"], 1, {"scaling": "weak", "statistic": "mean"}),
    "mapping": ("mapping", "pes", ["time_s"], 1, {}),
    "barriers": ("barriered", "pes", ["original_s", "barriered_s"], 1, {}),
    "serial errors": ("validation", "cells_per_side", ["error_recomputed_percent"], 1, {"scaling": "serial"}),
    "errors": (
        "validation",
        "pes",
        ["error_recomputed_percent"],
        1,
        {"machine": "minerva", "scaling": ("weak", "strong")},
    ),
    "other errors": ("validation", "pes", ["error_recomputed_percent"], 1, {"machine": ("hera", "dawndev")}),
    "weak model": ("validation_components", "pes", ["measured_s", "model_s"], 1, {"scaling": "weak"}),
    "strong model": ("validation_components", "pes", ["measured_s", "model_s"], 1, {"scaling": "strong"}),
    "sockets": ("cores_per_socket", "pes", ["time_s"], 1, {}),
    "thread": (
        "overlap_functions",
        "pes",
        ["time_s"],
        1,
        {"statistic": "mean", "variant": ("K", "L"), "function": ("Madvmx", "Madvmx1", "MadvmxExch")},
    ),
    "overlap": ("overlap_functions", "function", ["time_s"], 1, {"statistic": "mean", "variant": ("F", "G", "H")}),
    "iteration": ("cg_iteration_time", "pes", ["time_per_iteration_s"], 1e3, {}),
    "shares": ("cg_shares", "pes", ["share_percent"], 1, {}),
    "product": ("cg_matmult_parts", "pes", ["time_s"], 1e3, {}),
    "dots": ("cg_calls", "pes", ["time_s"], 1e6, {"solver": ("base", "none"), "statistic": ("mean", "isolated")}),
    "messages": ("pingpong", "message_bytes", ["time_us"], 1, {"quantity": "half_round_trip", "pairs": "1"}),
    "all-reduce": ("allreduce", "processes", ["time_us"], 1, {}),
}
DERIVED = {"serial", "weak variants", "strong variants", "blocks"}


def key(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


@pytest.mark.ids("DD1")
@pytest.mark.parametrize("name", PRINTED)
def test_a_panel_has_every_point_of_its_table(name):
    table, x, columns, factor, wanted = PRINTED[name]
    found = [
        r
        for r in published("davis2017", table)
        if all(r[column] in (value if isinstance(value, tuple) else (value,)) for column, value in wanted.items())
    ]
    expected = sorted((key(r[x]), factor * float(r[y])) for r in found for y in columns)
    drawn = [s for s in PANELS[name].series if s.source != panels.OURS]
    assert sorted((x, y) for s in drawn for x, y in s.points.items()) == expected
    sources = list(dict.fromkeys(r["source_table"] for r in found))
    assert all(source in PANELS[name].printed for source in sources)


def test_every_panel_is_held_against_its_table():
    assert set(PANELS) == set(PRINTED) | DERIVED
    assert all(4 <= len(sheet) <= 6 for sheet in panels.sheets().values())


@pytest.mark.ids("DE7")
def test_panels_of_variants_have_every_variant_and_size_that_is_printed():
    walltimes = variants.walltimes()
    for kind in ("weak", "strong"):
        drawn = {(s.label, pes) for s in PANELS[f"{kind} variants"].series for pes in s.points}
        assert drawn == {(letter, pes) for _, letter, k, _, pes in walltimes if k == kind and letter != "A"}
    assert PANELS["weak variants"].find("B").points[256] == pytest.approx(700.35 / 512.26)
    drawn = {(s.label, side) for s in PANELS["serial"].series for side in s.points}
    assert drawn == {(letter, side) for _, letter, k, side, _ in walltimes if k == "serial"}
    assert PANELS["serial"].find("B").points[30] == pytest.approx(8.66e9 / 209 / 30**3)
    dynamic, static = PANELS["blocks"].series
    assert list(dynamic.points.items()) == [
        (float(r["block"]), float(r["time_s"])) for r in published("davis2017", "openmp_block_size")
    ]
    assert set(static.points.values()) == {walltimes["OpenMPI-1.4.4", "I", "strong", 150, 12]}


@pytest.mark.ids("DD1", "DF1")
def test_our_model_stands_beside_the_studys_in_the_same_runs():
    for name in ("serial errors", "errors", "weak model", "strong model", "sockets"):
        ours = {s.label: s for s in PANELS[name].series if s.source == panels.OURS}
        theirs = {s.label: s for s in PANELS[name].series if s.source != panels.OURS}
        assert {n: set(s.points) for n, s in ours.items()} == {n: set(s.points) for n, s in theirs.items()}
        assert {n: s.colour for n, s in ours.items()} == {n: s.colour for n, s in theirs.items()}


# ---- measured here ---------------------------------------------------------------------------------------------------


def measured_runs(options: Options, steps: int = 0) -> dict[experiments.Point, Row]:
    """Return the runs of A to F as if measured. steps: of each; 0 = the iterations printed for its size."""
    planned = {
        p: r for p, r in experiments.planned(options).items() if p.app == experiments.APP and p.letter in "ABCDEF"
    }
    found: dict[bridge.Choice, Row] = {}
    for point, request in planned.items():
        if request.choice not in found:
            row = made_up(request.choice, linear)
            count = steps or panels.iterations(point.side)
            times = {"repetitions": [count * s for s in row.records[0]["time_s"]["repetitions"]]}
            for record in row.records:
                record.update(request=record["request"] | {"steps": count}, time_s=times)
            found[request.choice] = group_rows(row.records)[0]
    return {point: found[request.choice] for point, request in planned.items()}


@pytest.fixture(scope="module")
def measured() -> dict[experiments.Point, Row]:
    return measured_runs(FULL)


@pytest.fixture(scope="module")
def lines(measured) -> dict[str, list[panels.Series]]:
    return paired.lines(measured, [solve(), ALONE])


@pytest.mark.ids("DD1", "DA11")
def test_runs_of_the_printed_cells_elements_and_iterations_stand_in_the_panels(measured, lines):
    runs = {(p.experiment, p.letter, p.side, p.pes): row for p, row in measured.items()}
    walltime = lines["weak"][0]
    assert walltime.points == {
        1: pytest.approx(217 * components.step_time(runs["serial", "A", 100, 1].records)),
        2: pytest.approx(217 * components.step_time(runs["weak", "A", 100, 2].records)),
    }
    assert lines["strong"][0].points[2] == pytest.approx(scaling.walltime(runs["strong", "A", 150, 2]))
    assert {s.label: set(s.points) for s in lines["serial"]} == {"A": {50, 100, 150}, "B": {50, 100, 150}, "C": {100}}
    assert {s.label: set(s.points) for s in lines["barriers"]} == {"as studied": {1, 2}, "with barriers": {1}}
    assert {s.label: set(s.points) for s in lines["serial errors"]} == {"serial": {100}}
    assert {s.label: set(s.points) for s in lines["errors"]} == {"weak": {1, 2}}
    assert all(abs(error) < 1e-3 for s in lines["errors"] for error in s.points.values())  # costs are linear


@pytest.mark.ids("DD1")
def test_no_point_is_drawn_where_the_study_has_none_beside_it(lines):
    for name, here in lines.items():
        for series in here:
            beside = {
                x for s in PANELS[name].series if (s.label, s.colour) == (series.label, series.colour) for x in s.points
            }
            assert series.source == panels.HERE and set(series.points) <= beside, (name, series.label)


@pytest.mark.ids("DD1")
@pytest.mark.parametrize(("sizes", "steps"), [((40, 60, 70), 217), ((30, 100, 150), 4)])
def test_runs_of_other_sizes_or_lengths_do_not_stand_in_the_panels(sizes, steps):
    found = measured_runs(dataclasses.replace(FULL, sizes=sizes, cores=1), steps)
    assert paired.lines(found, [solve(side=40), solve(ranks=3)]) == {}


def test_variants_that_change_something_else_here_are_not_beside_the_studys():
    assert paired.shared_letters() == ["A", "B", "C"]  # F to L are made from E here, from C or each other in the study


@pytest.mark.ids("DG2", "DG4", "DG5")
def test_what_petsc_takes_here_stands_in_the_panels_of_the_solver(lines):
    assert [(s.label, s.points) for s in lines["iteration"]] == [("HECToR base", {2: pytest.approx(500.0)})]
    assert {s.label for s in lines["shares"]} == {s.label for s in PANELS["shares"].series}
    assert sum(s.points[2] for s in lines["shares"]) == pytest.approx(100)
    work = {s.label: s.points[2] for s in lines["dots"]}
    assert work["VecTDot compute"] == pytest.approx(1e6 * (1.2 - 0.4) / 40)
    assert work["VecTDot allreduce"] == pytest.approx(1e6 * 0.4 / 40)
    assert [(s.label, s.points) for s in lines["all-reduce"]] == [("HECToR, 8 bytes", {2: pytest.approx(4000)})]


@pytest.mark.ids("DG4")
def test_the_kept_solves_are_drawn_with_the_published_ones(tmp_path):
    kept = [json.loads(line) for line in KEPT.read_text().splitlines()]
    here = paired.lines({}, kept)
    assert {s.label: set(s.points) for s in here["iteration"]} == {"HECToR base": {1, 2}, "HECToR coalesced": {1, 2}}
    files = redrawn.draw_sheet("solver", here, "some machine", tmp_path / "f-solver")
    assert [f.name for f in files] == ["f-solver.svg", "f-solver.png"] and all(f.stat().st_size > 20000 for f in files)
    text = html.unescape(files[0].read_text())
    for panel in panels.sheets()["solver"].values():
        assert panel.title in text and panel.printed in text
        assert all(series.label in text for series in panel.series)
    assert "measured here: some machine" in text and redrawn.MEANING[panels.HERE] in text


def test_a_sheet_without_own_measurements_does_not_speak_of_any(monkeypatch, tmp_path):
    monkeypatch.setattr(report_figures, "save", lambda figure, stem: [figure])
    [figure] = redrawn.draw_sheet("variants", {}, "some machine", tmp_path / "f")
    texts = [figure.get_suptitle(), *(text.get_text() for text in figure.legends[0].get_texts())]
    assert redrawn.MEANING[panels.MEASURED] in texts and not any("here" in text for text in texts)
    report_figures.plt.close(figure)


def test_without_measurements_there_is_no_figure(tmp_path):
    assert study.figures([], FULL, tmp_path / "none") == []
