"""Choices and spaces of choices from the options of a command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from haloscope.errors import HaloscopeError, UsageError
from haloscope.options.kinds import ANY_PATH, Decorator, option
from haloscope.options.measuring import settings_of

if TYPE_CHECKING:
    from haloscope.bridge import App, Choice, Field
    from haloscope.measure.space import Space

PROGRAM: dict[str, Any] = {"type": ANY_PATH, "help": "Program with its own app, whose main() calls rank_main()."}


def _complete_app(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the apps whose names begin with a text; none where nothing is built."""
    from haloscope import bridge

    try:
        return [name for name in bridge.app_names() if name.startswith(incomplete)]
    except HaloscopeError:
        return []


APP = click.argument("app", shell_complete=_complete_app)


def program(**attributes: Any) -> Decorator:
    """Return the option for a program with its own apps. attributes: replace attributes of PROGRAM."""
    return option("--program", **(PROGRAM | attributes))


def parameters_of(options: Mapping) -> dict[str, str]:
    """Return the parameters of --set, by name. Raises UsageError where one is not NAME=VALUE."""
    found = {}
    for text in options["given_set"]:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise UsageError(f"--set '{text}' is not NAME=VALUE; write for example --set seed=2")
        found[name] = value
    return found


def app_of(name: str, options: Mapping) -> App:
    """Return the app, from --program if specified. Raises UsageError for an unknown one."""
    from haloscope import bridge

    if options.get("program"):
        from haloscope.measure import programs

        return programs.use(options["program"], name, parameters_of(options))
    return bridge.find_app(name)


def axes_of(app: App, options: Mapping, lists: bool = True) -> list[dict[str, Sequence]]:
    """Return cross products of values by field of a choice, one for each device and schedule.

    lists: several values are allowed. Raises UsageError for values that no choice can have.
    """
    from haloscope import bridge
    from haloscope.measure import devices

    fixed: dict[str, Sequence] = {"set": [tuple(parameters_of(options).items())]}
    for f in bridge.fields():
        text = options.get(f.name)
        if f.name not in ("device", "schedule", "strategy") and text not in (None, ""):
            fixed[f.name] = values_of(f, str(text), app)
    if "cells" not in fixed:
        raise UsageError(f"{app.name} needs a grid size; for example --cells {'x'.join(['128'] * app.dims)}")
    places = devices.parse_devices(options.get("device") or devices.NONE)
    _check_device_options(options, any(places))
    axes = []
    for device in places:
        for schedule in _schedules(options, device):
            moved = device and not bridge.find_schedule(schedule).boxed  # whose memory messages move
            own = {"schedule": [schedule], "strategy": _strategies(options, bool(moved)), "device": [device]}
            axes.append(fixed | own)
    if not lists:
        _refuse_several(axes)
    return axes


def one_choice(app: App, options: Mapping) -> Choice:
    """Return the choice of options with one value each. Raises UsageError for bad or several values."""
    from haloscope import bridge

    [axes] = axes_of(app, options, lists=False)
    choice = bridge.Choice(app=app.name, **{name: values[0] for name, values in axes.items()})
    if reason := bridge.illegal(choice):
        raise UsageError(reason)
    return choice


def space_of(app: App, options: Mapping, settings: Mapping[str, Any]) -> Space:
    """Return the space of requests from lists and ranges; settings: fields of Request."""
    from haloscope.measure import space

    return sum((space.expand(app.name, axes, settings) for axes in axes_of(app, options)), space.Space())


def measured_space(app: App, options: Mapping) -> Space:
    """Return the space of requests to measure. Each result is compared with the reference; requests that are too large
    for memory are skipped. Raises UsageError for impossible options, UnavailableError for unavailable devices.
    """
    from haloscope.measure import devices, memory, space

    here = {**options, "device": devices.resolve(options.get("device"))}
    planned = space_of(app, here, settings_of(options))
    return memory.set_aside(space.with_verification(planned, options.get("verify")))


def _refuse_several(axes: list[dict[str, Sequence]]) -> None:
    names = ["schedule or device"] if len(axes) > 1 else [name for name, values in axes[0].items() if len(values) != 1]
    if names:
        raise UsageError(f"this takes one choice, and --{names[0].replace('_', '-')} names several; give one value")


SCHEDULE_WORDS = {"phased": "bulk", "serial": "bulk", "overlapped": "split", "overlap": "split"}  # of the 2023 study
DEVICE_WORDS = SCHEDULE_WORDS | {"overlapped": "streams", "overlap": "streams"}


def _schedules(options: Mapping, device: str) -> list[str]:
    from haloscope import bridge
    from haloscope.measure import lists

    words = DEVICE_WORDS if device else SCHEDULE_WORDS
    text = options.get("schedule") or bridge.Choice.schedule
    return lists.names(",".join(words.get(w, w) for w in text.split(",")), bridge.schedule_names(), "schedule")


def _strategies(options: Mapping, on_device: bool) -> list[str]:
    from haloscope import bridge
    from haloscope.measure import lists

    usual = bridge.device_strategy_names()[0] if on_device else bridge.Choice.strategy
    return lists.strategies(options.get("strategy") or usual, on_device)


def _check_device_options(options: Mapping, on_device: bool) -> None:
    from haloscope import bridge

    of_devices = (f for f in bridge.fields() if f.group == "device" and f.name != "device")
    passed = [f.name for f in of_devices if options.get(f.name) not in (None, "")]
    if passed and not on_device:
        raise UsageError(f"--{passed[0].replace('_', '-')} is for devices; add --device, for example --device auto")


def values_of(f: Field, text: str, app: App) -> Sequence:
    """Return the values of a field in a list of options; fields are read by their names, else by their types."""
    from haloscope.measure import lists

    name = f"--{f.name.replace('_', '-')}"
    match f.name if f.name == "form" else f.type:
        case "cells":
            return lists.shapes(text, app.dims)
        case "integer":
            return lists.numbers(text, name)
        case "word":
            return lists.names(text, f.words, name)
        case "form":
            return lists.names(text, app.forms, f"form of {app.name}")
        case "flag":
            return [word == "on" for word in lists.names(text, ("off", "on"), name)]
        case "shape":
            return ["x".join(map(str, shape)) for shape in lists.shapes(text, 1, name)]
        case "dimensions":
            return [_dimensions(text, "xyz"[: app.dims])]
        case "stage-strategies":
            return [_stage_strategies(text)]
        case "text":
            return text.split(",")
    raise NotImplementedError(f"fields of type '{f.type}' have no reader")


def _dimensions(text: str, axes: str) -> tuple[bool, ...]:
    letters = {"none": "", "all": axes}.get(text, text)
    if set(letters) - set(axes):
        raise UsageError(f"--periodic '{text}': name the dimensions that wrap as {axes}, x, ..., or none")
    return tuple(letter in letters for letter in axes)


def _stage_strategies(text: str) -> tuple[tuple[str, str], ...]:
    pairs = [part.partition("=") for part in text.split(";")]
    if not all(stage and equals for stage, equals, _ in pairs):
        raise UsageError(f"--stage-strategies '{text}' is not STAGE=STRATEGY;STAGE=STRATEGY;...")
    return tuple((stage, strategy) for stage, _, strategy in pairs)
