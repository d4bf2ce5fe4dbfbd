"""Options that commands share: those of a choice are made from its table, everyday ones are shown first."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from haloscope import terminal
from haloscope.errors import UsageProblem

# Headings of groups of options, in the order in which --help-all shows them.
GROUPS = {
    "everyday": "Options",
    "measuring": "How it is measured",
    "grid": "The grid and its ranks",
    "kernel": "Kernels",
    "schedule": "Schedules",
    "nodes": "Nodes and memory",
    "device": "Devices",
    "machine": "The machine",
    "output": "Output",
    "study": "Flags of the studies",
}
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


class FiniteRange(click.FloatRange):
    """A range of numbers that no NaN and no infinity is in."""

    name = "number"

    def convert(self, value, param, ctx):
        """Return the number. Raises BadParameter for one that is not finite or out of range."""
        number = super().convert(value, param, ctx)
        return number if math.isfinite(number) else self.fail(f"{value!r} is not a finite number.", param, ctx)


class FileName(click.Path):
    """The name of a file to write; stem: of several, which have it with their endings."""

    def __init__(self, stem: bool = False):
        super().__init__()
        self._stem = stem

    def convert(self, value, param, ctx):
        """Return it as a Path. Raises BadParameter for one that is empty, can only be a folder, or is one."""
        if os.path.basename(value) in ("", ".", ".."):  # noqa: PTH119 (a Path has no slash at its end)
            self.fail(f"{value!r} names no file.", param, ctx)
        if not self._stem and os.path.isdir(value):  # noqa: PTH112 (which takes names of any length)
            self.fail(f"{value!r} is a folder; give the name of a file.", param, ctx)
        return Path(super().convert(value, param, ctx))


class Option(click.Option):
    """An option that belongs to one of GROUPS."""

    def __init__(self, *names, group: str = "everyday", **attributes):
        """group: key of GROUPS; the rest as click.Option has it."""
        if isinstance(attributes.get("type"), click.IntRange):
            attributes.setdefault("metavar", "N")
        super().__init__(*names, **attributes)
        self.group = group

    def get_help_extra(self, ctx):
        """Help texts leave out ranges; refusals name them."""
        return {}


def option(*names, **attributes):
    """Return the decorator that adds an option; group: key of GROUPS, by default an everyday one."""
    return click.option(*names, cls=Option, **attributes)


def options_of(*decorators):
    """Return one decorator that adds several options to a command, in their order."""

    def decorate(function):
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


@dataclass(frozen=True)
class ChoiceOptions:
    """Which options of a choice a command has.

    lists: they take lists, ranges and globs, and the command works on the cross product; else one value each. without:
    fields that it does not have. usual: texts that replace the table's defaults.
    """

    lists: bool = False
    without: tuple[str, ...] = ()
    usual: Mapping[str, str] = field(default_factory=dict)

    def make(self) -> list[Option]:
        """Return the options, in the order of the table, then --set and --program."""
        from haloscope import core

        made = [self._option(f) for f in core.fields() if f.name not in self.without]
        made.append(
            Option(
                ["--set", "given_set"],
                multiple=True,
                metavar="NAME=VALUE",
                help="A parameter of the app; --help-all lists them.",
            )
        )
        made.append(
            Option(
                ["--program"],
                type=click.Path(path_type=Path),
                metavar="PATH",
                help="Program with its own app, linked with haloscope::rank_main.",
            )
        )
        return made

    def _option(self, f) -> Option:
        usual = self.usual.get(f.name, _text(f.default))
        text = f.meaning + (f" [{usual}]" if usual else "")
        names = [*([SHORT[f.name]] if f.name in SHORT else []), "--" + f.name.replace("_", "-"), f.name]
        one = {"is_flag": False, "flag_value": "on"} if f.type == "flag" else {}
        metavar = "LIST" if self.lists and f.type not in ("dimensions", "flag") else METAVARS.get(f.type, "TEXT")
        return Option(names, group=f.group, help=text, metavar=metavar, default=self.usual.get(f.name), **one)


def _text(default: Any) -> str:
    if isinstance(default, bool):
        return "on" if default else "off"
    return "" if isinstance(default, list | dict) else str(default)


class Command(click.Command):
    """A command whose --help shows everyday options and whose --help-all shows the rest by group.

    choice: its options of a choice; they are made when they are needed, since the library says what they are.
    """

    def __init__(self, *arguments, choice: ChoiceOptions | None = None, **attributes):
        """As click.Command has it, and `choice`."""
        super().__init__(*arguments, **attributes)
        self.choice = choice

    @functools.cached_property
    def _of_choice(self) -> list[Option]:
        return self.choice.make() if self.choice else []

    def get_params(self, ctx):
        """Return all parameters: those of a choice first."""
        return [*self._of_choice, _help_all(), *super().get_params(ctx)]

    def format_options(self, ctx, formatter):
        """Write the everyday options, or all groups when --help-all asks."""
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

    def parse_args(self, ctx, args):
        """As click has it; an unknown option that an app has as a parameter says so."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if self.choice and (hint := _parameter_hint(error.option_name)):
                raise UsageProblem(hint) from None
            raise


def command(**attributes):
    """Return the decorator that makes a Command of a function."""
    return click.command(cls=Command, **attributes)


@functools.cache
def _help_all() -> Option:
    def show(ctx, parameter, value):
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


def _write_parameters(formatter) -> None:
    from haloscope import core

    for name in core.app_names():
        with formatter.section(f"Parameters of {name} (--set NAME=VALUE)"):
            formatter.write_dl([(p.name, f"{p.help} {_values(p)}") for p in core.find_app(name).parameters])


def _values(parameter) -> str:
    value = parameter.value
    usual = ",".join(f"{v:g}" for v in value) if isinstance(value, tuple) else _text(value)
    words = f" One of {', '.join(filter(None, parameter.words))}." if parameter.words else ""
    return f"{words}{f' [{usual}]' if usual else ''}".strip()


def _parameter_hint(option_name: str) -> str:
    from haloscope import core

    name = option_name.lstrip("-").replace("-", "_")
    owners = [a for a in core.app_names() if name in (p.name for p in core.find_app(a).parameters)]
    return f"{option_name} is a parameter of {', '.join(owners)}; write --set {name}=VALUE" if owners else ""


# ---- what was requested ----------------------------------------------------------------------------------------------


def parameters_of(options: Mapping) -> dict[str, str]:
    """Return what --set gave, by name. Raises UsageProblem for what is not NAME=VALUE."""
    found = {}
    for text in options["given_set"]:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise UsageProblem(f"--set '{text}' is not NAME=VALUE; write for example --set seed=2")
        found[name] = value
    return found


def app_of(name: str, options: Mapping):
    """Return the app, of --program where that is given. Raises UsageProblem for an unknown one."""
    from haloscope import core

    if options.get("program"):
        from haloscope.measure import programs

        return programs.use(options["program"], name, parameters_of(options))
    return core.find_app(name)


def axes_of(app, options: Mapping, lists: bool = True) -> list[dict[str, Sequence]]:
    """Return cross products of values by field of a choice, one for each device and schedule.

    lists: several values are allowed. Raises UsageProblem for values that no choice can have.
    """
    from haloscope import core
    from haloscope.measure import devices

    fixed: dict[str, Sequence] = {"set": [tuple(parameters_of(options).items())]}
    for f in core.fields():
        text = options.get(f.name)
        if f.name not in ("device", "schedule", "strategy") and text not in (None, ""):
            fixed[f.name] = _READERS.get(f.name, _READERS[f.type])(str(text), f, app)
    if "cells" not in fixed:
        raise UsageProblem(f"{app.name} needs a grid size; for example --cells {'x'.join(['128'] * app.dims)}")
    places = devices.words(options.get("device") or devices.NONE)
    _check_device_options(options, any(places))
    axes = []
    for device in places:
        for schedule in _schedules(options, device):
            moved = device and not core.find_schedule(schedule).boxed  # whose memory messages move
            own = {"schedule": [schedule], "strategy": _strategies(options, bool(moved)), "device": [device]}
            axes.append(fixed | own)
    if not lists:
        _refuse_several(axes)
    return axes


def one_choice(app, options: Mapping):
    """Return the choice of options with one value each. Raises UsageProblem for bad or several values."""
    from haloscope import core

    [axes] = axes_of(app, options, lists=False)
    choice = core.Choice(app=app.name, **{name: values[0] for name, values in axes.items()})
    if reason := core.illegal(choice):
        raise UsageProblem(reason)
    return choice


def space_of(app, options: Mapping, how: Mapping[str, Any]):
    """Return the space of requests from lists and ranges; how: fields of Request."""
    from haloscope.measure import space

    return sum((space.expand(app.name, axes, how) for axes in axes_of(app, options)), space.Space())


def _refuse_several(axes: list[dict[str, Sequence]]) -> None:
    names = ["schedule or device"] if len(axes) > 1 else [name for name, values in axes[0].items() if len(values) != 1]
    if names:
        raise UsageProblem(
            f"this is about one choice, and --{names[0].replace('_', '-')} names several; give one value"
        )


SCHEDULE_WORDS = {"phased": "bulk", "serial": "bulk", "overlapped": "split", "overlap": "split"}  # of the 2023 study
DEVICE_WORDS = SCHEDULE_WORDS | {"overlapped": "streams", "overlap": "streams"}


def _schedules(options: Mapping, device: str) -> list[str]:
    from haloscope import core
    from haloscope.measure import lists

    words = DEVICE_WORDS if device else SCHEDULE_WORDS
    text = options.get("schedule") or core.Choice.schedule
    return lists.names(",".join(words.get(w, w) for w in text.split(",")), core.schedule_names(), "schedule")


def _strategies(options: Mapping, on_device: bool) -> list[str]:
    from haloscope import core
    from haloscope.measure import lists

    usual = core.device_strategy_names()[0] if on_device else core.Choice.strategy
    return lists.strategies(options.get("strategy") or usual, on_device)


def _check_device_options(options: Mapping, on_device: bool) -> None:
    from haloscope import core

    of_devices = (f for f in core.fields() if f.group == "device" and f.name != "device")
    given = [f.name for f in of_devices if options.get(f.name) not in (None, "")]
    if given and not on_device:
        raise UsageProblem(f"--{given[0].replace('_', '-')} is for devices; add --device, for example --device auto")


def _read_cells(text, f, app):
    from haloscope.measure import lists

    return lists.shapes(text, app.dims)


def _read_integers(text, f, app):
    from haloscope.measure import lists

    return lists.numbers(text, "--" + f.name.replace("_", "-"))


def _read_words(text, f, app):
    from haloscope.measure import lists

    return lists.names(text, f.words, f"--{f.name.replace('_', '-')}")


def _read_forms(text, f, app):
    from haloscope.measure import lists

    return lists.names(text, app.forms, f"form of {app.name}")


def _read_flags(text, f, app):
    from haloscope.measure import lists

    return [word == "on" for word in lists.names(text, ("off", "on"), f"--{f.name.replace('_', '-')}")]


def _read_texts(text, f, app):
    return text.split(",")


def _read_blocks(text, f, app):
    from haloscope.measure import lists

    return ["x".join(map(str, shape)) for shape in lists.shapes(text, 1, f"--{f.name.replace('_', '-')}")]


def _read_dimensions(text, f, app):
    letters = {"none": "", "all": "xyz"[: app.dims]}.get(text, text)
    if set(letters) - set("xyz"[: app.dims]):
        raise UsageProblem(
            f"--periodic '{text}': name the dimensions that wrap as {'xyz'[: app.dims]}, x, ..., or none"
        )
    return [tuple(letter in letters for letter in "xyz"[: app.dims])]


def _read_stage_strategies(text, f, app):
    pairs = [part.partition("=") for part in text.split(";")]
    if not all(stage and equals for stage, equals, _ in pairs):
        raise UsageProblem(f"--stage-strategies '{text}' is not STAGE=STRATEGY;STAGE=STRATEGY;...")
    return [tuple((stage, strategy) for stage, _, strategy in pairs)]


# How a field is read: by its name, else by its type.
_READERS: dict[str, Callable[[str, Any, Any], Sequence]] = {
    "cells": _read_cells,
    "integer": _read_integers,
    "word": _read_words,
    "form": _read_forms,
    "flag": _read_flags,
    "text": _read_texts,
    "shape": _read_blocks,
    "dimensions": _read_dimensions,
    "stage-strategies": _read_stage_strategies,
}


# ---- where ranks run -------------------------------------------------------------------------------------------------


def link_options(hosts: str, usual: int | None = None):
    """Return the decorator that adds the options of an emulated cluster. hosts: name of the one that says how many
    hosts.
    """
    from haloscope.model.link import MOST_HOSTS

    number = f" [{usual}]" if usual else ""
    return options_of(
        option(
            hosts,
            "lab",
            type=click.IntRange(2, MOST_HOSTS),
            default=usual,
            group="machine",
            help=f"An emulated cluster of so many hosts on this machine.{number}",
        ),
        option(
            "--latency",
            default="0",
            metavar="TIME",
            group="machine",
            help="Of its network, one way, beside that of the system: 50us, 1ms. [0]",
        ),
        option(
            "--bandwidth",
            default="0",
            metavar="RATE",
            group="machine",
            help="Of each host's line, each way: 1Gbit, 100MB. [what the machine carries]",
        ),
        option(
            "--jitter",
            default="0",
            metavar="TIME",
            group="machine",
            help="Mean of what each frame is late at random. [0]",
        ),
    )


def link_of(options: Mapping):
    """Return the network of the options of an emulated cluster. Raises UsageProblem for what is no time or rate."""
    from haloscope.model import link

    return link.Link(
        options["lab"],
        link.time_of(options["latency"]),
        link.rate_of(options["bandwidth"]),
        link.time_of(options["jitter"]),
    )


OF_LAB = ("--lab", "--latency", "--bandwidth", "--jitter")  # each takes a value


def starts_ranks(function):
    """Give a command that starts ranks the options that say on which hosts, and see to them."""

    @functools.wraps(function)
    def wrapped(*arguments, hosts, **options):
        from haloscope.measure import hosts as where

        of_lab = {name: options.pop(name) for name in (word.removeprefix("--") for word in OF_LAB)}
        if of_lab["lab"]:
            return _run_in_lab(click.get_current_context().meta["haloscope.words"], link_of(of_lab))
        if set(of_lab.values()) != {None, "0"}:
            raise UsageProblem("--latency, --bandwidth and --jitter are those of an emulated cluster; add --lab 2")
        with where.used(hosts):
            return function(*arguments, **options)

    of_hosts = option(
        "--hosts",
        metavar="A,B|FILE",
        group="machine",
        help="Hosts of a cluster to spread the ranks over. [this machine, or those of the batch job]",
    )
    return of_hosts(link_options("--lab")(wrapped))


def _run_in_lab(words: Sequence[str], link) -> int:
    """Give this command, without the options of the cluster, inside the cluster."""
    from haloscope.core import build
    from haloscope.measure import cluster

    return cluster.inside(build.python("-m", "haloscope.cli", *options_without(words, OF_LAB)), link)


def options_without(words: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return a command line without some options and their values."""
    kept, is_value = [], False
    for word in words:
        if is_value:
            is_value = False
        elif word in names:
            is_value = True
        elif not word.startswith(tuple(f"{name}=" for name in names)):
            kept.append(word)
    return kept
