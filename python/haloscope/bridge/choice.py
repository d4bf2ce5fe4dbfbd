"""A choice: everything that a user chooses for one run."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from haloscope.bridge import capi
from haloscope.bridge.choice_fields import ChoiceFields
from haloscope.bridge.json_values import decoded, encoded
from haloscope.errors import UsageError


@dataclass(frozen=True)
class Field:
    """One field of a choice, as in the table of choice.def.

    type: integer, flag, text, word (one of `words`), shape, cells, dimensions, strategy, schedule, stage-strategies.
    group: everyday, grid, kernel, schedule, nodes, device.
    """

    name: str
    type: str
    group: str
    meaning: str
    words: tuple[str, ...]
    default: Any


@dataclass(frozen=True)
class Choice(ChoiceFields):
    """Everything that a user chooses for one run; `fields()` has the meanings.

    periodic: one flag per dimension, () = the app's default. form, process_grid: "" = the app's first, the app's rule.
    stage_strategies: (stage, strategy) pairs. set: (name, value) pairs of the app's parameters, values or their texts
    on a command line.
    """

    @property
    def shape(self) -> str:
        """The cells as text, `128x128x64`."""
        return "x".join(map(str, self.cells))

    def strategy_of(self, stage: str) -> str:
        """Return the strategy of a stage of the step."""
        return dict(self.stage_strategies).get(stage, self.strategy)

    def to_json(self) -> dict:
        """Return the fields that differ from their defaults, and app, cells and strategy, as in a record's request."""
        return _document({name: _document_value(name, getattr(self, name)) for name in DEFAULTS})

    @classmethod
    def from_json(cls, request: Mapping) -> Choice:
        """Return the choice of a record's request; its other fields are ignored."""
        values = {name: _frozen(request[name]) for name in DEFAULTS if request.get(name) is not None}
        if isinstance(values.get("process_grid"), tuple):
            values["process_grid"] = "x".join(map(str, values["process_grid"]))
        return cls(**values)


DEFAULTS: dict[str, Any] = {f.name: f.default for f in dataclasses.fields(Choice)}
_PAIRS = ("stage_strategies", "set")


def _document_value(name: str, value: Any) -> Any:
    if name in _PAIRS:
        return dict(value)
    return list(value) if isinstance(value, tuple) else value


_DOCUMENT_DEFAULTS = {name: _document_value(name, value) for name, value in DEFAULTS.items()}


def _document(fields: Mapping[str, Any]) -> dict:
    """Return the fields that are not at their defaults, and app, cells and strategy."""
    always = {name: fields.get(name, _DOCUMENT_DEFAULTS[name]) for name in ("app", "cells", "strategy")}
    return always | {name: value for name, value in fields.items() if value != _DOCUMENT_DEFAULTS[name]}


def _frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return tuple((name, _frozen(v)) for name, v in value.items())
    return tuple(value) if isinstance(value, list) else value


@dataclass(frozen=True)
class Bound:
    """The range of a number that files, options and programs may specify."""

    name: str
    least: float
    most: float


@functools.cache
def bounds() -> dict[str, Bound]:
    """Return the ranges of numbers in core/bounds.def, by name."""
    return {entry["name"]: decoded(Bound, entry) for entry in capi.answer("hs_describe", b"bounds")}


@functools.cache
def fields() -> tuple[Field, ...]:
    """Return all fields of a choice but `app` and `set`, in the order of choice.def."""
    return tuple(decoded(Field, entry) for entry in capi.answer("hs_describe", b"fields"))


@functools.lru_cache(maxsize=4096)
def text_of(choice: Choice) -> bytes:
    """Return a choice as the text of its JSON."""
    return encoded(choice.to_json())


@functools.lru_cache(maxsize=4096)
def point_of(choice: Choice) -> Mapping[str, Any]:
    """Return the library's facts on a choice: `choice`, the fields that have an effect on it, None for an impossible
    choice; `reason`, the reason why it cannot run, "" where it can.
    """
    found: Mapping[str, Any]
    [found] = capi.answer("hs_expand", {"choice": choice.to_json()})
    return found


def normal(choice: Choice) -> Choice:
    """Return the same choice with the fields that have no effect on it at their defaults.

    Raises UsageError for values that the choice's app does not support.
    """
    point = point_of(choice)
    if point["choice"] is None:
        raise UsageError(point["reason"])
    changes = {f.name: DEFAULTS[f.name] for f in fields() if f.name not in point["choice"]}
    return dataclasses.replace(choice, **changes)


def product(app: str, axes: Mapping[str, Sequence]) -> Iterator[tuple[dict, str]]:
    """Yield the cross product of the values of fields, the last one fastest: for each choice the document with which a
    request for it begins, without fields that have no effect, and the reason why it cannot run, "" where it can.
    """
    listed = {name: [_document_value(name, value) for value in values] for name, values in axes.items()}
    points = capi.answer("hs_expand", {"choice": {"app": app}, "axes": list(listed.items())})
    for values, point in zip(itertools.product(*listed.values()), points, strict=True):
        effective = axes if point["choice"] is None else point["choice"].keys() | {"set"}
        specified = {name: value for name, value in zip(axes, values, strict=True) if name in effective}
        yield _document({"app": app, **specified}), point["reason"]
