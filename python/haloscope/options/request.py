"""Choices and spaces of choices, as the options of a command request them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from haloscope.errors import UsageError
from haloscope.options.kinds import ANY_PATH, Decorator, option
from haloscope.options.measuring import settings_of

if TYPE_CHECKING:
    from haloscope.bridge import App, Choice, Field
    from haloscope.measure.space import Space

PROGRAM: dict[str, Any] = {
    "type": ANY_PATH,
    "metavar": "PATH",
    "help": "Program with its own app, linked with haloscope::rank_main.",
}


def program(**attributes: Any) -> Decorator:
    """Return the option for a program with apps of its own; attributes: in the place of PROGRAM's."""
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
    """Return the app, of --program where that is given. Raises UsageError for an unknown one."""
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
            fixed[f.name] = READERS.get(f.name, READERS[f.type])(str(text), f, app)
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
    """Return the space of requests to measure: each is compared with the reference, and requests that are too large for
    memory are skipped. Raises UsageError for impossible options, UnavailableError for devices that are not here.
    """
    from haloscope.measure import devices, memory, space

    here = {**options, "device": devices.resolve(options.get("device"))}
    planned = space_of(app, here, settings_of(options))
    return memory.set_aside(space.with_verification(planned, options.get("verify")))


def _refuse_several(axes: list[dict[str, Sequence]]) -> None:
    names = ["schedule or device"] if len(axes) > 1 else [name for name, values in axes[0].items() if len(values) != 1]
    if names:
        raise UsageError(f"this is about one choice, and --{names[0].replace('_', '-')} names several; give one value")


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
    given = [f.name for f in of_devices if options.get(f.name) not in (None, "")]
    if given and not on_device:
        raise UsageError(f"--{given[0].replace('_', '-')} is for devices; add --device, for example --device auto")


def _read_cells(text: str, f: Field, app: App) -> list[tuple[int, ...]]:
    from haloscope.measure import lists

    return lists.shapes(text, app.dims)


def _read_integers(text: str, f: Field, app: App) -> list[int]:
    from haloscope.measure import lists

    return lists.numbers(text, "--" + f.name.replace("_", "-"))


def _read_words(text: str, f: Field, app: App) -> list[str]:
    from haloscope.measure import lists

    return lists.names(text, f.words, f"--{f.name.replace('_', '-')}")


def _read_forms(text: str, f: Field, app: App) -> list[str]:
    from haloscope.measure import lists

    return lists.names(text, app.forms, f"form of {app.name}")


def _read_flags(text: str, f: Field, app: App) -> list[bool]:
    from haloscope.measure import lists

    return [word == "on" for word in lists.names(text, ("off", "on"), f"--{f.name.replace('_', '-')}")]


def _read_texts(text: str, f: Field, app: App) -> list[str]:
    return text.split(",")


def _read_blocks(text: str, f: Field, app: App) -> list[str]:
    from haloscope.measure import lists

    return ["x".join(map(str, shape)) for shape in lists.shapes(text, 1, f"--{f.name.replace('_', '-')}")]


def _read_dimensions(text: str, f: Field, app: App) -> list[tuple[bool, ...]]:
    letters = {"none": "", "all": "xyz"[: app.dims]}.get(text, text)
    if set(letters) - set("xyz"[: app.dims]):
        raise UsageError(f"--periodic '{text}': name the dimensions that wrap as {'xyz'[: app.dims]}, x, ..., or none")
    return [tuple(letter in letters for letter in "xyz"[: app.dims])]


def _read_stage_strategies(text: str, f: Field, app: App) -> list[tuple[tuple[str, str], ...]]:
    pairs = [part.partition("=") for part in text.split(";")]
    if not all(stage and equals for stage, equals, _ in pairs):
        raise UsageError(f"--stage-strategies '{text}' is not STAGE=STRATEGY;STAGE=STRATEGY;...")
    return [tuple((stage, strategy) for stage, _, strategy in pairs)]


# Readers of fields: by the name, else by the type.
READERS: dict[str, Callable[[str, Field, App], Sequence]] = {
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
