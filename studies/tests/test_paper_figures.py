"""Figures of the papers: every printed point is drawn, every figure is there, and ours stand where they may."""

from __future__ import annotations

import csv
import dataclasses
import html
import math
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import keep
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from haloscope import studies
from haloscope.errors import HaloscopeError
from haloscope.records.rows import group_rows
from haloscope.report import figures
from haloscope.studies import paper_figures, paper_marks, paper_panels
from haloscope.studies.paper_panels import HERE, PRINTED, Line, Panel
from haloscope_studies.valen2023 import paper as valen2023_paper
from haloscope_studies.white2011 import paper as white2011_paper
from haloscope_studies.white2011.versions import Point
from test_records import measurement

PAPERS = {name: paper for name in studies.names() if (paper := paper_panels.load(name))}
PANELS = [(name, panel) for name, paper in PAPERS.items() for sheet in paper.sheets for panel in sheet.panels]
TABULATED = [
    pytest.param(name, panel, id=f"{name}-{number}", marks=[pytest.mark.long] * (number % 4 != 0))
    for number, (name, panel) in enumerate(PANELS)
    if panel.csv
]
# The figures of each paper that show data.
FIGURES = {
    "white2011": [str(n) for n in range(2, 13)],
    "valen2023": [f"5.{n}" for n in range(1, 17)],
    "schroeter2021": [
        *(f"5.{n}" for n in range(1, 21)),
        *(f"6.{n}" for n in range(1, 25)),
        *(f"7.{n}" for n in range(1, 13)),
    ],
    "vanecek2020": [f"4.{n}" for n in range(3, 29)],
    "davis2017": [
        *(f"3.{n}" for n in range(1, 7)),
        *(f"4.{n}" for n in range(3, 10)),
        *(f"5.{n}" for n in range(1, 10)),
        *(f"6.{n}" for n in (*range(1, 10), 11, 12)),
        *(f"7.{n}" for n in range(3, 11)),
    ],
}


TEXTS = re.compile(r"<text[^>]*>([^<]*)<")


@pytest.fixture
def axes() -> Iterator[Axes]:
    with figures.style():
        figure, made = plt.subplots()
        yield made
        plt.close(figure)


def drawn_numbers(axes: Axes, panel: Panel) -> int:
    """Count the numbers of printed marks inside the view: points, ends and quartiles."""
    count = sum(int(np.ma.count(np.ma.masked_invalid(i.get_array()))) for i in axes.images if i.get_gid() == PRINTED)
    if not axes.images:
        axes.figure.canvas.draw()
        (left, right), (low, high) = sorted(axes.get_xlim()), sorted(axes.get_ylim())
        for line in (line for line in axes.lines if line.get_gid() == PRINTED):
            x, y = (np.asarray(values, dtype=float) for values in line.get_data())
            count += int(np.sum((left <= x) & (x <= right) & (low <= y) & (y <= high)))
        bars = sum(patch.get_gid() == PRINTED for patch in axes.patches)
        count += bars * (2 if panel.kind == "box" else 1)
        spans = [s for c in axes.collections if c.get_gid() == f"{PRINTED} ends" for s in c.get_segments()]
        count += 2 * len(spans) if panel.spread else 0
    return count


@pytest.mark.parametrize(("name", "panel"), TABULATED)
def test_a_panel_draws_every_number_of_its_rows(name, panel, axes):
    file = Path(keep.ROOT, "studies", name, "data", f"{panel.csv}.csv")
    with file.open(newline="", encoding="utf-8") as opened:
        rows = list(csv.DictReader(opened))
    wanted = {c: [entry] if isinstance(entry, str) else entry for c, entry in panel.where.items()}
    found = [row for row in rows if all(row[column] in entries for column, entries in wanted.items())]
    numbers = sum(row[column] != "" for row in found for column in panel.y)
    assert numbers > 0
    drawn = paper_figures.prepare(PAPERS[name], panel, (), "")
    paper_figures.draw_panel(axes, drawn, paper_marks.Looks(PAPERS[name]))
    assert drawn_numbers(axes, panel) == numbers
    assert drawn.caption[0].startswith(PAPERS[name].title)
    assert "table" in " ".join(drawn.caption) or "stated in the text" in " ".join(drawn.caption)


def test_there_are_sixty_panels_of_printed_data():
    assert len(TABULATED) >= 60 and set(PAPERS) == set(FIGURES) == set(studies.names())


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_of_a_paper_is_drawn_or_says_what_it_needs(name):
    panels = [panel for paper, panel in PANELS if paper == name]
    assert set(FIGURES[name]) <= {number for panel in panels for number in panel.figures}
    assert all(panel.csv or panel.name or panel.needs for panel in panels)
    assert all(panel.x_label or panel.y_label or panel.needs for panel in panels)


def test_a_frame_has_the_sentence_of_what_it_needs(axes):
    [panel] = [p for n, p in PANELS if n == "schroeter2021" and p.figure == "6.1"]
    paper = PAPERS["schroeter2021"]
    paper_figures.draw_panel(axes, paper_figures.prepare(paper, panel, (), ""), paper_marks.Looks(paper))
    text = " ".join(text.get_text().replace("\n", " ") for text in axes.texts)
    assert f"needs {panel.needs}" in text and len(axes.get_xticks()) == 0


def test_a_subject_has_one_look_in_all_panels_of_a_paper():
    for name, paper in PAPERS.items():
        looks, seen = paper_marks.Looks(paper), {}
        for panel in (panel for of, panel in PANELS if of == name):
            for line in paper.lines(panel):
                look = tuple(looks.of(line).values())
                assert seen.setdefault(line.label, look) == look
                assert looks.of(line)["color"] == looks.of(Line(line.subject, {}))["color"]
        first = [looks.of(Line(subject, {})) for subject in paper.order]
        assert len({tuple(look.values()) for look in first}) == len(first)


def test_values_over_others_of_the_same_row_are_ratios():
    [panel] = [p for n, p in PANELS if n == "valen2023" and p.over == {"exchange": "ordered"} and "V100" in p.title]
    lines = {line.label: line.points for line in PAPERS["valen2023"].lines(panel)}
    rows = studies.published("valen2023", "valen_tables")
    direct, ordered = (
        next(
            float(row["message_s"])
            for row in rows
            if (row["gpu"], row["side"], row["exchange"], row["overlap"], row["depth"])
            == ("V100", "35000", e, "0", "64")
        )
        for e in ("direct", "ordered")
    )
    assert lines["35000"][64] == pytest.approx(direct / ordered) and direct / ordered > 9


def test_two_rows_at_one_place_of_a_line_are_an_error():
    [panel] = [p for n, p in PANELS if n == "valen2023" and p.title == "Execution, V100, side 5000"]
    with pytest.raises(HaloscopeError, match="two rows for 1"):
        PAPERS["valen2023"].lines(dataclasses.replace(panel, by=("exchange",)))


# ---- measured here ---------------------------------------------------------------------------------------------------


def test_points_here_stand_only_at_printed_labels_and_places():
    printed = [Line("a", {1.0: 2.0, 2.0: 3.0})]
    here = [Line("a", {2.0: 5.0, 4.0: 6.0}, HERE, {2.0: (4.0, 6.0), 4.0: (5.0, 7.0)}), Line("b", {1.0: 1.0}, HERE)]
    assert paper_panels.comparable(printed, here) == [Line("a", {2.0: 5.0}, HERE, {2.0: (4.0, 6.0)})]
    assert paper_panels.comparable([], here) == here


def rows_of_valen(ranks: int, steps: int, side: int = 5000) -> dict:
    record = measurement("x", "launch-1", cells=[side, side], ranks=ranks, steps=steps, process_grid=[1, ranks])
    return {(side, "ordered phased", 8): group_rows([record])[0]}


@pytest.mark.parametrize(("ranks", "steps", "stands"), [(4, 2048, True), (2, 2048, False), (4, 128, False)])
def test_a_run_of_valen_stands_beside_printed_values_of_its_ranks_and_iterations(ranks, steps, stands):
    lines = valen2023_paper.lines(rows_of_valen(ranks, steps))
    assert ("execution 5000" in lines) == stands
    assert [line.label for line in lines["execution here"]] == ["ordered phased, 5000"]


def test_blocks_of_a_gpu_are_a_map_and_those_of_an_imitation_are_not(axes):
    points = [Point(64, 1, "E", 1, 1, block=f"{x}x{y}") for x in (16, 32) for y in (4, 8)]
    measured = {point: group_rows([measurement(point.block, "launch-1", cells=[64] * 3)])[0] for point in points}
    options = studies.load("white2011").DEFAULTS["quick"]
    on_gpu = white2011_paper.lines(measured, dataclasses.replace(options, device="cuda"))
    assert {line.label: sorted(line.points) for line in on_gpu["blocks"]} == {"4": [16.0, 32.0], "8": [16.0, 32.0]}
    assert "blocks" not in white2011_paper.lines(measured, dataclasses.replace(options, device="host"))
    [panel] = [p for n, p in PANELS if n == "white2011" and p.name == "blocks"]
    drawn = paper_figures.prepare(PAPERS["white2011"], panel, on_gpu["blocks"], "Measured on a card")
    paper_figures.draw_panel(axes, drawn, paper_marks.Looks(PAPERS["white2011"]))
    assert axes.images[0].get_array().shape == (2, 2) and "Here: a card" in drawn.caption


@pytest.mark.parametrize("run", ["white2011", "vanecek2020"])
def test_the_kept_figures_have_what_the_kept_records_measured(haloscope, run):
    shutil.copy(keep.KEPT / run / "records.jsonl.xz", ".")
    text = haloscope("study", run, "--from", "records.jsonl.xz", "--figures", "drawn").out
    sheets = PAPERS[run].sheets
    assert [line.split()[-2] for line in text.splitlines()] == [str(len(sheet.panels)) for sheet in sheets]
    for sheet in sheets:
        drawn, kept = (
            Path(folder, f"{sheet.name}.svg").read_text() for folder in ("drawn", keep.KEPT / run / "figures")
        )
        assert TEXTS.findall(drawn) == TEXTS.findall(kept) and len(TEXTS.findall(drawn)) > 20
        assert Path("drawn", f"{sheet.name}.png").stat().st_size > 20000
        assert html.escape(PAPERS[run].title, quote=False) in drawn
    assert any("Here: " in Path("drawn", f"{sheet.name}.svg").read_text() for sheet in sheets)


def test_the_kept_figures_are_below_their_bound():
    files = [file for file in keep.KEPT.rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) < 30e6
    for name, paper in PAPERS.items():
        drawn = {file.name for file in (keep.KEPT / name / "figures").iterdir()}
        assert drawn == {f"{sheet.name}.svg" for sheet in paper.sheets}
        page = Path(keep.ROOT, "studies", name, "README.md").read_text()
        assert all(f"](../../results/studies/{name}/figures/{file})" in page for file in drawn)


def test_wrong_requests_for_figures_are_answered(haloscope):
    result = haloscope("study", "wite2011", "--figures", "f")
    assert result.code == 2 and "did you mean white2011" in result.err
    Path("file").write_text("text")
    result = haloscope("study", "white2011", "--figures", "file")
    assert result.code == 2 and "is a file" in result.err
    Path("f").mkdir()
    Path("f/versions.svg").write_text("mine")
    result = haloscope("study", "white2011", "--figures", "f")
    assert (
        result.code == 2 and "not written by haloscope" in result.err and Path("f/versions.svg").read_text() == "mine"
    )


def test_logarithmic_axes_show_values_of_zero_too(axes):
    paper = dataclasses.replace(PAPERS["valen2023"], order=())
    panel = Panel("", "zeros", log="y")
    drawn = paper_figures.Drawn(panel, [Line("a", {1.0: 0.0, 2.0: 1e-3, 3.0: 1.0})], [])
    paper_figures.draw_panel(axes, drawn, paper_marks.Looks(paper))
    low, high = axes.get_ylim()
    assert axes.get_yscale() == "symlog" and low <= 0 and high >= 1 and math.isfinite(high)
