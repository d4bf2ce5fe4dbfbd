"""Kinds of options and of their values: options in groups, finite numbers, names of files."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click

# Headings of groups of options, in the order in which --help-all shows them.
GROUPS = {
    "everyday": "Options",
    "measuring": "The measurement",
    "grid": "The grid and its ranks",
    "kernel": "Kernels",
    "schedule": "Schedules",
    "nodes": "Nodes and memory",
    "device": "Devices",
    "machine": "The machine",
    "output": "Output",
    "study": "Flags of the studies",
}
Function = TypeVar("Function", bound=Callable[..., Any])


class Decorator(Protocol):
    """Adds options to a command, and returns the same kind of function."""

    def __call__(self, function: Function, /) -> Function:
        """Return the function with the options."""


class FiniteRange(click.FloatRange):
    """A range of finite numbers."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number. Raises BadParameter for one that is not finite or out of range."""
        number: float = super().convert(value, param, ctx)
        return number if math.isfinite(number) else self.fail(f"{value!r} is not a finite number.", param, ctx)


class FileName(click.Path):
    """The name of a file to write; stem: the common part of several names."""

    def __init__(self, stem: bool = False) -> None:
        super().__init__()
        self._stem = stem
        self.name = "stem" if stem else "file"  # for help texts

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return it as a Path. Raises BadParameter for an empty name and for the name of a folder."""
        if os.path.basename(value) in ("", ".", ".."):  # noqa: PTH119 (a Path has no slash at its end)
            self.fail(f"{value!r} is not a file name.", param, ctx)
        if not self._stem and os.path.isdir(value):  # noqa: PTH112 (which takes names of any length)
            self.fail(f"{value!r} is a folder; give the name of a file.", param, ctx)
        return Path(os.fsdecode(super().convert(value, param, ctx)))


ANY_PATH = click.Path(path_type=Path)
EXISTING_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


class Option(click.Option):
    """An option that belongs to one of GROUPS."""

    def __init__(self, *names: Any, group: str = "everyday", detailed: bool = False, **attributes: Any) -> None:
        """group: key of GROUPS. detailed: the help has the range or the default. The rest: as for click.Option."""
        if isinstance(attributes.get("type"), click.IntRange) and not detailed:
            attributes.setdefault("metavar", "N")
        super().__init__(*names, **attributes)
        self.group = group
        self.detailed = detailed

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Omit ranges, which error texts name, unless the help is detailed."""
        return super().get_help_extra(ctx) if self.detailed else {}


def option(*names: str, **attributes: Any) -> Decorator:
    """Return the decorator that adds an option; with the attributes of Option."""
    return click.option(*names, cls=Option, **attributes)


# Each adds an option of its group.
of_machine = functools.partial(option, group="machine")
of_measuring = functools.partial(option, group="measuring")
of_output = functools.partial(option, group="output")


def options_of(*decorators: Decorator) -> Decorator:
    """Return one decorator that adds several options to a command, in their order."""

    def decorate(function: Function) -> Function:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate
