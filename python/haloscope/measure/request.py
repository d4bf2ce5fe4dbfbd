"""A request: one measurement, as the ranks receive it and as its record stores it."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from haloscope import bridge, records
from haloscope.bridge.choice import DEFAULTS, Choice
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
    """A choice, and the settings to measure it with, as the document that the ranks receive and the record holds.

    document: app, cells and strategy, and the other fields of choice.def and measure.def that are not at their
    defaults.
    """

    document: Mapping[str, Any]

    @classmethod
    def of(cls, choice: Choice, **settings: Any) -> Request:
        """Return the request of a choice. settings: SETTINGS, by name."""
        return cls(choice.to_json()).measured(**settings)

    @classmethod
    def from_json(cls, request: Mapping) -> Request:
        """Return the request of a record, whose other fields are ignored."""
        return cls.of(Choice.from_json(request), **{n: request[n] for n in SETTINGS if request.get(n) is not None})

    def measured(self, **settings: Any) -> Request:
        """Return the request with other settings."""
        fields = {**self.document, **settings}
        return Request({name: value for name, value in fields.items() if value != SETTINGS.get(name)})

    def with_choice(self, choice: Choice) -> Request:
        """Return the request of another choice with the same settings."""
        return Request(choice.to_json() | {name: self.document[name] for name in SETTINGS if name in self.document})

    def __hash__(self) -> int:
        return hash(self.id)

    @functools.cached_property
    def choice(self) -> Choice:
        """The choice of the document."""
        return Choice.from_json(self.document)

    @property
    def ranks(self) -> int:
        """The ranks of the choice."""
        return int(self.document.get("ranks", Choice.ranks))

    @property
    def threads(self) -> int:
        """The threads of each rank."""
        return int(self.document.get("threads", Choice.threads))

    @property
    def strategies(self) -> tuple[str, ...]:
        """The strategies of all stages."""
        return (self.document["strategy"], *self.document.get("stage_strategies", {}).values())

    def __getattr__(self, name: str) -> Any:
        """Return a setting, one of SETTINGS."""
        if name in SETTINGS:
            return self.document.get(name, SETTINGS[name])
        raise AttributeError(f"a request has no '{name}'; settings are {', '.join(SETTINGS)}")

    @functools.cached_property
    def id(self) -> str:
        """A readable name, the same for the same work in any launch, independent of the measuring time."""
        return name_of(self.document)

    def request(self) -> Mapping[str, Any]:
        """Return the request as its record holds it."""
        return self.document

    def line(self) -> dict:
        """Return the line of a requests file that makes the ranks measure this."""
        return {"kind": KIND, "id": self.id, "request": self.document}


# The settings of measure.def and their defaults. steps: of a repetition, or enough of them for `seconds` (> 0).
SETTINGS: Mapping[str, Any] = {
    "steps": 100,
    "seconds": 0.0,
    "repetitions": 5,
    "warmup": 1,
    "verify": 0,
    "timers": True,
    "events": False,
    "timeline": False,
    "trace": "",
}


def name_of(document: Mapping[str, Any]) -> str:
    """Return a readable name of a choice's document: the everyday fields, then those that are not at their defaults."""
    fields = {**DEFAULTS, **document}
    parts = [
        fields["app"],
        "x".join(map(str, fields["cells"])),
        f"r{fields['ranks']}",
        f"t{fields['threads']}",
        fields["schedule"],
        fields["strategy"],
        f"d{fields['depth']}",
    ]
    parts += [fields["substeps"]] * (fields["depth"] > 1) + [fields["real"], fields["form"], fields["process_grid"]]
    parts += [fields["sharing"]] * (fields["sharing"] != Choice.sharing) + [fields["isa"]]
    for field in _further_fields():
        if field.name in document:
            value = document[field.name]
            parts.append(field.name if value is True else f"{field.name}={_text(field, value)}")
    return ",".join(filter(None, parts + [f"{name}={_text(None, v)}" for name, v in dict(fields["set"]).items()]))


@functools.cache
def _further_fields() -> tuple[bridge.Field, ...]:
    return tuple(field for field in bridge.fields() if field.name not in _FIRST)


def _text(field: bridge.Field | None, value: Any) -> str:
    if field and field.type == "dimensions":
        return letters(value)
    if field and field.type == "stage-strategies":
        return ";".join(f"{stage}={strategy}" for stage, strategy in dict(value).items())
    if isinstance(value, bool):
        return "on" if value else "off"
    return ",".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)


def letters(periodic: Sequence[bool]) -> str:
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
