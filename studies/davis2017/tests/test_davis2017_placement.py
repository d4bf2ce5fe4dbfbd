"""Pairs and sockets of the placements that Davis 2017 prints."""

from __future__ import annotations

import json
import math
import subprocess
from collections import Counter, defaultdict

import pytest

from haloscope import scratch
from haloscope.model import placement
from haloscope.studies import published as table
from haloscope_studies.davis2017.replay import results as davis2017_results
from test_lab import COMMAND, needs_namespaces


@pytest.mark.ids("DC4")
def test_pairs_on_the_worst_node_are_those_of_table_5_8():
    wanted: dict = defaultdict(dict)
    for r in table("davis2017", "pair_counts"):
        case = (tuple(int(r[k]) for k in ("px", "py", "pz")), tuple(map(int, r["worst_node"].split("/"))))
        wanted[case][r["placement"], r["dimension"]] = int(r["pairs"])
    assert len(wanted) == 8
    for (grid, nodes), pairs in wanted.items():
        counts = placement.pair_counts(grid, placement.place("fill", math.prod(grid), 2, 6))
        expected = tuple(tuple(pairs[where, d] for d in "XYZ") for where in ("intra", "inter"))
        assert counts.worst == expected and counts.worst_node() in nodes


@pytest.mark.ids("DB7", "DF5")
def test_socket_loads_of_the_mapping_study_are_reproduced_except_two_contradictory_rows():
    found = [c for c in davis2017_results.mappings() if c.what.startswith("sockets")]
    assert len(found) == 16 and all(c.state == "met" for c in found)
    assert davis2017_results.TEN_A_NODE == ((32, "node_balanced"), (64, "node_balanced"))


NAMES = {"fill": "node_fill", "balanced": "node_balanced", "by-socket": "socket_balanced"}


def printed(pes: int, mapping: str) -> Counter:
    """Return the sockets of table 4.5 by their number of active cores."""
    rows = [row for row in table("davis2017", "mapping_layout") if (int(row["pes"]), row["mapping"]) == (pes, mapping)]
    return Counter({int(row["active_cores_per_socket"]): int(row["sockets"]) for row in rows})


def run_mapped(rule: str, ranks: int, *more: str) -> tuple[dict, str]:
    """Run hydro3d on hosts of two emulated sockets for six ranks; return the record and the output."""
    words = "run hydro3d --cells 12x12x12 --steps 1 --repetitions 1 --launches 1 --verify 0 --sockets 2x6"
    with scratch.folder() as folder:
        own = ["-n", str(ranks), "--mapping", rule, "--output", str(folder / "r.jsonl"), *more]
        done = subprocess.run([*COMMAND, *words.split(), *own], capture_output=True, text=True, check=True, timeout=120)
        [record] = map(json.loads, (folder / "r.jsonl").read_text().splitlines())
    return record, done.stdout


@pytest.mark.ids("DB7")
@pytest.mark.parametrize("rule", NAMES)
def test_a_run_on_two_emulated_sockets_has_the_printed_ranks_on_each(rule):
    """The cores on which Linux lets each rank run, as the rank finds them, are one of two halves of this machine's."""
    record, output = run_mapped(rule, 8)
    where = Counter((host, tuple(cores)) for host, cores in zip(*of_ranks(record), strict=True))
    assert Counter(where.values()) == printed(8, NAMES[rule])
    sockets = [set(cores) for _, cores in where]
    assert len(sockets) == 2 and not set.intersection(*sockets)
    assert reported(8, rule) in output


@needs_namespaces
@pytest.mark.ids("DB7")
@pytest.mark.parametrize("rule", NAMES)
def test_a_run_on_two_emulated_hosts_has_the_printed_ranks_on_each(rule):
    record, output = run_mapped(rule, 16, "--lab", "2")
    of_hosts = Counter(of_ranks(record)[0])
    assert sorted(of_hosts.values()) == ([4, 12] if rule == "fill" else [8, 8])
    assert reported(16, rule) in output


def reported(ranks: int, rule: str) -> str:
    """Return the report of a run with the sockets of table 4.5."""
    loads = [f"{n} socket{'s' * (n > 1)} with {load}" for load, n in printed(ranks, NAMES[rule]).items()]
    return f"{ranks} ranks, {', '.join(loads)}; sockets are emulated"


def of_ranks(record: dict) -> tuple[list, list]:
    """Return the host and the cores of each rank."""
    return record["environment"]["hosts"], record["environment"]["placement"]
