"""A choice: everything a user picks for one run. Its fields stand in C++'s choice.def; here they are a frozen
dataclass.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from haloscope.core import capi

Value = bool | int | float | str | tuple[float, ...]  # of an app's parameter


@dataclass(frozen=True)
class Field:
    """One field of a choice, as the table in choice.def has it.

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
class Choice:
    """Everything a user picks for one run; `fields()` says what each field means.

    periodic: one flag per dimension, () = as the app has it. form, process_grid: "" = the app's first, the app's rule.
    stage_strategies: (stage, strategy) pairs. set: (name, value) pairs of the app's parameters, values or what a
    command line writes for them.
    """

    app: str = "advection3d"
    cells: tuple[int, ...] = (1, 1, 1)
    ranks: int = 1
    threads: int = 1
    form: str = ""
    real: str = "f64"
    schedule: str = "bulk"
    strategy: str = "ordered/p2p"
    stage_strategies: tuple[tuple[str, str], ...] = ()
    depth: int = 1
    substeps: str = "full"
    process_grid: str = ""
    periodic: tuple[bool, ...] = ()
    sharing: str = "guided"
    piece: int = 0
    tiles: int = 8
    barrier: bool = False
    isa: str = ""
    stores: str = "auto"
    temporaries: str = "kept"
    ftz: bool = False
    nodes: int = 0
    placement: str = "block"
    reorder: str = "none"
    memory: str = "own"
    device: str = ""
    device_kernel: str = ""
    device_block: str = ""
    pack: str = "first"
    walls: int = 1
    capture: bool = False
    set: tuple[tuple[str, Value], ...] = ()

    @property
    def shape(self) -> str:
        """The cells as text, `128x128x64`."""
        return "x".join(map(str, self.cells))

    def strategy_of(self, stage: str) -> str:
        """Return the strategy of a stage of the step."""
        return dict(self.stage_strategies).get(stage, self.strategy)

    def to_json(self) -> dict:
        """Return the fields that are not their defaults, and the strategy, as a record's request has them."""
        found: dict = {"app": self.app, "cells": list(self.cells), "strategy": self.strategy}
        for name, usual in _DEFAULTS.items():
            value = getattr(self, name)
            if value != usual and name not in found:
                found[name] = dict(value) if name in _PAIRS else list(value) if isinstance(value, tuple) else value
        return found

    @classmethod
    def from_json(cls, request: Mapping) -> Choice:
        """Return the choice of a record's request; its other fields are ignored."""
        given = {name: _frozen(request[name]) for name in _DEFAULTS if request.get(name) is not None}
        if isinstance(given.get("process_grid"), tuple):
            given["process_grid"] = "x".join(map(str, given["process_grid"]))
        return cls(**given)


_DEFAULTS: dict[str, Any] = {f.name: f.default for f in dataclasses.fields(Choice)}
_PAIRS = ("stage_strategies", "set")


def _frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return tuple((name, _frozen(v)) for name, v in value.items())
    return tuple(value) if isinstance(value, list) else value


@dataclass(frozen=True)
class Bound:
    """The range of a number that files, options and programs may give."""

    name: str
    least: float
    most: float


@functools.cache
def bounds() -> dict[str, Bound]:
    """Return the ranges of numbers by name, those of core/bounds.def."""
    return {entry["name"]: Bound(**entry) for entry in json.loads(capi.list_text("bounds"))}


@functools.cache
def fields() -> tuple[Field, ...]:
    """Return all fields of a choice but `app` and `set`, in the order of choice.def."""
    return tuple(Field(**entry | {"words": tuple(entry["words"])}) for entry in json.loads(capi.list_text("fields")))


@functools.lru_cache(maxsize=4096)
def handle_of(choice: Choice) -> capi.CData:
    """Return a choice as the C library holds it. Raises UsageProblem for an unknown name or a value that cannot be."""
    return capi.handle("hs_choice_create", "hs_choice", json.dumps(choice.to_json()).encode())


def normal(choice: Choice) -> Choice:
    """Return the same choice with the fields that have no effect on it at their defaults.

    Raises UsageProblem for what the choice's app does not know.
    """
    effective = json.loads(capi.result_text("hs_choice_json", handle_of(choice)))
    changes = {f.name: _DEFAULTS[f.name] for f in fields() if f.name not in effective}
    return dataclasses.replace(choice, **changes)
