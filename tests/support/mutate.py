"""Valid documents made wrong in one or a few places, reproducibly: what tests of readers are fed with."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

EVIL = "\x1b]0;x\x07\u202e|`<b>$\\frac{$"
VALUES = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2,
    3,
    0.5,
    1e308,
    -1e308,
    1e-320,
    1e18,
    2**31,
    2**63,
    10**7,
    65536,
    "",
    "x",
    EVIL,
    "9" * 300,
    [],
    {},
    [[]],
    [1] * 50,
    {"x": 1},
)
WORDS = (
    b"NaN",
    b"1e999",
    b"-Infinity",
    b"9" * 400,
    b"[" * 200,
    b"\0",
    b"\xff\xfe",
    b"\n",
    b'"',
    b",",
    b"=",
    b"|",
    EVIL.encode(),
)


def places_of(value: Any) -> list[tuple]:
    """Return the paths of all values within a JSON value."""
    found, rest = [], [((), value)]
    while rest:
        path, inner = rest.pop()
        found.append(path)
        parts = inner.items() if isinstance(inner, dict) else enumerate(inner) if isinstance(inner, list) else ()
        rest += [((*path, key), part) for key, part in parts]
    return found


def _part(value: Any, path: tuple) -> Any:
    for key in path:
        value = value[key]
    return value


def changed(random: Random, value: Any) -> Any:
    """Return a copy of a JSON value with one to three places replaced, left out or put in twice."""
    made = copy.deepcopy(value)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        places = [path for path in places_of(made) if path]
        if not places:
            return random.choice(VALUES)
        path = random.choice(places)
        holder, key = _part(made, path[:-1]), path[-1]
        match random.choice(("value", "value", "value", "scale", "drop", "other", "twice")):
            case "value":
                alike = [value for value in VALUES if type(value) is type(holder[key])]
                holder[key] = copy.deepcopy(random.choice(alike if alike and random.random() < 0.7 else VALUES))
            case "scale":
                number = holder[key] if isinstance(holder[key], int | float) else 1
                holder[key] = number * random.choice((-1, 0, 1e-9, 1000, 10**9))
            case "drop":
                del holder[key]
            case "other":
                holder[key] = copy.deepcopy(_part(made, random.choice(places)))
            case "twice":
                again = copy.deepcopy(holder[key])
                if isinstance(holder, dict):
                    holder["again"] = again
                else:
                    holder.append(again)
    return made


def damaged(random: Random, data: bytes) -> bytes:
    """Return bytes that differ from others in one to three places: cut, doubled, overwritten, with odd words put in."""
    for _ in range(random.choice((1, 1, 2, 3))):
        at = random.randrange(len(data) + 1)
        to = min(len(data), at + random.choice((1, 2, 5, 40, 400)))
        match random.choice(("cut", "double", "word", "word", "byte", "end")):
            case "cut":
                data = data[:at] + data[to:]
            case "double":
                data = data[:to] + data[at:]
            case "word":
                data = data[:at] + random.choice(WORDS) + data[random.choice((at, to)) :]
            case "byte":
                data = data[:at] + bytes([random.randrange(256)]) + data[at + 1 :]
            case "end":
                data = data[:at]
    return data


def lines_of(random: Random, records: list[dict]) -> bytes:
    """Return JSON Lines of records of which some are changed, and the whole perhaps damaged."""
    lines = [json.dumps(changed(random, one) if random.random() < 0.5 else one) for one in records]
    data = "".join(f"{line}\n" for line in lines).encode()
    return damaged(random, data) if random.random() < 0.2 else data


def document_of(random: Random, value: Any) -> bytes:
    """Return a changed or damaged JSON document."""
    if random.random() < 0.2:
        return damaged(random, json.dumps(value).encode())
    return json.dumps(changed(random, value)).encode()
