"""SimGrid: the rank program on a simulated torus or fat tree of 8 to 4096 hosts, and the profile of the same machine.

SimGrid's SMPI runs real ranks, whose messages share the links on their routes; `haloscope.simulate` does not model
routes. So a comparison of both on the same plans checks one simulation against another. Computing takes no time in
either. The figures of a platform are invented, of the magnitude of real networks; none is measured.
"""

from __future__ import annotations

import itertools
import json
import math
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from haloscope import bridge, errors, records, scratch
from haloscope.bridge import build
from haloscope.measure import launch
from haloscope.measure.request import Request
from haloscope.model import profile as profiles
from haloscope.simulate import simulate

KINDS = ("torus", "fat-tree")
PORTS = 8  # of a fat tree's switch towards the hosts
SIZES = tuple(PORTS**levels for levels in range(1, 5))  # hosts: also cubes of powers of two, which the torus needs
STEPS = (2, 6)  # of the two runs whose difference gives the time of a step: barriers and start cancel out
NEAR_TIE = 0.05  # two times that differ by less, as a part of the shorter, have no order
NEAR = ("persistent", "p2p:datatype")  # transports that cost the same as p2p: packing is free


@dataclass(frozen=True)
class Platform:
    """A machine of `hosts` hosts with one rank each. kind: torus (a cube, six links a host) or fat-tree (one link a
    host, switches with equally many links up and down).

    link_s: latency of a link in seconds; bytes_per_s: of a link, each way; overhead_s: seconds for which sender and
    receiver each are busy with a message; eager_below: bytes, larger messages wait for their receiver.
    """

    kind: str
    hosts: int
    link_s: float = 5e-7
    bytes_per_s: float = 1e10
    overhead_s: float = 1e-7
    eager_below: int = 16384

    def __post_init__(self) -> None:
        """Raise UsageError for a platform that cannot be built."""
        if self.kind not in KINDS:
            raise errors.UsageError(errors.unknown_name("platform", self.kind, KINDS))
        if self.hosts not in SIZES:
            raise errors.UsageError(
                f"a {self.kind} of {self.hosts} hosts is not possible; use {', '.join(map(str, SIZES))}"
            )

    @property
    def levels(self) -> int:
        """Levels of switches of a fat tree."""
        return SIZES.index(self.hosts) + 1

    @property
    def latency_s(self) -> float:
        """Seconds an empty message takes between neighbours of a torus, or through the top of a fat tree."""
        links = 1 if self.kind == "torus" else 2 * self.levels
        return links * self.link_s + 2 * self.overhead_s

    def topology(self) -> str:
        """Return SimGrid's name and parameters of the topology, as attributes of a cluster."""
        if self.kind == "torus":
            side = round(self.hosts ** (1 / 3))
            return f'topology="TORUS" topo_parameters="{side},{side},{side}"'
        down = ",".join([str(PORTS)] * self.levels)
        up = ",".join(["1"] + [str(PORTS)] * (self.levels - 1))
        return f'topology="FAT_TREE" topo_parameters="{self.levels};{down};{up};{",".join(["1"] * self.levels)}"'

    def xml(self) -> str:
        """Return SimGrid's platform file."""
        return (
            "<?xml version='1.0'?>\n"
            '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
            '<platform version="4.1">\n'
            f'  <cluster id="{self.kind}" prefix="node-" radical="0-{self.hosts - 1}" suffix="" speed="1Gf"\n'
            f'           bw="{self.bytes_per_s:.0f}Bps" lat="{self.link_s * 1e9:g}ns" sharing_policy="SPLITDUPLEX"\n'
            f"           {self.topology()}/>\n"
            "</platform>\n"
        )

    def settings(self) -> list[str]:
        """Return SMPI's settings: computing is free, links are shared fairly, messages cost overhead at both ends."""
        busy = f"0:{self.overhead_s:g}:0"
        chosen = {
            "smpi/simulate-computation": "no",
            "smpi/host-speed": "1Gf",
            "smpi/wtime": 0,
            "smpi/os": busy,
            "smpi/ois": busy,
            "smpi/or": busy,
            "smpi/async-small-thresh": self.eager_below,
            "smpi/send-is-detached-thresh": self.eager_below,
            "smpi/barrier": "ompi_recursivedoubling",  # all leave at the same time; linear ones do not
            "smpi/allgather": "bruck",  # of set-up
            "smpi/allgatherv": "ompi_bruck",
            "smpi/alltoallv": "pair",  # of `reference`; others have ranks**2 concurrent messages
            "network/model": "CM02",
            "network/crosstraffic": "no",
            "surf/precision": "1e-12",
        }
        return [*(f"--cfg={name}:{value}" for name, value in chosen.items()), "--log=root.thresh:warning"]

    def profile(self) -> profiles.Profile:
        """Return the machine profile with the same figures: one latency, one bandwidth, the sum of a host's links as
        its injection rate; sweeping and packing cost nothing."""
        nothing = {"from_bytes": 0, "to_bytes": None, "latency_s": 0.0, "per_byte_s": 0.0}
        no_sweep = {"from_cells": 0, "to_cells": None, "fixed_s": 0.0, "per_cell_s": 0.0}
        apps = (bridge.find_app(name) for name in bridge.app_names())
        kernels = (f"{app.name}/{form}/{real}" for app in apps for form in app.forms for real in app.reals)
        links = 6 if self.kind == "torus" else 1
        message = nothing | {"latency_s": self.latency_s, "per_byte_s": 1 / self.bytes_per_s}
        data = {
            "schema": profiles.SCHEMA,
            "schema_version": profiles.SCHEMA_VERSION,
            "name": f"{self.kind}-{self.hosts}",
            "origin": "published",
            "source": "the figures of a simulated platform; nothing is measured",
            "machine": {
                "host": f"{self.kind} of {self.hosts} hosts",
                "cpu": "none: computing takes no time",
                "nodes": self.hosts,
                "sockets_per_node": 1,
                "cores_per_socket": 1,
            },
            "mpi_library": "SimGrid SMPI",
            "network": {
                "classes": {"network": {"segments": [message], "contention": {"shared": 0.0, "duplex": 1.0}}},
                "injection_bytes_per_s": links * self.bytes_per_s,
            },
            "pack": {stride: {"1": [nothing]} for stride in ("contiguous", "lines", "strided")},
            "transports": {name: {} for name in NEAR},
            "kernels": {name: {"1": [no_sweep]} for name in kernels},
            "overlap": {"rendezvous_from_bytes": self.eager_below},
        }
        return profiles.checked(data)

    def write(self, folder: Path) -> None:
        """Write platform.xml, hostfile and profile.json into a folder."""
        (folder / "platform.xml").write_text(self.xml())
        (folder / "hostfile").write_text("".join(f"node-{host}\n" for host in range(self.hosts)))
        profiles.save(self.profile(), folder / "profile.json")


# ---- running ---------------------------------------------------------------------------------------------------------


def command(platform: Platform, place: Path, folder: Path, *words: str, trace: bool = False) -> list[str]:
    """Return smpirun's command for the rank program with `words`.

    place: a build with the preset `simgrid`. folder: with the files of `Platform.write`. trace: let SMPI write the MPI
    calls of every rank into the folder. Raises UnavailableError without such a build.
    """
    place, folder = place.resolve(), folder.resolve()  # smpirun runs elsewhere
    program = place / build.RANK_PROGRAM
    if not program.exists():
        raise errors.UnavailableError(
            f"{place} has no build on SimGrid; make one with 'scripts/other_mpi.sh simgrid haloscope-rank'"
        )
    smpirun = [str(launch.mpiexec(place)), "-np", str(platform.hosts)]
    files = ["-platform", str(folder / "platform.xml"), "-hostfile", str(folder / "hostfile")]
    tracing = ["-trace-ti", "-trace-file", str(folder / "trace")] if trace else []
    return [*smpirun, *files, *tracing, *platform.settings(), str(program), *words]


def _run(platform: Platform, place: Path, folder: Path, requests: Sequence[Request], trace: bool = False) -> list[dict]:
    """Serve requests in one simulation with its files in `folder`; return their records."""
    platform.write(folder)
    lines, output = folder / "requests.jsonl", folder / "records.jsonl"
    lines.write_text("".join(json.dumps(r.line()) + "\n" for r in requests))
    words = command(platform, place, folder, "--requests", str(lines), "--output", str(output), trace=trace)
    done = subprocess.run(words, check=False, capture_output=True, text=True, errors="replace", cwd=folder)
    found = records.read(output).records if output.exists() else []
    for record in found:
        if record["kind"] != "measurement":
            raise errors.UnavailableError(f"{record['id']}: {record['reason']}")
    if done.returncode or len(found) < len(requests):
        printed = (done.stdout + done.stderr).strip()[-2000:]
        raise errors.HaloscopeError(f"smpirun ended with code {done.returncode}: {printed}")
    return found


def run(platform: Platform, place: Path, requests: Sequence[Request]) -> list[dict]:
    """Serve requests for `platform.hosts` ranks in one simulation; return their records, times simulated.

    Raises UnavailableError for features that SMPI lacks, HaloscopeError with the end of SimGrid's output when the
    simulation fails. Cost: seconds of start for 512 ranks, then some 10 us a message, more if messages share links.
    """
    with scratch.folder() as folder:
        return _run(platform, place, folder, requests)


def sent(platform: Platform, place: Path, request: Request, exchanges: int = 1) -> tuple[int, int]:
    """Return messages and bytes that all ranks pass to MPI_Isend in some exchanges, by SMPI's trace.

    request: of transport p2p, depth 1. Raises as `run` does.
    """
    with scratch.folder() as folder:
        _run(platform, place, folder, [timed(request, exchanges)], trace=True)
        ranks = [folder / line for line in (folder / "trace").read_text().split()]
        calls = (line.split() for file in ranks for line in file.read_text().splitlines())
        sizes = [int(call[4]) for call in calls if call[1] == "isend"]  # rank, call, peer, tag, bytes, type
    return len(sizes), sum(sizes)


def timed(request: Request, steps: int) -> Request:
    """Return a request for `steps` steps once, without warm-up or check."""
    return request.measured(steps=steps, seconds=0.0, repetitions=1, warmup=0, verify=0, timers=False)


# ---- comparing -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """One request, simulated twice: seconds per step by SMPI and by `simulate`; messages and bytes of one exchange
    by the counts of the rank program and by the plan."""

    request: Request
    smpi_s: float
    own_s: float
    counted: tuple[int, int]
    planned: tuple[int, int]


def planned(request: Request) -> tuple[int, int]:
    """Return messages and bytes of one exchange over all ranks, from the plan."""
    totals = bridge.plan_totals(bridge.make_layout(request.choice), bridge.exchange_spec(request.choice))
    return totals.messages, totals.bytes


def compare(platform: Platform, place: Path, requests: Sequence[Request], steps: tuple[int, int] = STEPS) -> list[Pair]:
    """Serve requests on the platform and simulate them with its profile. Raises as `run` and `simulate` do.

    steps: of the two runs whose difference counts. Ranks leave a barrier at different times, up to two messages apart;
    this difference disappears in the first eight steps.
    """
    fewer, more = steps
    found = run(platform, place, [timed(r, count * r.choice.depth) for r in requests for count in steps])
    options = simulate.SimulationOptions(steps=more, overhead_s=platform.overhead_s, by_itself=True)
    profile, pairs = platform.profile(), []
    for request, short, long in zip(requests, found[::2], found[1::2], strict=True):
        choice, took = request.choice, [record["time_s"]["repetitions"][0] for record in (short, long)]
        counts, exchanges = long["counts"], long["counts"]["exchanges"]
        own = simulate.simulate(choice, profile, options=replace(options, steps=more * choice.depth))
        pairs.append(
            Pair(
                request,
                (took[1] - took[0]) / ((more - fewer) * choice.depth),
                own.time_s,
                (counts["messages"] // exchanges, counts["message_bytes"] // exchanges),
                planned(request),
            )
        )
    return pairs


@dataclass(frozen=True)
class Agreement:
    """Agreement of two simulations on the order of the configurations of each case: Kendall's tau over all pairs of
    one case that differ by NEAR_TIE or more with SMPI; ties of `simulate` count against it."""

    concordant: int
    discordant: int
    pairs: int  # with an order
    near_ties: int

    @property
    def tau(self) -> float:
        """Kendall's tau; NaN when no pair has an order."""
        return (self.concordant - self.discordant) / self.pairs if self.pairs else math.nan


def cases(pairs: Sequence[Pair]) -> dict[object, list[Pair]]:
    """Return pairs by their problem: app, cells, ranks and process grid."""
    found: dict[object, list[Pair]] = {}
    for p in pairs:
        c = p.request.choice
        found.setdefault((c.app, c.cells, c.ranks, c.process_grid), []).append(p)
    return found


def agreement(cases: Mapping[object, Sequence[Pair]]) -> Agreement:
    """Return the agreement over several cases; only pairs of the same case (platform, app, cells) are compared."""
    signs, near = [], 0
    for pairs in cases.values():
        for a, b in itertools.combinations(pairs, 2):
            if abs(a.smpi_s - b.smpi_s) < NEAR_TIE * min(a.smpi_s, b.smpi_s):
                near += 1
                continue
            tied = math.isclose(a.own_s, b.own_s, rel_tol=1e-9)
            signs.append(0 if tied else 1 if (a.smpi_s < b.smpi_s) == (a.own_s < b.own_s) else -1)
    return Agreement(signs.count(1), signs.count(-1), len(signs), near)
