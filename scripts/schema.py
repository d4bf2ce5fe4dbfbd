"""Write the fields of a choice and the ranges of all numbers into the published schemas, and the fields into the Python
package: `make docs` calls it.

Sources: the table of a choice's fields, and the table of bounds.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from haloscope import bridge, records
from haloscope.model import profile

CHOICE_FILE = Path(bridge.__file__).with_name("choice_fields.py")
TYPES = {
    "integer": {"type": "integer"},
    "flag": {"type": "boolean"},
    "text": {"type": "string"},
    "strategy": {"type": "string"},
    "schedule": {"type": "string"},
    "shape": {"type": "string", "pattern": "^([0-9]+(x[0-9]+){0,2})?$"},
    "cells": {"type": "array", "items": {"type": "integer", "minimum": 1}, "minItems": 1, "maxItems": 3},
    "dimensions": {"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 3},
    "stage-strategies": {"type": "object", "additionalProperties": {"type": "string"}},
}
SPECIAL = {
    "app": {"type": "string", "description": "Name of the app."},
    "process_grid": {
        "type": "array",
        "items": {"type": "integer", "minimum": 1},
        "minItems": 1,
        "maxItems": 3,
        "description": "Ranks per dimension.",
    },
    "set": {"type": "object", "description": "Parameters of the app that are not its defaults."},
    "steps": {"type": "integer", "minimum": 1, "description": "Time steps of one repetition."},
    "repetitions": {"type": "integer", "minimum": 1, "description": "Measured repetitions."},
}
REQUIRED = (
    "app",
    "cells",
    "periodic",
    "ranks",
    "process_grid",
    "threads",
    "strategy",
    "schedule",
    "depth",
    "steps",
    "repetitions",
)


def request_schema() -> dict:
    """Return the schema of a measurement's request; fields without effect on a choice may be absent."""
    fields = {}
    for f in bridge.fields():
        kind = {"enum": list(f.words)} if f.type == "word" else TYPES[f.type]
        fields[f.name] = kind | {"description": f.meaning}
    return {"type": "object", "required": list(REQUIRED), "properties": fields | SPECIAL}


def record_text() -> str:
    """Return the current schema of records."""
    schema = json.loads(records.SCHEMA_FILE.read_text())
    schema["$defs"]["measurement"]["properties"]["request"] = request_schema()
    _bound_all(schema, "")
    return _laid_out(schema)


def profile_text() -> str:
    """Return the current schema of profiles: its numbers refer to definitions that are named after bounds."""
    schema = json.loads(profile.SCHEMA_FILE.read_text())
    for name, definition in schema["$defs"].items():
        bound = bridge.bounds().get(OR_NOTHING.get(name, name.removeprefix(SIGNED)))
        if bound:
            definition.update(_range(-bound.most if name.startswith(SIGNED) else bound.least, bound.most))
    return _laid_out(schema)


OR_NOTHING = {"end": "amount", "limit": "rate"}
SIGNED = "signed_"


def _bound_all(node: object, name: str) -> None:
    """Set the range of every number of a schema: of the bound with its name, else of times or counts."""
    if isinstance(node, list):
        for one in node:
            _bound_all(one, name)
    if not isinstance(node, dict):
        return
    known = bridge.bounds()
    if node.get("type") in ("integer", "number"):
        bound = known.get(name) or known["seconds" if name.endswith("_s") else "count"]
        least = node.get("minimum", bound.least if name in known else -bound.most)
        most = bound.most if name in known else node.get("maximum", bound.most)
        node.update(_range(least, most))
        return
    for key, inner in node.items():
        if key in ("properties", "patternProperties", "$defs"):
            for own, one in inner.items():
                _bound_all(one, own)
        else:
            _bound_all(inner, name)


def _range(least: float, most: float) -> dict[str, float]:
    return {"minimum": _plain(least), "maximum": _plain(most)}


def _plain(number: float) -> float:
    return int(number) if number == int(number) else number


def _laid_out(schema: dict) -> str:
    """Return a schema as text, with short objects and lists on one line."""
    whole = json.dumps(schema, indent=1)
    return re.sub(r"[\[{]\n(?:[^\[\]{}]){0,120}?[\]}]", lambda m: re.sub(r"\s*\n\s*", " ", m[0]), whole) + "\n"


PYTHON_TYPES = {
    "integer": "int",
    "flag": "bool",
    "cells": "tuple[int, ...]",
    "dimensions": "tuple[bool, ...]",
    "stage-strategies": "tuple[tuple[str, str], ...]",
}


def choice_text() -> str:
    """Return the current module with the fields of a choice."""
    lines = ['"""The fields of a choice. Made from choice.def by scripts/schema.py."""', "", *HEAD]
    for f in bridge.fields():
        default = () if f.type in ("dimensions", "stage-strategies") else f.default
        if isinstance(default, str):
            default = json.dumps(default)
        if isinstance(default, list):
            default = tuple(default)
        lines.append(f"    {f.name}: {PYTHON_TYPES.get(f.type, 'str')} = {default}")
    return "\n".join([*lines, "    set: tuple[tuple[str, Value], ...] = ()", ""])


HEAD = (
    "from __future__ import annotations",
    "",
    "from dataclasses import dataclass",
    "",
    "Value = bool | int | float | str | tuple[float, ...]  # of an app's parameter",
    "",
    "",
    "@dataclass(frozen=True)",
    "class ChoiceFields:",
    '    """Everything that a user chooses for one run; `fields()` has the meanings."""',
    "",
    '    app: str = "advection3d"',
)

if __name__ == "__main__":
    CHOICE_FILE.write_text(choice_text())
    records.SCHEMA_FILE.write_text(record_text())
    profile.SCHEMA_FILE.write_text(profile_text())
    sys.exit(0)
