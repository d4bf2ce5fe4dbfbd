"""Records of version 1 of the format in the words of version 2: fields of a request were renamed, `poisson` became
`app`.
"""

from __future__ import annotations

import re

from haloscope.files import number_of

FIELDS = {"region": "substeps", "box": "walls", "graph": "capture"}
PARAMETERS = ("velocity", "nu", "weights", "initial", "seed", "function", "precision", "work_blocks", "work_window")
LISTS = ("velocity", "weights")
NUMBERS = ("nu", "precision")
USUAL = {"initial": ("random", "zero"), "seed": (1,)}  # values that said nothing


def is_old(value: object) -> bool:
    """Whether a value of JSON says that it is a record of version 1."""
    return isinstance(value, dict) and value.get("schema_version") == 1


def upgraded(record: dict) -> dict:
    """Return a record of version 1, which satisfies `version_1` of the schema, in the words of this version.

    Raises ValueError where a text that should be a number is none.
    """
    found = {**record, "schema_version": 2}
    if "request" in record:
        found["request"] = _request(record["request"])
    if "id" in record:
        found["id"] = _words(record["id"])
    if "poisson" in record:
        found["outcome"], found["app"], fields = _solution(found.pop("poisson"))
        if "counts" in record:
            found["counts"] = record["counts"] | fields
    return found


def _request(request: dict) -> dict:
    found = {FIELDS.get(name, name): value for name, value in request.items()}
    for name in ("strategy", "transport"):
        if isinstance(found.get(name), str):
            found[name] = _words(found[name])
    if found.get("residuum"):
        found["residual"] = found["residuum"]
    found.pop("residuum", None)
    given = {name: found.pop(name) for name in (*PARAMETERS, "residual") if name in found}
    given = {name: _value(name, v) for name, v in given.items() if v not in (None, *USUAL.get(name, ()))}
    return found | ({"set": given} if given else {})


def _value(name: str, value):
    if isinstance(value, str) and name in LISTS:
        return [number_of(v) for v in value.split(",")]
    if isinstance(value, str) and name in NUMBERS:
        return number_of(value)
    return value


def _words(text: str) -> str:
    """Transport `shared:direct` is `shared:push` now."""
    return re.sub(r"shared:direct\b", "shared:push", text).replace("residuum=", "residual=")


def _solution(solved: dict) -> tuple[dict, dict, dict]:
    """Return the outcome, the entries of the app, and the fields that are counts now."""
    outcome = {"steps": solved.get("iterations", []), "reduced": {"residual": solved.get("residuum", [])}}
    if solved.get("termination") == "precision":
        outcome["enough"] = bool(solved.get("reached"))
    kept = ("method", "interlines", "function", "termination", "precision", "scheme", "excerpt")
    entries = {name: solved[name] for name in kept if solved.get(name) is not None}
    work = solved.get("work") or {}
    entries |= {f"work_{name}": work[name] for name in ("blocks", "window", "seconds") if name in work}
    return outcome, entries, {name: solved[name] for name in ("field_bytes",) if name in solved}
