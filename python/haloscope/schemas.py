"""Documents held against the published schemas in data/."""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

LONGEST = 300  # characters of a fault


def fault_of(document: object, file: Path, part: str = "") -> str:
    """Return the first fault of a document by a schema; "" without one.

    document: JSON as Python values. file: the schema. part: the name of one of its definitions; "": the whole schema.
    Cost: about 0.1 ms for a record without a fault where jsonschema-rs is installed, 10 ms elsewhere.
    """
    with contextlib.suppress(ValueError):  # a text that is not Unicode
        if _acceptance(file, part)(document):
            return ""
    error = next(iter(_validator(file, part).iter_errors(document)), None)
    if error is None:
        return ""
    place = "/".join(map(str, error.absolute_path))
    return f"{place + ': ' if place else ''}{error.message}"[:LONGEST]


@functools.cache
def _acceptance(file: Path, part: str) -> Callable[[object], bool]:
    """Return the quick check, which names no fault; without its library, one that accepts nothing."""
    try:
        from jsonschema_rs import Draft202012Validator
    except ImportError:  # it has no wheels for some machines, and no package in Spack
        return lambda document: False
    return Draft202012Validator(_schema(file, part)).is_valid


@functools.cache
def _validator(file: Path, part: str) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(_schema(file, part))


def _schema(file: Path, part: str) -> dict:
    schema: dict = json.loads(file.read_text())
    return {"$ref": f"#/$defs/{part}", "$defs": schema["$defs"]} if part else schema
