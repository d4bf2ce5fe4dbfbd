"""Options of measuring: lengths, repetitions, launches, verification, faults for tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from haloscope.errors import UsageError
from haloscope.options.kinds import Decorator, FiniteRange, of_measuring, option, options_of

MOST = 10**9  # of steps and repetitions
FIELDS = ("steps", "seconds", "repetitions", "warmup", "events", "timeline", "trace")  # of a request, by options' names


def steps(*names: str, **attributes: Any) -> Decorator:
    """Return the option for the length of a repetition in steps. names: further names of the option."""
    return option("--steps", *names, type=click.IntRange(1, MOST), help="Time steps per repetition.", **attributes)


def launches(usual: str = "", meaning: str = "Launches (separate mpiexec runs).", **attributes: Any) -> Decorator:
    """Return the option for the number of launches. usual: the default, for the help."""
    return option("--launches", type=click.IntRange(1, 1000), help=_with(meaning, usual), **attributes)


def repetitions(usual: str = "", meaning: str = "Repetitions per launch.", **attributes: Any) -> Decorator:
    """Return the option for the number of repetitions. usual: the default, for the help."""
    return option("--repetitions", type=click.IntRange(1, MOST), help=_with(meaning, usual), **attributes)


def _with(meaning: str, usual: str) -> str:
    return f"{meaning} [{usual}]" if usual else meaning


def order_seed(name: str) -> Decorator:
    """Return the option for the seed of the order of measurements."""
    return of_measuring(name, type=int, default=0, help="Seed of the random order. [0]")


MEASURING = options_of(
    steps("-i"),
    option("--seconds", type=FiniteRange(0, min_open=True), help="Length of a repetition instead of --steps. [0.2]"),
    launches("3", default=3),
    repetitions("5", group="measuring"),
    of_measuring("--warmup", type=click.IntRange(0, MOST), help="Repetitions before the measured ones. [1]"),
    of_measuring(
        "--verify", type=click.IntRange(0, MOST), help="Steps compared with `reference`; 0 = off. [2 depth + 1]"
    ),
    of_measuring("--timers", type=click.Choice(["on", "off"]), help="Timers of single phases. [on]"),
    of_measuring(
        "--events",
        is_flag=True,
        help="Count cycles, cache misses, ... in each timer, if this machine supports it, and sample the clock; shown "
        "by --components.",
    ),
    order_seed("--order-seed"),
    of_measuring(
        "--watchdog",
        type=FiniteRange(0),
        default=0.0,
        help="Seconds without progress after which the run ends; 0: no limit. [0]",
    ),
    of_measuring(
        "--inject",
        default="",
        metavar="KIND:rank=R,step=S[,seconds=X]",
        help="Fault for tests: delay, hang, stop, kill.",
    ),
)


def settings_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a request that define its measurement. Raises UsageError for --steps with --seconds."""
    settings = {name: options[name] for name in FIELDS if options.get(name) is not None}
    settings["timers"] = options.get("timers") != "off"
    settings["trace"] = str(settings.get("trace", ""))
    if "steps" in settings and "seconds" in settings:
        raise UsageError("--steps and --seconds both set the length of a repetition; use one of them")
    if "steps" not in settings:
        settings.setdefault("seconds", 0.2)
    return settings
