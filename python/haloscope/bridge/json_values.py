"""Frozen dataclasses as JSON in both directions, by the names and types of their fields."""

from __future__ import annotations

import collections.abc
import dataclasses
import functools
import json
import operator
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

Value = TypeVar("Value")
Reader = Callable[[Any], Any]


def encoded(value: object) -> bytes:
    """Return a value as the text of its JSON: dataclasses are objects, without fields that are None."""
    return json.dumps(value, default=_plain).encode()


def _plain(value: Any) -> object:
    if not dataclasses.is_dataclass(value):
        return operator.index(value)  # a whole number of NumPy
    found = ((f.name, getattr(value, f.name)) for f in dataclasses.fields(value) if f.init)
    return {name: one for name, one in found if one is not None}


def decoded(kind: type[Value], found: Mapping[str, Any]) -> Value:
    """Return the dataclass of a JSON object: lists become tuples, absent fields get defaults, others are ignored."""
    made: Value = _reader_of(typing.cast(collections.abc.Hashable, kind))(found)
    return made


@functools.cache
def _reader_of(hint: Any) -> Reader:
    """Return a function that makes a value of a type from its JSON."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        return _object_reader(hint)
    if origin is tuple:
        if arguments[-1] is Ellipsis:
            one = _reader_of(arguments[0])
            return lambda found: tuple(map(one, found))
        readers = tuple(map(_reader_of, arguments))
        return lambda found: tuple(read(part) for read, part in zip(readers, found, strict=True))
    if origin is collections.abc.Mapping:
        one = _reader_of(arguments[1])
        return lambda found: {name: one(part) for name, part in found.items()}
    if origin in (typing.Union, types.UnionType):
        lists = [part for part in arguments if typing.get_origin(part) is tuple]
        one = _reader_of(lists[0]) if lists else _as_it_is
        return lambda found: one(found) if isinstance(found, list) else found
    return _as_it_is


def _as_it_is(found: Any) -> Any:
    return found


def _object_reader(kind: Any) -> Reader:
    hints = typing.get_type_hints(kind)
    readers = [(f.name, _reader_of(hints[f.name])) for f in dataclasses.fields(kind) if f.init]

    def read(found: Any) -> Any:
        if isinstance(found, kind):
            return found
        return kind(**{name: read_part(found[name]) for name, read_part in readers if name in found})

    return read
