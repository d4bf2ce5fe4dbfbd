"""Run strategies on a simulated torus or fat tree by SimGrid, and Haloscope's simulation of the same platform.

Run it by .venv/bin/python, once 'scripts/other_mpi.sh simgrid haloscope-rank' has built the program;
see docs/machine/simgrid.md.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from haloscope import bridge, errors
from haloscope.measure import lists, space
from haloscope.report import tables
from haloscope.simulate import simgrid

ROOT = Path(__file__).resolve().parents[1]


@click.command()
@click.argument("kind", type=click.Choice(simgrid.KINDS))
@click.argument("app")
@click.option("--ranks", "-n", type=int, default=64, show_default=True, help="Hosts, one rank each: 8, 64, 512, 4096.")
@click.option("--cells", default="64", show_default=True, metavar="LIST", help="Global cells: 64x64x64, 32..128*2.")
@click.option("--strategy", default="ordered/p2p,direct/p2p,direct:merged/p2p", show_default=True, metavar="LIST")
@click.option("--depth", "-d", default="1", show_default=True, metavar="LIST", help="Time steps per exchange.")
@click.option("--process-grid", default="", help="Rule (cubic, square, prime-factors, slabs) or explicit, 4x4x4.")
@click.option(
    "--build",
    "place",
    type=click.Path(path_type=Path),
    default=ROOT / "build" / "simgrid",
    help="Build with the preset simgrid.",
)
@click.option(
    "--write",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Only write platform.xml, hostfile and profile.json into a new folder, and print the command that runs the "
    "program on them.",
)
def main(kind, app, ranks, cells, strategy, depth, process_grid, place, write):
    """Run APP's exchanges on a torus or fat tree, computing free; time by SimGrid and by haloscope simulate."""
    platform = simgrid.Platform(kind, ranks)
    if write:
        if write.exists():
            raise click.UsageError(f"--write {write} already exists; name a new folder")
        write.mkdir(parents=True)
        platform.write(write)
        click.echo(" ".join(simgrid.command(platform, place, write, app, "--cells", cells, "--verify", "3")))
        return
    axes = {
        "cells": lists.shapes(cells, bridge.find_app(app).dims),
        "ranks": [ranks],
        "strategy": lists.strategies(strategy),
        "depth": lists.numbers(depth, "--depth"),
        "process_grid": [process_grid],
    }
    planned = space.expand(app, axes)
    for request, reason in planned.refused:
        click.echo(f"haloscope: {request.id}: {reason}", err=True)
    pairs = simgrid.compare(platform, place, planned.requests)
    click.echo(markdown(platform, app, pairs))


def markdown(platform: simgrid.Platform, app: str, pairs: list[simgrid.Pair]) -> str:
    """Return a table of pairs, fastest first within equal cells, and the agreement of the orders."""
    pairs = sorted(pairs, key=lambda p: (p.request.choice.cells, p.smpi_s))
    headers = [
        "cells",
        "strategy",
        "depth",
        "messages",
        "bytes",
        "as planned",
        "SimGrid (us)",
        "own (us)",
        "own : SimGrid",
    ]
    rows = [
        [
            p.request.choice.shape,
            p.request.choice.strategy,
            p.request.choice.depth,
            *p.counted,
            "yes" if p.counted == p.planned else "NO",
            tables.number(p.smpi_s * 1e6),
            tables.number(p.own_s * 1e6),
            f"{p.own_s / p.smpi_s:.2f}",
        ]
        for p in pairs
    ]
    found = simgrid.agreement(simgrid.cases(pairs))
    return (
        f"# Simulated: {app} on a {platform.kind} of {platform.hosts} hosts\n\nTime per step, computing free; "
        "messages and "
        f"bytes of one exchange, all "
        f"ranks.\n\n{tables.markdown(rows, headers, right=(*headers[2:5], *headers[6:]))}\n\n"
        f"Order: Kendall's tau {found.tau:.2f} over {found.pairs} pairs of equal cells ({found.near_ties} near-ties "
        "apart)."
    )


if __name__ == "__main__":
    try:
        main()
    except errors.HaloscopeError as error:
        print(f"haloscope: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
