"""The rank program on SimGrid's simulated networks, against plans and our own simulation; platforms and their
profiles.
"""

from __future__ import annotations

import math
from xml.etree import ElementTree

import pytest

import other_mpi
from haloscope import bridge, errors
from haloscope.measure import space
from haloscope.measure.request import Request
from haloscope.simulate import simgrid, simulate

MOST_LIKE = ("ordered/p2p", "direct/p2p", "direct:merged/p2p")


@pytest.fixture(scope="module")
def place():
    """A build on SimGrid."""
    return other_mpi.get("simgrid", "haloscope-rank").folder


def requests(app: str, cells, ranks: int, strategies=MOST_LIKE, depths=(1,), process_grid: str = "") -> list[Request]:
    """Return the requests of one case."""
    axes = {"cells": [cells], "ranks": [ranks], "strategy": strategies, "depth": depths, "process_grid": [process_grid]}
    planned = space.expand(app, axes)
    assert not planned.refused
    return planned.requests


# ---- platforms -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", simgrid.KINDS)
@pytest.mark.parametrize("hosts", [8, 64, 512])
def test_a_platform_has_as_many_hosts_as_asked(kind, hosts, tmp_path):
    simgrid.Platform(kind, hosts).write(tmp_path)
    cluster = ElementTree.parse(tmp_path / "platform.xml").getroot().find("cluster")
    levels, _, numbers = cluster.get("topo_parameters").rpartition(";")[0].partition(";")
    sizes = cluster.get("topo_parameters") if kind == "torus" else numbers.partition(";")[0]
    assert math.prod(map(int, sizes.split(","))) == hosts
    assert levels == ("" if kind == "torus" else str(sizes.count(",") + 1))
    assert cluster.get("radical") == f"0-{hosts - 1}"
    assert len((tmp_path / "hostfile").read_text().split()) == hosts


@pytest.mark.parametrize(("kind", "hosts"), [("torus", 100), ("fat-tree", 1), ("hypercube", 64)])
def test_a_platform_that_cannot_be_is_refused(kind, hosts):
    with pytest.raises(errors.UsageError, match=r"possible|unknown"):
        simgrid.Platform(kind, hosts)


def test_a_message_costs_by_the_profile_what_its_route_does():
    """One message each way through six links of 0.5 us, 0.1 us at either end, 10 GB/s."""
    platform = simgrid.Platform("fat-tree", 512)
    assert platform.latency_s == pytest.approx(6 * 5e-7 + 2 * 1e-7)
    (one,) = requests("laplace2d", (4096, 4096), 2, ["ordered/p2p"], process_grid="1x2")
    own = simulate.simulate(
        one.choice, platform.profile(), options=simulate.SimulationOptions(overhead_s=platform.overhead_s)
    )
    sizes = 2 * 4096 * 8  # two neighbours: the other rank twice
    assert own.time_s == pytest.approx(6 * 5e-7 + 4 * 1e-7 + sizes / 1e10, rel=0.05)


def pair(smpi_s: float, own_s: float) -> simgrid.Pair:
    """Return a pair of times; the rest does not matter."""
    return simgrid.Pair(Request.of(bridge.Choice("laplace2d", (8, 8))), smpi_s, own_s, (0, 0), (0, 0))


def test_agreement_counts_pairs_of_a_case_that_have_an_order():
    alike = [pair(1, 10), pair(2, 20), pair(2.02, 5)]  # 2 and 2.02 are near; 1 before 2.02 is contradicted
    found = simgrid.agreement({"a": alike, "b": [pair(9, 1)]})
    assert (found.concordant, found.discordant, found.pairs, found.near_ties) == (1, 1, 2, 1)
    assert found.tau == 0
    assert simgrid.agreement({"a": [pair(1, 3), pair(2, 3)]}).tau == 0  # a tie of ours is no agreement
    assert math.isnan(simgrid.agreement({"a": [pair(1, 3), pair(1, 4)]}).tau)


def test_without_a_build_on_simgrid_the_remedy_is_named(tmp_path):
    with pytest.raises(errors.UnavailableError, match=r"scripts/other_mpi.sh simgrid"):
        simgrid.command(simgrid.Platform("torus", 8), tmp_path, tmp_path)


# ---- runs ------------------------------------------------------------------------------------------------------------

SOME = ("ordered/p2p", "ordered:merged/p2p", "ordered/persistent", "direct/p2p", "direct:merged/p2p")
CASES = {  # app, cells, process grid; with two ranks a dimension neighbours are met twice, so that merging counts
    64: [("advection3d", 32, ""), ("advection3d", 128, ""), ("laplace3d", 64, ""), ("advection3d", 64, "16x2x2")],
    512: [("laplace3d", 64, ""), ("laplace3d", 128, ""), ("laplace2d", 1024, "")],
}
BAR = 0.8  # of Kendall's tau


def cube(app: str, side: int) -> tuple[int, ...]:
    """Return the cells of an app's cube."""
    return (side,) * (2 if app.endswith("2d") else 3)


def checked(request: Request, steps: int) -> Request:
    """Return a request that runs one step and is compared with `reference` after `steps` steps."""
    return request.measured(steps=1, repetitions=1, warmup=0, verify=steps)


@pytest.mark.long
@pytest.mark.timeout(3600)  # the first test builds
@pytest.mark.parametrize("kind", simgrid.KINDS)
def test_eight_simulated_ranks_send_what_is_planned_and_get_it_right(place, kind):
    platform = simgrid.Platform(kind, 8)
    strategies = (*SOME, "direct:merged/p2p:testany", "ordered/p2p:datatype", "direct/p2p:blocking")
    chosen = requests("advection3d", (16, 12, 20), 8, strategies)
    for record in simgrid.run(platform, place, [checked(r, 3) for r in chosen]):
        assert record["verification"]["status"] == "passed", record["id"]
        assert record["environment"]["hosts"] == [f"node-{host}" for host in range(8)]
        assert record["environment"]["mpi_library"].startswith("SMPI")
    one = chosen[-3]
    messages, sizes = simgrid.planned(one)
    assert simgrid.sent(platform, place, one, exchanges=2) == (2 * messages, 2 * sizes)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_simulated_time_is_the_network_s_alone_and_always_the_same(place):
    """Two messages: both sends' overheads, two links of 0.5 us, the bytes of one (the other's go before), one
    receive's.
    """
    platform = simgrid.Platform("fat-tree", 8)
    chosen = requests("laplace2d", (64, 4096), 8, ["direct/p2p"], process_grid="1x8")
    first, again = (simgrid.compare(platform, place, chosen, (8, 12)) for _ in range(2))
    assert first == again
    expected = 2 * 1e-7 + 2 * 5e-7 + 64 * 8 / 1e10 + 1e-7
    assert first[0].own_s == pytest.approx(expected, rel=1e-6)
    assert first[0].smpi_s == pytest.approx(expected, rel=0.005)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "strategy",
    [
        "ordered/neighbor",
        "ordered/partitioned",
        "ordered/shared",
        "ordered/rma-fence",
        "direct/rma-lockall:flag",
        "ordered/persistent:datatype",
    ],
)
def test_what_smpi_lacks_is_refused_with_the_reason(place, strategy):
    chosen = requests("laplace2d", (32, 32), 8, [strategy])
    with pytest.raises(errors.UnavailableError, match=r"SMPI|simulated|lacks"):
        simgrid.run(simgrid.Platform("torus", 8), place, [checked(r, 0) for r in chosen])


@pytest.mark.long
@pytest.mark.parametrize("kind", simgrid.KINDS)
@pytest.mark.parametrize("hosts", [64, 512])
def test_many_simulated_ranks_send_the_bytes_of_the_plan(place, kind, hosts):
    platform = simgrid.Platform(kind, hosts)
    for one in requests("advection3d", (64, 64, 64), hosts, [s for s in SOME if s.endswith("/p2p")]):
        assert simgrid.sent(platform, place, one) == simgrid.planned(one), one.id


@pytest.mark.long
@pytest.mark.parametrize(("kind", "hosts"), [("torus", 64), ("fat-tree", 64), ("torus", 512)])
def test_many_simulated_ranks_get_the_bytes_of_the_reference(place, kind, hosts):
    platform = simgrid.Platform(kind, hosts)
    chosen = requests("advection3d", (64, 64, 64), hosts, SOME[3:] if hosts == 64 else SOME[:1])
    for record in simgrid.run(platform, place, [checked(r, 2) for r in chosen]):
        assert record["verification"]["status"] == "passed", record["id"]


@pytest.mark.long
@pytest.mark.parametrize("kind", simgrid.KINDS)
@pytest.mark.parametrize("hosts", [64, 512])
def test_simgrid_and_our_simulation_put_strategies_in_the_same_order(place, kind, hosts):
    platform = simgrid.Platform(kind, hosts)
    strategies = SOME if hosts == 64 else ("ordered/p2p", "ordered/persistent", "direct/p2p")
    chosen = [
        r for app, side, grid in CASES[hosts] for r in requests(app, cube(app, side), hosts, strategies, (1, 2), grid)
    ]
    pairs = simgrid.compare(platform, place, chosen)
    for p in pairs:
        assert p.counted == p.planned, p.request.id
    found = simgrid.agreement(simgrid.cases(pairs))
    ratios = [p.own_s / p.smpi_s for p in pairs]
    print(f"{kind} {hosts}: tau {found.tau:.3f}, {found}, own : SimGrid {min(ratios):.2f} .. {max(ratios):.2f}")
    assert found.pairs >= 10
    assert found.tau >= BAR, found
