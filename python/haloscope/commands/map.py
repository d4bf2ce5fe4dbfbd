"""`haloscope map`: the fastest way to exchange halos, over networks and block sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from haloscope import outputs, terminal
from haloscope.options.candidates import DECIDED, DEPTHS, MEASURED, SPOTS
from haloscope.options.command import ChoiceOptions, subcommand
from haloscope.options.kinds import FileName, option
from haloscope.options.machine import HERE, profile
from haloscope.options.output import JSON, PAGE
from haloscope.options.request import APP, app_of, one_choice


@subcommand(
    short_help="Map where deep halos, overlap, merging win, by latency, block.",
    choice=ChoiceOptions(without=(*HERE, *DECIDED, "cells", "nodes", "placement"), usual={"ranks": "2"}),
)
@APP
@profile()
@SPOTS
@DEPTHS
@MEASURED
@option("--output", type=FileName(stem=True), help="Also draw it: STEM.svg and STEM.png.")
@JSON
@PAGE
def command(
    app: str, bandwidth: str, depth: str, output: Path | None, page: Path | None, as_json: bool, **options: Any
) -> None:
    """Map the fastest way to exchange the halos of APP, as predicted, over networks and block sizes, one rank a node.

    \b
    haloscope map laplace2d --profile machine.json --output map
    haloscope map laplace3d -n 8 --profile machine.json --latency 1us,10us,100us --bandwidth 25Gbit
    haloscope map laplace2d --profile lab.json --measured lab.jsonl --output map

    Networks are the profile's, with other latency and bandwidth. Each spot shows the technique that distinguishes the
    winner from plain `ordered/p2p` bulk depth 1, and its speed-up; of choices that the model cannot distinguish, the
    simplest wins. A map of measurements needs the plain exchange and its rivals in records of emulated clusters.
    """
    from haloscope.advice import map as model
    from haloscope.measure import lists
    from haloscope.model import profile as profiles
    from haloscope.report import map as report
    from haloscope.report.page.advice import write_requested_map

    if output:
        outputs.refuse_foreign_figure(output)
    machine, sizes = profiles.load(options["profile"]), model.sizes_of(options["blocks"])
    chosen_app = app_of(app, options)
    choice = one_choice(chosen_app, options | {"cells": "x".join(["1024"] * chosen_app.dims), "device": ""})
    links = model.links_of(choice.ranks, options["latency"], bandwidth)
    found = model.maps(choice, machine, links, sizes, lists.numbers(depth, "--depth"), options["measured"], bandwidth)
    title = report.title_of(choice, machine, bandwidth)
    terminal.echo(terminal.json_text(report.document(found)) if as_json else report.markdown(found, title))
    if output:
        terminal.echo(f"\nfigure: {', '.join(map(str, report.draw(found, title, output)))}", err=as_json)
    write_requested_map(page, found, title)
