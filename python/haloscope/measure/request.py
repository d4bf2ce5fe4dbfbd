"""A request: one measurement, as the ranks receive it and as its record keeps it."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from haloscope import bridge, records
from haloscope.bridge.choice import Choice
from haloscope.measure import programs

KIND = "measurement"
_FIRST = (
    "app",
    "cells",
    "ranks",
    "threads",
    "schedule",
    "strategy",
    "depth",
    "substeps",
    "real",
    "form",
    "process_grid",
    "sharing",
    "isa",
)


class Measurable(records.Requested, Protocol):
    """A request of any kind that ranks can measure, with the cores and the strategies that it needs."""

    @property
    def ranks(self) -> int:
        """The ranks that it runs on."""

    @property
    def threads(self) -> int:
        """The threads of each rank."""

    @property
    def strategies(self) -> tuple[str, ...]:
        """Strategies that the MPI library has to support."""

    def line(self) -> dict:
        """Return the line of a requests file that makes the ranks measure this."""


@dataclass(frozen=True)
class Request:
    """A choice, and the settings to measure it with: the fields of measure.def.

    steps per repetition, or as many as last `seconds` (> 0). verify: steps to compare with `reference`, 0 = none.
    trace: file for one, "" = none.
    """

    choice: Choice
    steps: int = 100
    seconds: float = 0.0
    repetitions: int = 5
    warmup: int = 1
    verify: int = 0
    timers: bool = True
    events: bool = False
    timeline: bool = False
    trace: str = ""

    @property
    def ranks(self) -> int:
        """The ranks of the choice."""
        return self.choice.ranks

    @property
    def threads(self) -> int:
        """The threads of each rank."""
        return self.choice.threads

    @property
    def strategies(self) -> tuple[str, ...]:
        """The strategies of all stages."""
        return (self.choice.strategy, *(strategy for _, strategy in self.choice.stage_strategies))

    @functools.cached_property
    def id(self) -> str:
        """A readable name, the same for the same work in any launch, independent of how long it is measured."""
        return name_of(self.choice)

    def request(self) -> dict:
        """Return the request as its record holds it: the fields that are not at their defaults."""
        found = self.choice.to_json()
        return found | {name: getattr(self, name) for name in _SETTINGS if getattr(self, name) != _SETTINGS[name]}

    def line(self) -> dict:
        """Return the line of a requests file that makes the ranks measure this."""
        return {"kind": KIND, "id": self.id, "request": self.request()}

    @classmethod
    def from_json(cls, request: Mapping) -> Request:
        """Return the request of a record."""
        settings = {name: request[name] for name in _SETTINGS if request.get(name) is not None}
        return cls(Choice.from_json(request), **settings)


_SETTINGS = {f.name: f.default for f in dataclasses.fields(Request) if f.name != "choice"}


def name_of(choice: Choice) -> str:
    """Return a readable name of a choice: the everyday fields, then those that are not at their defaults."""
    parts = [
        choice.app,
        choice.shape,
        f"r{choice.ranks}",
        f"t{choice.threads}",
        choice.schedule,
        choice.strategy,
        f"d{choice.depth}",
    ]
    parts += [choice.substeps] * (choice.depth > 1) + [choice.real, choice.form, choice.process_grid]
    parts += [choice.sharing] * (choice.sharing != Choice.sharing) + [choice.isa]
    for field in _further_fields():
        value = getattr(choice, field.name)
        if value != getattr(Choice, field.name):
            parts.append(field.name if value is True else f"{field.name}={_text(field, value)}")
    return ",".join(filter(None, parts + [f"{name}={_text(None, value)}" for name, value in choice.set]))


@functools.cache
def _further_fields() -> tuple[bridge.Field, ...]:
    return tuple(field for field in bridge.fields() if field.name not in _FIRST)


def _text(field: bridge.Field | None, value: Any) -> str:
    if field and field.type == "dimensions":
        return letters(value)
    if field and field.type == "stage-strategies":
        return ";".join(f"{stage}={strategy}" for stage, strategy in value)
    if isinstance(value, bool):
        return "on" if value else "off"
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def letters(periodic: tuple[bool, ...]) -> str:
    """Return flags of dimensions as users write them: xyz, xy, ..., none."""
    return "".join(letter for letter, on in zip("xyz", periodic, strict=False) if on) or "none"


def words_of(choice: Choice) -> list[str]:
    """Return the words that make `haloscope run` measure a choice: APP, and the options that are not at their
    defaults.
    """
    words = [choice.app, "--cells", choice.shape]
    for field in bridge.fields():
        value = getattr(choice, field.name)
        wanted = field.name in ("ranks", "strategy") or value != getattr(Choice, field.name)
        if wanted and field.name != "cells":
            words += [f"--{field.name.replace('_', '-')}", _text(field, value)]
    if program := programs.program_of(choice.app):
        words += ["--program", str(program)]
    for name, value in choice.set:
        words += ["--set", f"{name}={_text(None, value)}"]
    return words
