"""Findings of the 2011 study: each that can be judged on one node turns with the measurements."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from haloscope import records
from haloscope.bridge import Choice
from haloscope.studies import Options
from haloscope.studies.findings import FAILS, HOLDS, NEEDS, UNCLEAR, Finding
from haloscope_studies.white2011 import study, versions
from haloscope_studies.white2011.comparisons import groups
from reports import made_up

NODE = Options(sizes=(32,), steps=10, cores=4, device="cuda")
LETTERS = {version.schedule: letter for letter, version in versions.VERSIONS.items() if letter != "A"}
ELSEWHERE = {"crossover", "block-y", "thickness-falls"}  # need more than one node
FEW_BLOCKS, FEW_WALLS = ("", "16x8", "32x8"), (1, 3, 5)
GF = {"B": 1.0, "C": 1.0, "D": 1.0, "E": 86.0, "F": 24.0, "G": 35.0, "H": 30.0, "I": 82.0}

Speed = Callable[[str, Choice], float]


def judged(speed: Speed, options: Options = NODE, noise: float = 0.0) -> dict[str, Finding]:
    """The findings of made-up records, in which versions run at some speed, with few of the boxes and block shapes."""
    few = [
        r for r in study.plan(options).requests if r.choice.device_block in FEW_BLOCKS and r.choice.walls in FEW_WALLS
    ]
    found = made_up(few, lambda choice: 1 / speed(LETTERS[choice.schedule], choice), launches=4)
    rng = np.random.default_rng(1)
    for record in found:
        factor = float(np.exp(noise * rng.normal()))
        record["time_s"]["repetitions"] = [factor * seconds for seconds in record["time_s"]["repetitions"]]
    return {one.name: one for one in study.findings(found, options)}


def at(**changes: float) -> Speed:
    """Speeds like the paper's, with some versions changed."""
    return lambda letter, _: (GF | changes)[letter]


def by_threads(speed_of: Callable[[int, int], float], **changes: float) -> Speed:
    """The same, times a factor of B's cores and threads per task."""
    return lambda letter, c: (
        at(**changes)(letter, c) * (speed_of(c.ranks * c.threads, c.threads) if letter == "B" else 1)
    )


def by_width(factor: float) -> Speed:
    """Speeds of E times a factor in blocks of 32 threads in x."""
    return lambda letter, c: GF[letter] * (factor if c.device_block.startswith("32x") else 1)


def by_walls(factor: float) -> Speed:
    """Speeds of I times a factor in boxes of 4 layers and more."""
    return lambda letter, c: GF[letter] * (factor if letter == "I" and c.walls > 3 else 1)


# finding: speeds in which it holds, in which it does not, and in which noise decides
TURNS: dict[str, tuple[Speed, Speed, Speed]] = {
    "nonblocking-gains": (at(C=1.1), at(C=0.9), at()),
    "thread-lags": (at(D=0.8), at(D=1.2), at()),
    "threads-over-overlap": (by_threads(lambda _, t: t), by_threads(lambda _, t: 1 / t, C=1.5), at()),
    "threads-grow": (
        by_threads(lambda cores, t: 1 / (1 + abs(t - cores / 2))),
        by_threads(lambda cores, t: 1 / t),
        by_threads(lambda cores, t: 1.0),
    ),
    "block-x": (by_width(1.5), by_width(0.5), by_width(1.0)),
    "thin-box": (by_walls(0.5), by_walls(1.5), by_walls(1.0)),
    "streams": (at(), at(G=20), at(G=24)),
    "twice": (at(), at(G=60), at(G=41)),
    "near-resident": (at(I=85), at(I=60), at(I=0.95 * 86)),
    "over-cpus": (at(), at(B=30), at(B=82 / 4, C=1, D=1)),
    "over-sum": (at(I=90), at(), at(I=87)),
}
NOISE = (0.0, 0.0, 0.3)


def test_every_finding_that_one_node_can_judge_is_turned_both_ways():
    names = {one.name for one in study.findings((), NODE)}
    assert names == TURNS.keys() | ELSEWHERE and not TURNS.keys() & ELSEWHERE


@pytest.mark.parametrize("name", TURNS)
def test_a_finding_follows_the_measurements(name):
    options = Options(**(vars(NODE) | {"cores": 8 if name == "threads-grow" else 4}))
    verdicts = [judged(speed, options, noise)[name].here for speed, noise in zip(TURNS[name], NOISE, strict=True)]
    assert [one.verdict for one in verdicts] == [HOLDS, FAILS, UNCLEAR], verdicts


def test_an_imitated_device_judges_no_finding_about_a_gpu():
    found = judged(at(), Options(**(vars(NODE) | {"device": "host"})))
    of_gpus = {"block-x", "thin-box", "streams", "twice", "near-resident", "over-cpus", "over-sum"}
    assert {str(found[name].here) for name in of_gpus} == {"needs a GPU"}
    assert found["nonblocking-gains"].here.verdict != NEEDS


def test_findings_beyond_one_node_name_what_they_need():
    found = judged(at())
    assert {str(found[name].here) for name in ELSEWHERE} == {
        "needs thousands of cores",
        "needs two kinds of GPU",
        "needs several nodes with GPUs",
    }
    thin = judged(at(), Options(**(vars(NODE) | {"short": True})))["thin-box"].here
    assert str(thin) == "needs thicker boxes"


def test_stated_numbers_are_judged_by_their_ratios():
    """Digest of the paper, sections 6 and 8: 24, 35, 82 and 86 GF; blocks of 32 x 11 and 32 x 8; boxes of 1 and 3."""
    printed = {one.name: str(one.printed) for one in study.findings((), NODE)}
    assert printed["streams"] == "holds: 1.458, one node of Yona"
    assert printed["twice"] == "holds: 2.343 to 3.417, 2 of 2 within, over F and G, one node of Yona"
    assert printed["near-resident"] == "holds: 0.953, one node of Yona"
    assert printed["block-x"].startswith("holds: 32.00 to 32.00")
    assert printed["block-y"] == "holds: 1.375, largest over smallest"
    assert printed["thin-box"] == "holds: 1.000 to 3.000, 2 of 2 within, layers"
    assert sum(text.startswith("holds") for text in printed.values()) == 6
    assert all(text.startswith("needs") for text in printed.values() if not text.startswith("holds"))


def test_the_setting_of_a_launch_is_chosen_in_the_others():
    """In each launch, another setting is the fastest by chance; chosen within the launch, B would gain from it."""
    options = Options(sizes=(32,), steps=10, cores=2)
    found = made_up(study.plan(options).requests, lambda _: 1.0, launches=2)
    for record in found:
        if record["request"]["schedule"] == "bulk":
            lucky = record["request"]["threads"] == int(record["launch"]["id"][-1])
            record["time_s"]["repetitions"] = [5.0 if lucky else 10.0] * 3
    assert all(records.fault_of(record) == "" for record in found)
    [group] = [g for g in groups(study.measured_points(found, options)) if g.cores == 2]
    assert group.best("B") == {"launch-1": [1.0] * 3, "launch-2": [1.0] * 3}
