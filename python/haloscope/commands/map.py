"""`haloscope map`: where which way of exchanging halos wins, over networks and sizes of blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from haloscope import outputs, terminal
from haloscope.options.candidates import DECIDED, DEPTHS, MEASURED, PLACES
from haloscope.options.command import ChoiceOptions, subcommand
from haloscope.options.kinds import FileName, option
from haloscope.options.machine import HERE, profile
from haloscope.options.output import JSON
from haloscope.options.request import app_of, one_choice


@subcommand(
    short_help="Map where deep halos, overlap, merging win, by latency, block.",
    choice=ChoiceOptions(without=(*HERE, *DECIDED, "cells", "nodes", "placement"), usual={"ranks": "2"}),
)
@click.argument("app")
@profile()
@PLACES
@DEPTHS
@MEASURED
@option("--output", type=FileName(stem=True), help="Also draw it: STEM.svg and STEM.png.")
@JSON
def command(app: str, bandwidth: str, depth: str, output: Path | None, as_json: bool, **options: Any) -> None:
    """Map where which way of exchanging the halos of APP is predicted to win, each rank on a node of its own.

    \b
    haloscope map laplace2d --profile machine.json --output map
    haloscope map laplace3d -n 8 --profile machine.json --latency 1us,10us,100us --bandwidth 25Gbit
    haloscope map laplace2d --profile lab.json --measured lab.jsonl --output map

    Networks are the profile's, with their latency and bandwidth replaced. In each place stands what sets the winner
    apart from plain `ordered/p2p` bulk depth 1, and how many times faster it is; of choices that the model cannot tell
    apart the simplest. A map of what was measured needs the plain exchange and its rivals in records of emulated
    clusters.
    """
    from haloscope.advice import map as model
    from haloscope.measure import lists
    from haloscope.model import profile as profiles
    from haloscope.report import map as report

    if output:
        outputs.refuse_foreign_figure(output)
    machine, sizes = profiles.load(options["profile"]), model.sizes_of(options["blocks"])
    given = app_of(app, options)
    choice = one_choice(given, options | {"cells": "x".join(["1024"] * given.dims), "device": ""})
    links = model.links_of(choice.ranks, options["latency"], bandwidth)
    depths = lists.numbers(depth, "--depth")
    found = model.maps(choice, machine, links, sizes, depths, options["measured"], bandwidth)
    title = report.title_of(choice, machine, bandwidth)
    terminal.echo(terminal.json_text(report.document(found)) if as_json else report.markdown(found, title))
    if output:
        terminal.echo(f"\nfigure: {', '.join(map(str, report.draw(found, title, output)))}", err=as_json)
