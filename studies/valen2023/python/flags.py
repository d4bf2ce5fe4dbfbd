"""Flags of the 2023 study for `haloscope run`: -h, -l, -s, --exchange; its -d and -i are general options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from haloscope.errors import UsageError
from haloscope.options.kinds import option, options_of
from haloscope.studies.run_flags import TABLES, Report

EXAMPLE = "haloscope run laplace2d -h 20000 -l 20000 -d 8 -i 100 -s 1      (the 2023 study's own flags)"
EXCHANGE_WORDS = {"ordered": "ordered", "sync": "ordered", "direct": "direct", "async": "direct"}

OPTIONS = options_of(
    option(
        "-h",
        "--height",
        type=int,
        group="study",
        help="2023 study: global height; with -l instead of --cells, implies f32.",
    ),
    option("-l", "--length", type=int, group="study", help="2023 study: global length."),
    option("-s", "--sparse", type=click.IntRange(0, 1), default=0, group="study", help="2023 study: 1 = terse output."),
    option("--exchange", type=click.Choice(list(EXCHANGE_WORDS)), group="study", help="2023 study: the exchange."),
)


def translate(app: str, options: Mapping[str, Any], named: Sequence[str]) -> dict[str, Any]:
    """Return a run's options with these flags in the words of every run. Raises UsageError for contradictions."""
    found = dict(options)
    height, length = options["height"], options["length"]
    if (height is None) != (length is None):
        raise UsageError("-h (height) and -l (length) belong together; give both, or use --cells LENGTHxHEIGHT")
    if height is not None:
        if options["cells"]:
            raise UsageError("--cells and -h/-l both set the grid; use one of them")
        found |= {"cells": f"{length}x{height}", "real": options["real"] or "f32"}
    if options["exchange"]:
        from haloscope import bridge

        on_device = options["device"] not in (None, "none")
        usual = bridge.device_strategy_names()[0] if on_device else bridge.Choice.strategy
        found["strategy"] = f"{EXCHANGE_WORDS[options['exchange']]}/{usual.partition('/')[2]}"
    return found


def report(found: Sequence[dict], options: Mapping[str, Any], output: Path) -> Report | None:
    """Return the terse lines that --sparse requests instead of tables."""
    if not options["sparse"]:
        return None
    from haloscope.records.rows import group_rows
    from haloscope_studies.valen2023 import timers

    return Report((timers.terse(group_rows(found)),), TABLES)
