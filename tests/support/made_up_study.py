"""A study, a subcommand and a flag as another distribution would have them, for tests of the entry points."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import click

from haloscope import bridge
from haloscope.guests import COMMANDS, RUN_FLAGS, STUDIES
from haloscope.measure.request import Request
from haloscope.measure.space import Space
from haloscope.options.kinds import option
from haloscope.studies import Options
from haloscope.studies.run_flags import Report

GUESTS = {
    STUDIES: {"made-up": EntryPoint("made-up", __name__, STUDIES)},
    COMMANDS: {"greet": EntryPoint("greet", f"{__name__}:command", COMMANDS)},
    RUN_FLAGS: {"made-up": EntryPoint("made-up", __name__, RUN_FLAGS)},
}

SUMMARY = "Made up 2026: is a small grid a grid?"
DEFAULTS = {name: Options(sizes=(8,), ranks=1, steps=2, repetitions=1, launches=1) for name in ("quick", "full")}
OPTIONS = option("--side", type=int, group="study", help="made up: cells per side.")
EXAMPLE = "haloscope run laplace2d --side 8"


@click.command(short_help="Greets.")
def command():
    """Greet."""
    click.echo("good day")


def plan(options: Options) -> Space:
    """One run for each size."""
    choices = [bridge.Choice("laplace2d", (side, side), ranks=options.ranks) for side in options.sizes]
    return Space([Request.of(choice, **options.settings()) for choice in choices])


def report(found: list[dict], options, output: Path | None = None) -> Report | str | None:
    """As a study: the number of records. As flags: the same instead of the tables."""
    text = f"{len(found)} measured"
    if isinstance(options, Options):
        return text
    return Report((text,), "tables") if options["side"] else None


def translate(app: str, options: dict, named: list[str]) -> dict:
    """A side gives the cells."""
    return options | ({"cells": "x".join([str(options["side"])] * 2)} if options["side"] else {})
