"""Flags of studies that `haloscope run` accepts: their options, their translation, and their reports.

A set of flags is an entry point of group `haloscope.run_flags`. Its module has OPTIONS (a decorator), EXAMPLE (a
command line), `translate(app, options, named)` -> options, and `report(records, options, output)` -> Report or None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from haloscope import guests
from haloscope.options.kinds import options_of

TABLES, ALL = "tables", "tables and notes"


@dataclass(frozen=True)
class Report:
    """Texts that flags of a study request. They follow the tables of every run, unless they replace them.

    replaces: TABLES (the notes below the tables then go to stderr), ALL, or "".
    """

    texts: tuple[str, ...] = ()
    replaces: str = ""


def modules() -> list[ModuleType]:
    """Import the flags of all guests. Raises UnavailableError where one cannot be imported."""
    return [guests.load(guests.RUN_FLAGS, name) for name in guests.find_guests(guests.RUN_FLAGS)]


def add_options(function: Callable[..., int | None]) -> Callable[..., int | None]:
    """Add the options of all guests to a command: a decorator."""
    return options_of(*(module.OPTIONS for module in modules()))(function)


def examples() -> str:
    """Return the end of the command's help: an example of each set of flags, or the reason for having none."""
    found = [module.EXAMPLE for module in modules()]
    return "\n".join(["\b", "With the flags of studies:", *found]) if found else f"Flags of studies: {guests.ABSENT}."


def translate(app: str, options: Mapping[str, Any], named: Sequence[str]) -> dict[str, Any]:
    """Return a run's options, with flags of studies translated to options of every run. named: on the command line.

    Raises UsageError for contradictions, and for flags of another app.
    """
    found: dict[str, Any] = dict(options)
    for module in modules():
        found = module.translate(app, found, named)
    return found


def report(found: Sequence[dict], options: Mapping[str, Any], output: Path) -> Report:
    """Return the texts that all these flags request. A report that replaces all stands alone."""
    reports: list[Report] = [one for module in modules() if (one := module.report(found, options, output))]
    if alone := next((one for one in reports if one.replaces == ALL), None):
        return alone
    return Report(tuple(text for one in reports for text in one.texts), max((r.replaces for r in reports), default=""))
