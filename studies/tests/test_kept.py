"""Kept runs of the studies: their reports come from their records, and a killed run continues."""

from __future__ import annotations

import csv
import json
import lzma
import re
import shutil
import statistics
import tomllib
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

import keep
import pytest
from PIL import Image

from haloscope import records, studies
from haloscope.report import figures
from haloscope.studies import provenance

PLANS = tomllib.loads(keep.PLANS.read_text())
TINY = ["--quick", "--sizes", "16", "--steps", "4", "--repetitions", "2", "--launches", "2"]


@pytest.mark.parametrize("run", [pytest.param(r, marks=[pytest.mark.long] * (r not in studies.names())) for r in PLANS])
def test_a_kept_report_comes_from_its_records(haloscope, run, monkeypatch):
    monkeypatch.setattr(figures, "save", lambda figure, stem: figures.plt.close(figure) or [stem])  # takes longest
    folder = keep.KEPT / run
    for file in folder.glob("records*.jsonl*"):
        shutil.copy(file, ".")
    text = haloscope("study", PLANS[run]["study"], "--from", "records.jsonl.xz").out
    assert text == (folder / "report.md").read_text()


@pytest.mark.parametrize("run", PLANS)
def test_a_kept_run_names_its_machine_its_plan_and_the_parts_left_out(run):
    about = json.loads((keep.KEPT / run / "about.json").read_text())
    parts = ("commit", "compiler", "mpi_library", "cpu", "cores", "days", "launches", "repetitions")
    assert all(about[part] for part in parts)
    assert about["command"] == " ".join(["haloscope study", PLANS[run]["study"], *PLANS[run]["options"]])
    assert about["left_out"] == PLANS[run]["left_out"] and all(": " in reason for reason in about["left_out"])
    with lzma.open(keep.KEPT / run / "records.jsonl.xz", "rt") as file:
        assert records.parse_line(file.readline())["kind"] == records.STUDY


def origin_of(run: str) -> list[str]:
    """Return the texts in which a table or figure of a run names machine, compiler, MPI library and repetitions."""
    about = json.loads((keep.KEPT / run / "about.json").read_text())
    [compiler], [library], [cpu], [cores] = (about[part] for part in ("compiler", "mpi_library", "cpu", "cores"))
    repetitions = " and ".join(map(str, sorted(about["repetitions"])))
    return [
        f"Measured on {cpu}, {cores} core",
        f"compiler {compiler} ",
        f"MPI {' '.join(library.split()).replace('Version: ', '')};",
        f"; {len(about['launches'])} launches with {repetitions} repetition",
    ]


@pytest.mark.ids("DH1")
@pytest.mark.parametrize("run", PLANS)
def test_every_kept_table_is_below_machine_compiler_mpi_and_repetitions(run):
    text = (keep.KEPT / run / "report.md").read_text()
    above, *tables = re.split(r"^(?=### )", text, flags=re.MULTILINE)
    assert len(tables) >= 5 and "|" not in above
    assert all(part in above for part in origin_of(run)), above


@pytest.mark.ids("DH1")
@pytest.mark.parametrize("run", PLANS)
def test_every_kept_figure_names_machine_compiler_mpi_and_repetitions(run):
    figures = [file for file in (keep.KEPT / run).iterdir() if file.suffix in (".svg", ".png")]
    assert figures or not hasattr(studies.load(PLANS[run]["study"]), "figures")
    for file in figures:
        text = description_of(file)
        assert all(part in text for part in origin_of(run)), file


def description_of(file: Path) -> str:
    """Return the description in a figure's file."""
    if file.suffix == ".png":
        with Image.open(file) as image:
            return image.text["Description"]
    [found] = ElementTree.parse(file).iter("{http://purl.org/dc/elements/1.1/}description")
    return found.text


@pytest.mark.ids("DH1")
@pytest.mark.parametrize("run", PLANS)
def test_every_kept_time_has_a_standard_error_over_its_launches(run):
    """Of steps and iterations: the deviation of the launches' means over the root of their number."""
    rows = list(csv.DictReader((keep.KEPT / run / "standard_errors.csv").open()))
    means: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in keep.kept_records(run):
        if record["kind"] == "cg-missing":
            continue
        assert {"cpu", "cores", "compiler", "mpi_library"} <= record["environment"].keys(), record
        launch = record["launch"] if isinstance(record["launch"], str) else record["launch"]["id"]
        means[provenance.id_of(record)][launch] += repetitions_of(record)
    whole = {row["id"]: row for row in rows if row["quantity"] in (provenance.STEP, provenance.ITERATION)}
    assert whole.keys() == means.keys() == {row["id"] for row in rows}
    for name, row in whole.items():
        found = [statistics.fmean(seconds) for seconds in means[name].values()]
        assert (int(row["launches"]), int(row["repetitions"])) == (len(found), sum(map(len, means[name].values())))
        error = statistics.stdev(found) / len(found) ** 0.5
        assert float(row["mean_s"]) == pytest.approx(statistics.fmean(found), rel=1e-3)
        assert float(row["standard_error_s"]) == pytest.approx(error, rel=0.1)
    assert all(int(row["launches"]) >= 3 and 0 <= float(row["standard_error_s"]) < float(row["mean_s"]) for row in rows)


def repetitions_of(record: dict) -> list[float]:
    """Return the seconds of a step or an iteration in each repetition of a record."""
    if record["kind"] == "cg-solve":
        return [seconds / record["iterations"] for seconds in record["solve_s"]]
    if record["kind"] == "blocks":
        return [statistics.fmean(test[record["request"]["warmup"] :]) for test in record["iterations_s"]]
    return records.step_times(record)


def test_every_study_is_kept():
    assert {plan["study"] for plan in PLANS.values()} == set(studies.names())


def test_a_killed_run_continues_where_it_was(monkeypatch, tmp_path):
    monkeypatch.setattr(keep, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(keep, "RAW", tmp_path / "raw")
    plan = {"study": "white2011", "options": TINY, "left_out": []}
    keep.measure("tiny", plan)
    raw = tmp_path / "raw" / "tiny.jsonl"
    whole = raw.read_text().splitlines()
    raw.write_text("\n".join([*whole[:3], whole[3][:50]]))  # killed within the fourth record
    keep.measure("tiny", plan)
    keep.write_report("tiny", plan)
    kept = lzma.decompress((tmp_path / "kept" / "tiny" / "records.jsonl.xz").read_bytes()).decode().splitlines()
    assert kept[:3] == whole[:3] and len(records.read(raw).records) == len(whole) - 1
    assert (tmp_path / "kept" / "tiny" / "report.md").read_text().startswith("# White")


def test_a_run_that_fails_keeps_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr(keep, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(keep, "RAW", tmp_path / "raw")
    with pytest.raises(keep.subprocess.CalledProcessError):
        keep.measure("tiny", {"study": "white2011", "options": ["--sizes", "none"], "left_out": []})
    assert not (Path(tmp_path) / "kept").exists()
