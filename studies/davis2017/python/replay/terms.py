"""Applications as trees of terms: the content of one iteration, read from a file that names no machine.

A file has functions, each a list of terms: `kernel`, `boundary`, `exchange`, `gather`, `allocate`, `free` and `call`
(of another function), each with `times`, or groups `{"times": "n", "of": [...]}`. Source: Davis 2017, eq. 5.1 to 5.14.
"""

from __future__ import annotations

import functools
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from haloscope import files
from haloscope.bridge.values import ExchangeSpec, Quantity
from haloscope.errors import UsageError, unknown_name
from haloscope_studies.davis2017.data import DATA

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

SHIPPED = {"hydra": DATA / "hydra.json"}
# Category of each kind of term in a breakdown (Davis 2017, section 5.1).
CATEGORIES = {
    "kernel": "compute",
    "exchange": "point_to_point",
    "gather": "collectives",
    "boundary": "update_boundary",
    "allocate": "memory",
    "free": "memory",
}
FACES = ("external", "internal", "both")
_SECTIONS = {"exchange": "exchanges", "gather": "gathers", "boundary": "boundaries", "call": "functions"}


@dataclass(frozen=True)
class Term:
    """One cost of an application: its kind (of CATEGORIES) and its name."""

    kind: str
    name: str


Occurrence = tuple[Term, int, tuple[str, ...]]  # a term, its count, and the functions that it is in


@dataclass(frozen=True)
class Application:
    """A valid description; `data` is the JSON object."""

    data: Mapping

    @property
    def name(self) -> str:
        """The application's name."""
        return str(self.data["name"])

    def counts(self, loops: int) -> Counter[Term]:
        """Return the count of each term in one iteration with `loops` (>= 1) inner loops."""
        total: Counter[Term] = Counter()
        for term, times, _ in self.walk(loops):
            total[term] += times
        return total

    def run_counts(self, iterations: Mapping[int, int]) -> Counter[Term]:
        """Return the count of each term in a run of iterations[n] iterations with n inner loops. Source: eq. 5.1."""
        total: Counter[Term] = Counter()
        for loops, many in iterations.items():
            for term, times in self.counts(loops).items():
                total[term] += times * many
        return total

    def walk(self, loops: int) -> Iterator[Occurrence]:
        """Yield each term of an iteration in order, with its count and the functions that it is in."""
        yield from self._walk(self.data["root"], loops, 1, ())

    def _walk(self, function: str, loops: int, times: int, path: tuple[str, ...]) -> Iterator[Occurrence]:
        for item in self.data["functions"][function]:
            yield from self._item(item, loops, times, (*path, function))

    def _item(self, item: Mapping, loops: int, times: int, path: tuple[str, ...]) -> Iterator[Occurrence]:
        times *= evaluate_times(item.get("times", 1), loops)
        if "of" in item:
            for inner in item["of"]:
                yield from self._item(inner, loops, times, path)
        elif "call" in item:
            yield from self._walk(item["call"], loops, times, path)
        else:
            kind = _kind(item)
            yield Term(kind, item[kind]), times, path

    def exchange(self, name: str) -> ExchangeSpec:
        """Return the exchange of a stage: dimension by dimension, one message per face and data type."""
        stage, size = self.data["exchanges"][name], self.data["element_bytes"]
        quantities = tuple(
            Quantity(f"{q['type']}-{q['centring']}-{i}", size[q["type"]], q["type"], q["centring"])
            for q in stage["quantities"]
            for i in range(q["count"])
        )
        width = (stage["halo"],) * 3
        return ExchangeSpec(quantities, width, width, pattern="ordered", corners=True, merge="type")

    def packed(self, name: str) -> bool:
        """Return whether an exchange stage copies to and from message buffers (`packed` in the file, default true)."""
        return bool(self.data["exchanges"][name].get("packed", True))

    def unpacked(self) -> Application:
        """Return the application whose exchanges copy to and from no buffers, for profiles without costs of packing."""
        exchanges = {name: {**stage, "packed": False} for name, stage in self.data["exchanges"].items()}
        return Application({**self.data, "exchanges": exchanges})

    def network_only(self) -> Application:
        """Return only the exchanges and gathers, unpacked: the part that needs only the network of a profile."""
        names: dict[str, set[str]] = {}
        for term, _, _ in self.walk(2):
            names.setdefault(term.kind, set()).add(term.name)
        bare = self
        for kind in ("kernel", "boundary", "allocate", "free"):
            bare = bare.without(kind, *names.get(kind, ()))
        return bare.unpacked()

    def faces(self, boundary: str) -> str:
        """Return the faces of a rank's block on which a boundary kernel works: external, internal or both."""
        return str(self.data["boundaries"][boundary]["faces"])

    def gathers(self, name: str) -> Sequence[Mapping]:
        """Return the all-gathers of a collective stage: their number (`count`) and their `bytes` per rank."""
        found: Sequence[Mapping] = self.data["gathers"][name]
        return found

    def kernel_name(self, term: Term) -> str:
        """Return the name under which a profile holds the cost of a kernel, boundary, allocate or free term."""
        part = term.name if term.kind == "kernel" else f"{term.kind}-{term.name}"
        return f"{self.name}.{part}/{self.data['form']}/{self.data['real']}"

    def without(self, kind: str, *names: str) -> Application:
        """Return the same application without some terms in all functions."""

        def kept(items: Iterable[Mapping]) -> Iterator[Mapping]:
            for item in items:
                if "of" in item:
                    yield {**item, "of": list(kept(item["of"]))}
                elif item.get(kind) not in names:
                    yield item

        functions = {name: list(kept(items)) for name, items in self.data["functions"].items()}
        return Application({**self.data, "functions": functions})


def _kind(item: Mapping) -> str:
    return next(kind for kind in CATEGORIES if kind in item)


def evaluate_times(times: int | str, loops: int) -> int:
    """Return a count: a number, or `n`, `n-1`, `2n`, `2n+1` ... with n = loops. Raises UsageError for another
    form.
    """
    found = re.fullmatch(r"(\d*)n([+-]\d+)?|(\d+)", str(times).replace(" ", ""))
    if not found:
        raise UsageError(f"'{times}' is not a count of a term; write a number, n, n-1 or 2n+1")
    factor, offset, plain = found.groups()
    return int(plain) if plain else (int(factor) if factor else 1) * loops + int(offset or 0)


def load(application: str | Path) -> Application:
    """Read an application description: the name of a shipped one (`hydra`) or the path of a JSON file.

    Raises UsageError for an unknown name, an unreadable file, text that is not JSON, and a description that is not
    valid.
    """
    path = SHIPPED.get(str(application), Path(application))
    if path.suffix != ".json" and not path.exists():
        raise UsageError(unknown_name("application", str(application), SHIPPED) + "; a path ends in .json")
    text = files.text_of(path, "the application", "give the path of a .json file")
    try:
        data = files.json_of(text)
    except ValueError as error:
        raise UsageError(f"the application {path} is not JSON ({error}); correct it there") from None
    fault = fault_of(data)
    if fault:
        raise UsageError(f"the application {path} is not valid: {fault}")
    return Application(data)


@functools.cache
def _validator() -> Draft202012Validator:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(json.loads((DATA / "application.schema.json").read_text()))


def fault_of(data: object) -> str:
    """Return the fault of a description, "" if it is valid: parts, names without definition, endless calls."""
    if not isinstance(data, dict) or data.get("schema") != "haloscope-application":
        return 'it is not an application description ("schema" must be "haloscope-application")'
    if data.get("schema_version") != 1:
        return f"it has version {data.get('schema_version')} of the format, this program reads 1"
    needed = ("name", "form", "real", "element_bytes", "root", "functions", *_SECTIONS.values())
    absent = [key for key in dict.fromkeys(needed) if key not in data]
    if absent:
        return f"it lacks {', '.join(absent)}"
    error = next(iter(_validator().iter_errors(data)), None)
    if error is not None:
        return f"{'/'.join(map(str, error.absolute_path))}: {error.message}"[:300]
    if data["root"] not in data["functions"]:
        return f"its root: {unknown_name('function', data['root'], data['functions'])}"
    for function, items in data["functions"].items():
        fault = _fault_of_items(items, data)
        if fault:
            return f"function {function}: {fault}"
    bad = [name for name, b in data["boundaries"].items() if b.get("faces") not in FACES]
    return f"boundary {bad[0]}: faces is one of {', '.join(FACES)}" if bad else _cycle(data["functions"])


def _fault_of_items(items: Sequence, data: Mapping) -> str:
    for item in items:
        if "of" in item:
            fault = _fault_of_items(item["of"], data)
            if fault:
                return fault
        else:
            kinds = [k for k in (*CATEGORIES, "call") if k in item]
            if len(kinds) != 1:
                return f"{json.dumps(item)} is not one term; write one of {', '.join((*CATEGORIES, 'call'))} or of"
            section = _SECTIONS.get(kinds[0])
            if section and item[kinds[0]] not in data[section]:
                return unknown_name(kinds[0], item[kinds[0]], data[section])
        try:
            evaluate_times(item.get("times", 1), 1)
        except UsageError as problem:
            return str(problem)
    return ""


def _cycle(functions: Mapping) -> str:
    def calls(items: Iterable[Mapping]) -> Iterator[str]:
        for item in items:
            if "of" in item:
                yield from calls(item["of"])
            elif "call" in item:
                yield item["call"]

    waiting = {name: set(calls(items)) for name, items in functions.items()}
    while free := [name for name, needs in waiting.items() if not needs]:
        for name in free:
            del waiting[name]
        for needs in waiting.values():
            needs.difference_update(free)
    return f"functions {', '.join(sorted(waiting))} call each other without end" if waiting else ""
