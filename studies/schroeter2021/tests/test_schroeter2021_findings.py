"""Findings of the 2021 study: each turned both ways by made-up records, and its printed numbers recomputed."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from haloscope.bridge import Choice
from haloscope.studies import Options
from haloscope.studies.findings import FAILS, HOLDS, NEEDS, UNCLEAR, Finding
from haloscope_studies.schroeter2021 import study
from test_records import measurement, spread

SMALL = Options(sizes=(6, 4), ranks=2, steps=12, repetitions=1, launches=5, nodes=2, cores=2)


@dataclass(frozen=True)
class Turn:
    """The choices that are faster than all others where a finding holds. equal: it holds where none is faster."""

    faster: Callable[[Choice], bool]
    options: Options = SMALL
    hosts: tuple[str, ...] = ("a",)
    equal: bool = False


def version(choice: Choice) -> str:
    return next((v for v in ("shared", "rma") if v in choice.strategy), "p2p")


def scheme(choice: Choice) -> str:
    return dict(choice.set).get("residual", "")


def is_iterative(choice: Choice) -> bool:
    return "precision" not in dict(choice.set)


TURNS = {
    "shared": Turn(lambda c: version(c) == "p2p"),
    "jacobi": Turn(lambda c: version(c) == "rma", equal=True),
    "gauss-seidel": Turn(lambda c: version(c) == "p2p"),
    "waiting": Turn(lambda c: version(c) == "shared"),
    "pscw": Turn(lambda c: c.strategy == "direct/rma-pscw"),
    "passive": Turn(
        lambda c: c.strategy == "direct/rma-lock:get",
        dataclasses.replace(SMALL, ranks=16),
    ),
    "allreduce": Turn(is_iterative),
    "bottleneck": Turn(lambda c: version(c) == "p2p"),
    "chain": Turn(lambda c: scheme(c) == "chain"),
    "window": Turn(lambda c: c.strategy == "direct/rma-fence"),
    "split": Turn(
        lambda c: c.strategy == "direct/rma-fence:split", dataclasses.replace(SMALL, ranks=200, sizes=(40, 4))
    ),
    "full node": Turn(lambda c: version(c) == "shared"),
    "two nodes": Turn(lambda c: version(c) == "p2p", hosts=("a", "b")),
}
OTHERS = ("winner", "overshoot")  # turned by tests of their own


def records_of(
    options: Options,
    seconds: Callable[[Choice, int], float],
    hosts: tuple[str, ...] = ("a",),
    extra: Callable[[Choice], int] = lambda choice: 1,
) -> list[dict]:
    """Records of the whole plan: seconds of a run and of its waits, by launch, and iterations beyond one rank's."""
    found = []
    for request in study.plan(options).requests:
        for launch in range(options.launches):
            value = seconds(request.choice, launch)
            steps = options.steps + extra(request.choice)
            record = measurement(request.id, f"launch-{launch}", [value], **(request.request() | {"steps": steps}))
            record["environment"]["hosts"] = list(hosts)
            record["phases_s"]["wait"] = spread(value)
            found.append(record)
    return found


def judged(name: str, found: list[dict], options: Options = SMALL) -> Finding:
    return next(one for one in study.findings(found, options) if one.name == name)


def test_every_finding_is_turned():
    assert {one.name for one in study.findings((), SMALL)} == {*TURNS, *OTHERS}


@pytest.mark.parametrize("name", TURNS)
def test_a_finding_follows_the_faster_side(name):
    turn = TURNS[name]

    def verdict(*fast: float) -> str:
        found = records_of(
            turn.options, lambda c, launch: fast[launch % len(fast)] if turn.faster(c) else 1.0, turn.hosts
        )
        return judged(name, found, turn.options).here.verdict

    assert verdict(1.0 if turn.equal else 0.9) == HOLDS
    assert verdict(1.1) == FAILS
    assert verdict(0.5, 2.0) == UNCLEAR


def test_no_version_wins_where_each_is_beaten_somewhere():
    order = {"jacobi": ("p2p", "rma", "shared"), "gauss-seidel": ("shared", "rma", "p2p")}
    found = records_of(SMALL, lambda c, launch: 1 + order[c.form].index(version(c)))
    assert judged("winner", found).here.verdict == HOLDS
    found = records_of(SMALL, lambda c, launch: 1 + order["jacobi"].index(version(c)))
    assert judged("winner", found).here.verdict == FAILS
    found = records_of(SMALL, lambda c, launch: 2.0 if launch % 3 == len(version(c)) % 3 else 1.0)
    assert judged("winner", found).here.verdict == UNCLEAR


def test_noise_alone_beats_no_version():
    draw = random.Random(1)
    found = [
        records_of(dataclasses.replace(SMALL, launches=n), lambda c, launch: math.exp(draw.gauss(0, 0.1)))
        for n in (3, 4, 5, 6)
    ]
    assert [judged("winner", one).here.verdict for one in found] == [UNCLEAR] * 4


@pytest.mark.parametrize(("extra", "verdict"), [((1, 2), HOLDS), ((0, 0), FAILS), ((0, 2), UNCLEAR)])
def test_the_overshoot_counts_iterations(extra, verdict):
    few, more = extra
    found = records_of(SMALL, lambda c, launch: 1.0, extra=lambda c: few if version(c) == "p2p" else more)
    assert judged("overshoot", found).here.verdict == verdict


def test_findings_about_many_ranks_and_nodes_need_them():
    found = records_of(SMALL, lambda c, launch: 1.0)
    for name, lacking in (("passive", "16 ranks"), ("split", "200 ranks"), ("two nodes", "more than one node")):
        here = judged(name, found).here
        assert here.verdict == NEEDS and lacking in here.basis, name
    spread_out = records_of(SMALL, lambda c, launch: 1.0, hosts=("a", "b"))
    assert judged("full node", spread_out).here.verdict == NEEDS


def test_a_full_node_is_not_oversubscribed():
    found = records_of(SMALL, lambda c, launch: 1.0 if version(c) == "shared" else 2.0)
    crowded = [r | {"environment": r["environment"] | {"oversubscribed": True}} for r in found]
    assert judged("full node", crowded).here.verdict == NEEDS


@pytest.mark.parametrize(
    ("name", "basis"),
    [
        ("winner", "0.692, largest share of cases that name one version"),  # 9 of 13
        ("waiting", "0.478, 16 ranks, Mistral"),  # 11 s and 23 s
        ("bottleneck", "1.237, 16 ranks, WR"),  # 206.14 s and 166.58 s
        ("split", "0.937, 5 nodes, WR"),  # 1310.16 s and 1398.64 s: 6.3 % less
        ("full node", "0.923, 72 ranks, Mistral"),  # 29.14 s and 31.58 s
        ("two nodes", "1.364, 72 ranks, Mistral"),  # 29.55 s and 21.66 s
        ("overshoot", "5.000 to 162.0, 2 of 2 within, extra iterations"),
    ],
)
def test_printed_numbers_are_recomputed(name, basis):
    printed = judged(name, []).printed
    assert (printed.verdict, printed.basis) == (HOLDS, basis)


def test_the_other_findings_have_no_printed_numbers():
    numbers = {one.name for one in study.findings((), SMALL) if one.printed.verdict != NEEDS}
    assert numbers == {"winner", "waiting", "bottleneck", "split", "full node", "two nodes", "overshoot"}
