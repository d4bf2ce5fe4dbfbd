"""Commands with the options of a choice, made from its table, and with help on everyday options or on all."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from haloscope import terminal
from haloscope.errors import UsageError
from haloscope.options.kinds import GROUPS, Option
from haloscope.options.request import PROGRAM

if TYPE_CHECKING:
    from haloscope.bridge import Field, Parameter

SHORT = {"ranks": "-n", "depth": "-d"}
METAVARS = {
    "cells": "XxYxZ",
    "integer": "N",
    "word": "WORD",
    "schedule": "NAME",
    "strategy": "STRATEGY",
    "flag": "on|off",
    "dimensions": "DIMS",
    "shape": "XxYxZ",
    "stage-strategies": "STAGE=STRATEGY;...",
}


@dataclass(frozen=True)
class ChoiceOptions:
    """The options of a choice that a command has.

    lists: whether they take lists, ranges and globs, and the command works on the cross product; else each takes one
    value. without: fields that the command lacks. usual: defaults that replace the defaults of the table.
    """

    lists: bool = False
    without: tuple[str, ...] = ()
    usual: Mapping[str, str] = field(default_factory=dict)

    def make(self) -> list[Option]:
        """Return the options, in the order of the table, then --set and --program."""
        from haloscope import bridge

        made = [self._option(f) for f in bridge.fields() if f.name not in self.without]
        set_help = "A parameter of the app; --help-all lists them."
        made.append(Option(["--set", "given_set"], multiple=True, metavar="NAME=VALUE", help=set_help))
        return [*made, Option(["--program"], **PROGRAM)]

    def _option(self, f: Field) -> Option:
        usual = self.usual.get(f.name, _text(f.default))
        text = f.meaning + (f" [{usual}]" if usual else "")
        names = [*([SHORT[f.name]] if f.name in SHORT else []), "--" + f.name.replace("_", "-"), f.name]
        one: dict[str, Any] = {"is_flag": False, "flag_value": "on"} if f.type == "flag" else {}
        metavar = "LIST" if self.lists and f.type not in ("dimensions", "flag") else METAVARS.get(f.type, "TEXT")
        return Option(names, group=f.group, help=text, metavar=metavar, default=self.usual.get(f.name), **one)


def _text(default: Any) -> str:
    if isinstance(default, bool):
        return "on" if default else "off"
    return "" if isinstance(default, list | dict) else str(default)


class Command(click.Command):
    """A command whose --help shows everyday options and whose --help-all shows the rest by group.

    choice: its options of a choice, which are made when they are needed, since the library lists them.
    """

    def __init__(self, *arguments: Any, choice: ChoiceOptions | None = None, **attributes: Any) -> None:
        """Take the arguments of click.Command, and `choice`."""
        super().__init__(*arguments, **attributes)
        self.choice = choice

    @functools.cached_property
    def _of_choice(self) -> list[Option]:
        return self.choice.make() if self.choice else []

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return all parameters: the options of a choice first."""
        return [*self._of_choice, _help_all(), *super().get_params(ctx)]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the everyday options, or all groups for --help-all."""
        everything = ctx.meta.get("haloscope.all", False)
        groups: dict[str, list] = {}
        own = [p for p in self.get_params(ctx) if isinstance(p, click.Option)]
        for parameter in sorted(own, key=lambda p: p.name in ("help", "help_all")):  # these come last
            if (record := parameter.get_help_record(ctx)) is not None:
                groups.setdefault(getattr(parameter, "group", "everyday"), []).append(record)
        for name, title in GROUPS.items():
            if name in groups and (everything or name == "everyday"):
                with formatter.section(title):
                    formatter.write_dl(groups[name])
        if everything and self.choice:
            _write_parameters(formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does. Raises UsageError for a parameter of an app that is written as an option."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if self.choice and (hint := _parameter_hint(error.option_name)):
                raise UsageError(hint) from None
            raise


def named_options(context: click.Context) -> list[str]:
    """Return the parameters that are set on the command line."""
    named = click.core.ParameterSource.COMMANDLINE
    return [name for name in context.params if context.get_parameter_source(name) is named]


def subcommand(**attributes: Any) -> Callable[[Callable[..., Any]], Command]:
    """Return the decorator that makes a Command from a function."""
    return click.command(cls=Command, **attributes)


@functools.cache
def _help_all() -> Option:
    def show(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
        if value and not ctx.resilient_parsing:
            ctx.meta["haloscope.all"] = True
            terminal.echo(ctx.get_help())
            ctx.exit()

    return Option(
        ["--help-all"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=show,
        help="All options, by group, and the apps' parameters.",
    )


def _write_parameters(formatter: click.HelpFormatter) -> None:
    from haloscope import bridge

    for name in bridge.app_names():
        with formatter.section(f"Parameters of {name} (--set NAME=VALUE)"):
            formatter.write_dl([(p.name, f"{p.help} {_values(p)}") for p in bridge.find_app(name).parameters])


def _values(parameter: Parameter) -> str:
    value = parameter.value
    usual = ",".join(f"{v:g}" for v in value) if isinstance(value, tuple) else _text(value)
    words = f" One of {', '.join(filter(None, parameter.words))}." if parameter.words else ""
    return f"{words}{f' [{usual}]' if usual else ''}".strip()


def _parameter_hint(option_name: str) -> str:
    from haloscope import bridge

    name = option_name.lstrip("-").replace("-", "_")
    owners = [a for a in bridge.app_names() if name in (p.name for p in bridge.find_app(a).parameters)]
    return f"{option_name} is a parameter of {', '.join(owners)}; write --set {name}=VALUE" if owners else ""
