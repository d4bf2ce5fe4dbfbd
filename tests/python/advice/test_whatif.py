"""`haloscope whatif`: placements, process grids and machines against each other; and kernels that leave their line."""

from __future__ import annotations

import json

import pytest

from haloscope import bridge
from haloscope.advice import anomalies, whatif
from haloscope.model import predict, profile
from haloscope.report import validate
from test_records import measurement
from toy import TOY, changed

GRID = ("laplace2d", "--cells", "256", "-n", "16")


def slow_to_talk(toy, path, latency_s: float = 1e-3):
    """A machine whose messages between nodes take long and whose sweeps are twice as fast; its file."""

    def change(data):
        data["name"] = "slow-to-talk"
        for segment in data["network"]["classes"]["network"]["segments"]:
            segment["latency_s"] += latency_s
        for table in data["kernels"].values():
            for rows in table.values():
                for row in rows:
                    row["per_cell_s"] /= 2

    profile.save(changed(toy, change), path)
    return path


def answer(haloscope, *words) -> dict:
    done = haloscope("whatif", *words, "--json")
    assert done.code == 0, done.err
    return json.loads(done.out)


@pytest.mark.ids("DF1", "DF2")
def test_fewer_cores_of_a_socket_take_more_nodes_and_cost_node_hours(haloscope):
    document = answer(haloscope, *GRID, "--profile", TOY, "--active", "4,2,1")
    found = document["variants"]
    assert [(v["active"], v["nodes"], v["busiest_socket"]) for v in found] == [(4, 2, 4), (2, 4, 2), (1, 8, 1)]
    full = found[0]
    assert (full["speedup"], full["node_hours"]) == (1, 1)
    for v in found:
        alone = predict.predict(
            bridge.Choice("laplace2d", (256, 256), ranks=16),
            profile.load(TOY),
            predict.RunSettings(active=v["active"]),
            samples=0,
        )
        assert v["time_s"] == alone.time_s
        assert v["speedup"] == pytest.approx(full["time_s"] / v["time_s"])
        assert v["node_hours"] == pytest.approx(v["time_s"] * v["nodes"] / (full["time_s"] * full["nodes"]))


@pytest.mark.ids("DF2")
@pytest.mark.parametrize(("active", "seconds", "ratio"), [(1, 427.39, 3.66), (2, 480.02, 2.06), (4, 585.83, 1.25)])
def test_node_hours_of_the_2017_study(active, seconds, ratio):
    """Table 6.6, 256 processes, against 700.35 s with 6 a socket; nodes in proportion."""
    assert whatif.cost_ratio(seconds, 6 / active, 700.35, 1) == pytest.approx(ratio, abs=0.01)


@pytest.mark.ids("DF5")
def test_placements_change_pairs_and_time(haloscope):
    found = answer(
        haloscope, "laplace2d", "--cells", "256", "-n", "6", "--profile", TOY, "--mapping", "fill,by-socket"
    )["variants"]
    assert [v["mapping"] for v in found] == ["fill", "by-socket"]
    assert [v["busiest_socket"] for v in found] == [4, 3]
    assert found[0]["time_s"] > found[1]["time_s"]  # fewer ranks share a socket's memory
    dealt = answer(haloscope, *GRID, "--profile", TOY, "--mapping", "fill,round-robin")["variants"]
    assert dealt[0]["pairs_across"] < dealt[1]["pairs_across"]


@pytest.mark.ids("DF5")
def test_process_grids_change_pairs_and_time(haloscope):
    found = answer(haloscope, *GRID, "--profile", TOY, "--process-grid", "all")["variants"]
    by_grid = {v["choice"]["process_grid"]: v for v in found}
    assert set(by_grid) == {"1x16", "2x8", "4x4", "8x2", "16x1"}
    assert by_grid["1x16"]["pairs_across"] == 2  # a ring over two nodes
    assert len({v["time_s"] for v in found}) == 5
    named = answer(haloscope, *GRID, "--profile", TOY, "--process-grid", "1x16,4x4")["variants"]
    assert [v["time_s"] for v in named] == [by_grid["1x16"]["time_s"], by_grid["4x4"]["time_s"]]


@pytest.mark.parametrize(("ranks", "dims", "count"), [(1, 3, 1), (7, 2, 2), (12, 2, 6), (12, 3, 18), (64, 3, 28)])
def test_process_grids_are_all_ordered_factorisations(ranks, dims, count):
    found = list(whatif.process_grids(ranks, dims))
    assert len(found) == len(set(found)) == count
    for grid in found:
        product = 1
        for n in grid:
            product *= n
        assert product == ranks and len(grid) == dims


@pytest.mark.ids("DF4")
def test_two_machines_change_places_between_two_rank_counts_or_keep_their_order(haloscope, toy, tmp_path):
    other = slow_to_talk(toy, tmp_path / "other.json")
    grid = ("laplace2d", "--cells", "4096", "-n", "1..256*2", "--profile", TOY, "--against", other)
    document = answer(haloscope, *grid)
    times = {s["ranks"]: s["time_s"] for s in document["steps"]}
    low, high = document["crossing"]
    order = [times[ranks][0] < times[ranks][1] for ranks in times]
    assert high == 2 * low and order.index(True) == list(times).index(high) and not order[0]
    text = haloscope("whatif", *grid).out
    assert f"They change places between {low} and {high} ranks: from there on toy is ahead." in text
    near = haloscope("whatif", *grid[:4], f"1..{low}*2", *grid[5:]).out
    assert f"They do not change places up to {low} ranks: slow-to-talk is ahead." in near


def test_in_weak_scaling_the_grid_grows_with_the_ranks(haloscope):
    found = answer(haloscope, "laplace2d", "--cells", "64", "--weak", "-n", "1,2,6,7", "--profile", TOY)["variants"]
    for v, ranks in zip(found, (1, 2, 6, 7), strict=True):
        assert v["choice"].get("ranks", 1) == ranks
        grid = [int(n) for n in v["choice"]["process_grid"].split("x")]
        assert v["choice"]["cells"] == [64 * n for n in grid] and grid[0] * grid[1] == ranks


def test_the_table_says_what_differs_and_what_it_is_compared_with(haloscope):
    done = haloscope("whatif", *GRID, "--profile", TOY, "--active", "4,1", "--mapping", "fill,by-socket")
    rows = [line for line in done.out.splitlines() if line.startswith("|")]
    assert done.code == 0 and len(rows) == 2 + 4
    for word in ("mapping", "cores per socket", "nodes", "busiest socket", "pairs across", "speed-up", "node-hours"):
        assert word in rows[0]
    assert "against the first row" in done.out
    assert "8 nodes are needed, the profile's machine has 4 (rows 2, 4)" in done.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--process-grid", "all", "-n", "2,4"), "--process-grid all needs one number of ranks"),
        (("--active", "9"), "9 cores of a socket cannot be in use where it has 4"),
        (("--active", "x"), "--active 'x' is not a number"),
        (("--mapping", "fil"), "did you mean fill"),
        (("--against", "nowhere"), "nowhere"),
        (("--against", TOY, "--active", "1,2"), "give one value of everything else"),
        (("--against", TOY, "--cells", "64,128"), "give one value of everything else"),
        (("--active", "1,2,3,4", "--cells", "1000..1500"), "more than 2000"),
        (("--weak", "-n", "1..999", "--cells", "64,65,66"), "more than 2000"),
        (("--weak", "-n", "0"), "ranks"),
        (("--weak", "--process-grid", "4x4"), "--weak needs a process grid for any number of ranks"),
    ],
)
def test_requests_that_cannot_work_say_what_to_do(haloscope, words, message):
    done = haloscope("whatif", *GRID, "--profile", TOY, *words)
    assert done.code == 2 and message in done.err


# ---- kernels that leave their line -----------------------------------------------------------------------------------


@pytest.mark.ids("DF3")
def test_a_kernel_is_flagged_where_its_time_leaves_the_line_through_smaller_sizes():
    sizes = [1000, 2000, 4000, 8000, 16000]
    straight = [1e-6 + 2e-9 * n for n in sizes]
    assert anomalies.leaving(sizes, straight) is None
    bent = [t * (2 if n > 4000 else 1) for n, t in zip(sizes, straight, strict=True)]
    found = anomalies.leaving(sizes, bent)
    assert (found.last_on, found.first_off) == (4000, 8000) and found.ratio == pytest.approx(2)
    assert anomalies.leaving(sizes, bent, threshold=1.1) is None
    assert anomalies.leaving(sizes[::-1], bent[::-1]) == found


def sized(cells: int, per_point_s: float, **request) -> dict:
    record = measurement()
    record["request"] |= {"app": "laplace2d", "cells": [cells, cells], "ranks": 2, "steps": 10, **request}
    record["id"] = f"{cells} {request}"
    record["counts"]["swept_points"] = 10 * cells**2
    record["phases_s"] = {
        "compute": dict.fromkeys(("rank0", "min", "median", "mean", "max"), per_point_s * cells**2 / 2)
    }
    return record


@pytest.mark.ids("DF3")
def test_records_show_which_sweeps_leave_their_line():
    cost = {64: 1e-9, 128: 1e-9, 256: 1e-9, 512: 3e-9}
    bent = [sized(n, c, form="star") for n, c in cost.items()]
    straight = [sized(n, 1e-9, form="star", depth=2) for n in cost]
    few = [sized(n, 1e-9, form="star", depth=4) for n in (64, 128)]
    text = validate.anomalies(bent + straight + few)
    rows = [line for line in text.splitlines() if line.startswith("| laplace2d")]
    assert len(rows) == 1 and "2 kernels measured at 3 sizes or more" in text
    shown = [part.strip() for part in rows[0].split("|")[2:5]]
    assert shown == [f"{256**2 / 2:.0f}", f"{512**2 / 2:.0f}", "3.00"]
    assert "None leaves its line." in validate.anomalies(straight)
    assert validate.anomalies(few) == ""
