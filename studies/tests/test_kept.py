"""Kept runs of the studies: their reports come from their records, and a killed run continues."""

from __future__ import annotations

import json
import lzma
import shutil
import tomllib
from pathlib import Path

import keep
import pytest

from haloscope import records, studies

PLANS = tomllib.loads(keep.PLANS.read_text())
TINY = ["--quick", "--sizes", "16", "--steps", "4", "--repetitions", "2", "--launches", "2"]


@pytest.mark.parametrize("run", [pytest.param(r, marks=[pytest.mark.long] * (r not in studies.names())) for r in PLANS])
def test_a_kept_report_comes_from_its_records(haloscope, run):
    folder = keep.KEPT / run
    for file in folder.glob("records*.jsonl*"):
        shutil.copy(file, ".")
    text = haloscope("study", PLANS[run]["study"], "--from", "records.jsonl.xz").out
    assert text == (folder / "report.md").read_text()


@pytest.mark.parametrize("run", PLANS)
def test_a_kept_run_names_its_machine_its_plan_and_the_parts_left_out(run):
    about = json.loads((keep.KEPT / run / "about.json").read_text())
    assert all(about[part] for part in ("commit", "compiler", "mpi_library", "cpu", "cores", "days", "launches"))
    assert about["command"] == " ".join(["haloscope study", PLANS[run]["study"], *PLANS[run]["options"]])
    assert about["left_out"] == PLANS[run]["left_out"] and all(": " in reason for reason in about["left_out"])
    with lzma.open(keep.KEPT / run / "records.jsonl.xz", "rt") as file:
        assert records.parse_line(file.readline())["kind"] == records.STUDY


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
