"""Findings of the 2023 thesis: by the printed numbers, and turned both ways by made-up records."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable

import pytest

from haloscope.studies.findings import FAILS, HOLDS, NEEDS, UNCLEAR, Finding
from haloscope_studies.valen2023 import comparisons, findings
from haloscope_studies.valen2023 import study as valen2023
from test_records import measurement, spread

SMALL, LARGE = 5000, 20000
STEPS = 64
OPTIONS = dataclasses.replace(valen2023.DEFAULTS["full"], sizes=(SMALL, LARGE), steps=STEPS, device="cuda")
BASE = {"execution": 20.0, "pack": 1.0, "unpack": 1.0, "message": 1.0, "desync": 0.2}
PHASES = {"pack": "pack", "unpack": "unpack", "message": "wait", "desync": "desync"}
Times = dict[str, float]
Effect = Callable[[Times, int, str, int, int], None]  # times of a run, side, program, depth, direction


def shorter_with_depth(*parts: str) -> Effect:
    def change(times: Times, side: int, program: str, depth: int, way: int) -> None:
        times.update({part: times[part] * depth ** (-0.3 * way) for part in parts})

    return change


def packing_up_to_8(times: Times, side: int, program: str, depth: int, way: int) -> None:
    times["pack"] *= 2.0 ** (way * (depth == 1))


def depth_on_small_grids(times: Times, side: int, program: str, depth: int, way: int) -> None:
    times["execution"] *= depth ** (-0.3 * way * (side == SMALL))


def overlap(times: Times, side: int, program: str, depth: int, way: int) -> None:
    times["execution"] *= 0.9 ** (way * ("overlapped" in program))


def overlap_on_large_grids(times: Times, side: int, program: str, depth: int, way: int) -> None:
    times["execution"] -= 0.5 * way * ("overlapped" in program and side == LARGE)


def best_depths(times: Times, side: int, program: str, depth: int, way: int) -> None:
    small_one = "overlapped" if way > 0 else "phased"
    times["execution"] *= 0.5 ** (depth == (8 if small_one in program else 32))


def most_hidden_elsewhere(times: Times, side: int, program: str, depth: int, way: int) -> None:
    fastest, hidden = (16, 1) if way > 0 else (1, 16)
    times["execution"] -= 4.0 * (depth == fastest)
    times["execution"] += 1.0 * (depth == hidden and "phased" in program)


def depth_with_overlap(times: Times, side: int, program: str, depth: int, way: int) -> None:
    times["execution"] *= 0.9 ** (way * ((program, depth) == ("ordered overlapped", 8)))


def direct(part: str, depth: int) -> Effect:
    def change(times: Times, side: int, program: str, at: int, way: int) -> None:
        times[part] *= 3.0 ** (way * ("direct" in program and at == depth))

    return change


def slow_unpacking(times: Times, side: int, program: str, depth: int, way: int) -> None:
    times["unpack"] *= 3.0 ** (way * ("overlapped" in program and depth == 1))


def no_effect(times: Times, side: int, program: str, depth: int, way: int) -> None:
    """Leave all runs equal."""


EFFECTS: dict[str, Effect] = {
    "depth_shortens_runs": shorter_with_depth("execution"),
    "depth_shortens_messages": shorter_with_depth("message"),
    "depth_shortens_copies": shorter_with_depth("pack", "unpack"),
    "gains_end_at_depth_8": packing_up_to_8,
    "depth_gains_less_on_large_grids": depth_on_small_grids,
    "overlap_shortens_runs": overlap,
    "overlap_hides_more_on_large_grids": overlap_on_large_grids,
    "overlap_prefers_smaller_depths": best_depths,
    "most_hidden_is_not_fastest": most_hidden_elsewhere,
    "depth_and_overlap_add_up": depth_with_overlap,
    "ordered_is_the_safe_choice": direct("message", 4),
    "direct_messages_stumble": direct("message", 64),
    "slow_messages_delay_ranks_unequally": direct("desync", 64),
    "unpacking_competes_with_the_inner_sweep": slow_unpacking,
    "competition_ends_with_depth": slow_unpacking,
}


def record(
    key: tuple[int, str, int],
    times: Times,
    launch: int,
    device: str,
    oversubscribed: bool = False,
    status: str = "passed",
) -> dict:
    side, _, depth = key
    [request] = valen2023.request(*key, OPTIONS).requests
    own = {"process_grid": [2, 2], "device": device, "cells": [side, side], "steps": STEPS, "depth": depth}
    made = measurement(request.id, f"launch-{launch}", [times["execution"]], **(request.request() | own))
    made["environment"] = made["environment"] | {"oversubscribed": oversubscribed}
    made["verification"] = {"status": status}
    made["phases_s"] = {phase: spread(times[part] / STEPS) for part, phase in PHASES.items()}
    return made


def judged(effect: Effect, ways: tuple[int, ...], device: str = "cuda", **changes) -> dict[str, Finding]:
    """Return the findings by records in whose launches an effect has some direction."""
    found = []
    for launch, way in enumerate(ways):
        for key in valen2023.points(OPTIONS):
            times = dict(BASE)
            effect(times, *key, way)
            found.append(record(key, times, launch, device, **changes))
    return {one.name: one for one in valen2023.findings(found, OPTIONS)}


def test_every_finding_is_turned_both_ways():
    assert [one.name for one in findings.CONCLUSIONS] == list(EFFECTS)


@pytest.mark.parametrize("name", EFFECTS)
def test_a_finding_holds_fails_or_cannot_be_told_by_the_records(name):
    for ways, verdict in {(1, 1, 1): HOLDS, (-1, -1, -1): FAILS, (1, -1, 1): UNCLEAR}.items():
        assert judged(EFFECTS[name], ways)[name].here.verdict == verdict, (ways, verdict)


def test_no_difference_supports_no_finding():
    found = judged(no_effect, (1, 1))
    assert {one.here.verdict for one in found.values()} == {FAILS}


def test_runs_without_a_gpu_judge_no_competition_of_kernels():
    found = judged(shorter_with_depth("execution"), (1, 1), device="")
    of_gpus = {one.name for one in findings.CONCLUSIONS if one.on_gpu}
    assert {name for name, one in found.items() if str(one.here) == "needs a GPU"} == of_gpus
    assert found["depth_shortens_runs"].here.verdict == HOLDS


def test_imitated_devices_shared_cores_and_wrong_results_judge_no_finding():
    assert {str(one.here) for one in judged(no_effect, (1, 1), device="host").values()} == {"needs a GPU"}
    shared = judged(no_effect, (1, 1), oversubscribed=True)
    assert {str(one.here) for one in shared.values()} == {"needs a core for each rank"}
    wrong = judged(no_effect, (1, 1), status="failed")
    assert {str(one.here) for one in wrong.values()} == {"needs correct results"}
    assert {one.here.verdict for one in valen2023.findings([], OPTIONS)} == {NEEDS}


def test_a_run_needs_the_depths_and_sides_of_a_finding():
    found = {one.name: str(one.here) for one in valen2023.findings(of_depth_1(launches=2), OPTIONS)}
    assert found["overlap_shortens_runs"].endswith(", 2 cases")
    assert found["depth_shortens_runs"] == "needs depths 1 and 8"
    assert found["overlap_prefers_smaller_depths"] == "needs depths 1 to 64"
    assert found["overlap_hides_more_on_large_grids"] == "needs two sides"


def of_depth_1(launches: int) -> list[dict]:
    keys = [(SMALL, program, 1) for program in comparisons.PROGRAMS]
    return [record(key, BASE, launch, "cuda") for launch in range(launches) for key in keys]


def test_only_launches_that_all_cells_have_count():
    rows = valen2023.measured_rows(of_depth_1(launches=3)[:-1], OPTIONS)
    assert len(rows) == 4 and list(comparisons.tables_by_launch(rows)) == ["launch-0", "launch-1"]


def test_a_share_below_zero_is_noise():
    def too_fast(times: Times, side: int, program: str, depth: int, way: int) -> None:
        times["execution"] -= 5.0 * ("overlapped" in program)

    here = judged(too_fast, (1, 1))["overlap_hides_more_on_large_grids"].here
    assert str(here) == "cannot be told: the differences are below the noise"


# --- the printed numbers ----------------------------------------------------------------------------------------------


def printed(name: str, machine: str, side: int | None = None) -> float:
    """Return the number of a finding for the cells of appendix C of one machine, and perhaps one side."""
    [one] = [one for one in findings.CONCLUSIONS if one.name == name]
    table = comparisons.published_table(machine)
    return findings.ratio(one, {key: cell for key, cell in table.items() if side in (None, cell.side)})


# The best depths of phased and overlapped runs, ordered and then direct, sides 5000 to 35000: digest, section 9.1.
BEST = {
    "V100": "32:32 32:8 16:8 16:16 32:16 64:16 8:4   32:32 32:8 16:8 16:16 8:8 8:8 4:4",
    "A100": "32:64 64:32 64:8 32:8 32:8 64:8 8:8   32:32 32:32 64:8 32:8 32:4 32:4 8:4",
}


@pytest.mark.parametrize("machine", BEST)
def test_best_depths_with_and_without_overlap_are_those_of_the_digest(machine):
    expected = statistics.geometric_mean(
        [int(p) / int(o) for p, o in (pair.split(":") for pair in BEST[machine].split())]
    )
    assert printed("overlap_prefers_smaller_depths", machine) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "machine", "side", "expected", "digits"),
    [  # digest, sections 9.1 to 9.3
        ("depth_and_overlap_add_up", "A100", 35000, 1.1736, 1e-4),
        ("depth_and_overlap_add_up", "V100", 30000, 6.9822 / 6.3969, 1e-4),
        ("gains_end_at_depth_8", "V100", 35000, 1.45 / 1.099, 0.01),
        ("gains_end_at_depth_8", "A100", 35000, 1.55 / 1.199, 0.01),
        ("direct_messages_stumble", "V100", 35000, 9.5, 0.05),
        ("most_hidden_is_not_fastest", "A100", 35000, 8 / 1, 1e-9),
    ],
)
def test_ratios_of_single_sides_are_those_of_the_digest(name, machine, side, expected, digits):
    assert printed(name, machine, side) == pytest.approx(expected, abs=digits)


# Geometric means over all sides of (V100, A100), by a script of loops over the published cells.
BY_LOOPS = {
    "depth_shortens_runs": (1.152, 1.150),
    "depth_shortens_messages": (1.498, 1.660),
    "gains_end_at_depth_8": (1.733, 1.686),
    "depth_gains_less_on_large_grids": (1.533, 1.203),
    "overlap_shortens_runs": (1.054, 1.095),
    "overlap_hides_more_on_large_grids": (1.181, 2.640),
    "overlap_prefers_smaller_depths": (1.641, 2.972),
    "most_hidden_is_not_fastest": (5.384, 10.767),
    "depth_and_overlap_add_up": (1.240, 1.384),
    "ordered_is_the_safe_choice": (9.476 / 1.241, 3.311 / 1.297),
    "direct_messages_stumble": (5.450, 1.183),
    "slow_messages_delay_ranks_unequally": (7.846, 3.014),
    "unpacking_competes_with_the_inner_sweep": (5.077, 4.445),
    "competition_ends_with_depth": (3.437, 3.457),
    "depth_shortens_copies": (1.947 ** (2 / 3) * 1.516 ** (1 / 3), 2.127 ** (2 / 3) * 1.750 ** (1 / 3)),
}


@pytest.mark.parametrize("name", EFFECTS)
def test_the_printed_numbers_give_the_ratios_that_other_code_gives(name):
    assert (printed(name, "V100"), printed(name, "A100")) == pytest.approx(BY_LOOPS[name], rel=1e-3)
    [one] = [one for one in valen2023.findings([], OPTIONS) if one.name == name]
    assert one.printed.verdict == HOLDS and one.printed.basis.endswith(
        "2 of 2 within, means over cases on A100 and V100"
    )
