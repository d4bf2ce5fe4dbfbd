"""Write what a record's request holds into the published schema, from the table of a choice's fields: `make docs` calls it."""

from __future__ import annotations

import json
import re
import sys

from haloscope import core
from haloscope.report import records

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
    "app": {"type": "string", "description": "What is computed."},
    "process_grid": {"type": "array", "items": {"type": "integer", "minimum": 1}, "minItems": 1, "maxItems": 3,
                     "description": "Ranks per dimension."},
    "set": {"type": "object", "description": "Parameters of the app that are not its defaults."},
    "steps": {"type": "integer", "minimum": 1, "description": "Time steps of one repetition."},
    "repetitions": {"type": "integer", "minimum": 1, "description": "Measured repetitions."},
}  # fmt: skip
LEAST = {"ranks": 1, "threads": 1, "depth": 1, "tiles": 0, "nodes": 0, "walls": 1}  # of integers
REQUIRED = ("app", "cells", "periodic", "ranks", "process_grid", "threads", "strategy", "schedule", "depth", "steps",
            "repetitions")  # fmt: skip


def request_schema() -> dict:
    """Return the schema of a measurement's request; what does not matter to a choice may be absent."""
    fields = {}
    for f in core.fields():
        kind = {"enum": list(f.words)} if f.type == "word" else TYPES[f.type]
        least = {"minimum": LEAST[f.name]} if f.name in LEAST else {}
        fields[f.name] = kind | least | {"description": f.meaning}
    return {"type": "object", "required": list(REQUIRED), "properties": fields | SPECIAL}


def text() -> str:
    """Return the schema file as it should be."""
    schema = json.loads(records.SCHEMA_FILE.read_text())
    schema["$defs"]["measurement"]["properties"]["request"] = request_schema()
    whole = json.dumps(schema, indent=1)
    # Short objects and lists on one line.
    return re.sub(r"[\[{]\n(?:[^\[\]{}]){0,120}?[\]}]", lambda m: re.sub(r"\s*\n\s*", " ", m[0]), whole) + "\n"


if __name__ == "__main__":
    records.SCHEMA_FILE.write_text(text())
    sys.exit(0)
