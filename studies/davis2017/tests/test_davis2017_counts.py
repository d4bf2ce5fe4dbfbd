"""Counts of hydro3d's kernels: the program that makes them, the kept ones by hand, and the bars that they reach."""

from __future__ import annotations

import json
import subprocess

import pytest

from haloscope.bridge import build
from haloscope.studies import checks
from haloscope_studies.davis2017.data import DATA
from haloscope_studies.davis2017.replay import counts


@pytest.mark.ids("DB3", "DE1", "DE2")
def test_the_kept_counts_are_those_of_the_kernels():
    program = build.rank_program().parent / "bench" / "bench_counts"
    made = json.loads(subprocess.run([program, "30"], check=True, capture_output=True, text=True).stdout)
    kept = json.loads((DATA / "counts.json").read_text())
    assert made == [row for row in kept if row["cells_per_side"] == 30] and len(made) == 32
    assert {row["cells_per_side"] for row in kept} == {30, 50, 100, 150}


@pytest.mark.ids("DB3")
@pytest.mark.parametrize(
    ("kernel", "loads", "stores", "operations"),
    [
        ("sweep-faces-x", 4, 1, 4),  # four nodes of a face: three sums and a product
        ("viscosity", 3 * 8 + 6 + 2, 1, 126),  # corners of three velocities, six pressures, density and sound
        ("accelerate", 2 * 8 + 1 + 3 * 2, 9, 50),  # corners of two fields, the mass; velocity and displacement
    ],
)
def test_counts_of_small_kernels_are_those_by_hand(kernel, loads, stores, operations):
    scalar, vector = (counts.counts()[kernel, variant, 150] for variant in "DE")
    assert (scalar["loads"], scalar["stores"], scalar["operations"]) == (loads, stores, operations)
    assert scalar["vector_operations"] == 0 and vector["vector_operations"] == operations / 2
    assert vector["accesses"] == scalar["accesses"] / 2  # rows have an even number of cells


@pytest.mark.ids("DE1")
@pytest.mark.parametrize("kernel", counts.REMAPS)
def test_lines_and_rows_differ_in_misses_only(kernel):
    a, b = (counts.counts()[kernel, variant, 150] for variant in "AB")
    for name in ("operations", "loads", "stores"):
        assert a[name] == pytest.approx(b[name], rel=0.01)
    same_order = kernel.endswith("-x")
    assert (a["l1_misses"] == b["l1_misses"]) if same_order else (a["l1_misses"] > 1.5 * b["l1_misses"])


def test_arrays_of_the_whole_grid_access_more_than_rows():
    for kernel in counts.REMAPS:
        b, c = (counts.counts()[kernel, variant, 150] for variant in "BC")
        assert c["accesses"] > b["accesses"] and c["l2_misses"] > b["l2_misses"]


@pytest.mark.ids("DB3", "DE1")
@pytest.mark.parametrize(
    ("changed", "name", "factor", "check"),
    [
        (("remap-cells-y", "C", 150), "operations", 1.2, counts.same_operations),
        (("rates", "E", 150), "vector_operations", 0.9, counts.vector_share),
        (("remap-nodes-z", "B", 150), "l2_misses", 2.0, counts.misses_of_lines),
    ],
)
def test_other_counts_miss_the_bars(changed, name, factor, check, monkeypatch):
    assert check().state == checks.MET
    wrong = dict(counts.counts())
    wrong[changed] = {**wrong[changed], name: factor * wrong[changed][name]}
    monkeypatch.setattr(counts, "counts", lambda: wrong)
    assert check().state == checks.MISSED
