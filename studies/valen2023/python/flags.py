"""The 2023 study's own flags of `haloscope run`: -h, -l, -s, --exchange; its -d and -i are everybody's."""

from __future__ import annotations

import click

from haloscope.errors import UsageError
from haloscope.options.kinds import option, options_of

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


def translated(options: dict) -> dict:
    """Return a run's options with these flags in the words of every run. Raises UsageError for contradictions."""
    found = dict(options)
    height, length = options["height"], options["length"]
    if (height is None) != (length is None):
        raise UsageError("-h (height) and -l (length) belong together; give both, or use --cells LENGTHxHEIGHT")
    if height is not None:
        if options["cells"]:
            raise UsageError("--cells and -h/-l both give the grid; use one of them")
        found |= {"cells": f"{length}x{height}", "real": options["real"] or "f32"}
    if options["exchange"]:
        from haloscope import bridge

        on_device = options["device"] not in (None, "none")
        usual = bridge.device_strategy_names()[0] if on_device else bridge.Choice.strategy
        found["strategy"] = f"{EXCHANGE_WORDS[options['exchange']]}/{usual.partition('/')[2]}"
    return found
