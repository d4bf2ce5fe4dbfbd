"""Record files: JSON Lines, a record per configuration and launch. Reading survives damage, writing merges no lines."""

from __future__ import annotations

import contextlib
import io
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from haloscope import files, schemas
from haloscope.data import DATA
from haloscope.errors import HaloscopeError, UsageError
from haloscope.terminal import say

MEASURED = ("measurement", "microbench", "calibration", "blocks", "pace")  # kinds of record that hold times
STUDY = "study"  # kind of record that holds the options of a study, by which its records were planned
SCHEMA_VERSION = 2
MOST_NAMED = 20  # bad lines of a file whose faults are stored
MOST_BEFORE = 1000  # bad lines before the first record of a file
SCHEMA_FILE = DATA / "record.schema.json"


# Kinds of lines in the schema: a record, or a separate definition.
RECORD, CG = "", "cg"
NAMES = {RECORD: f"haloscope.record of version {SCHEMA_VERSION}", CG: "record of conjugate gradients"}


class Requested(Protocol):
    """A request of any kind, as its record holds it."""

    @property
    def id(self) -> str:
        """Its readable name."""

    def request(self) -> Mapping[str, Any]:
        """Return the request as its record holds it."""


def _fault_of_measurement(record: dict) -> str:
    """Return the fault of a parameter, or the mismatch of steps and repetitions; "" without one."""
    for name, value in record["request"].get("set", {}).items():
        if not all(
            isinstance(one, bool | int | float | str) for one in (value if isinstance(value, list) else [value])
        ):
            return f"request/set/{name}: not a number, a text or a list of them"
    steps, times = record.get("outcome", {}).get("steps"), record["time_s"]["repetitions"]
    return f"outcome/steps: {len(steps)} of {len(times)} repetitions" if steps and len(steps) != len(times) else ""


def _fault_of_solve(record: dict) -> str:
    """Return the fault of a function of a solver that is called less than once per solve; "" without one."""
    solves = len(record["solve_s"])
    for name, function in record.get("functions", {}).items():
        for called in (function, function.get("allreduce", function)):
            if called["calls"] < solves:
                return f"functions/{name}: {called['calls']} calls in {solves} solves"
    return ""


def _fault_of_blocks(record: dict) -> str:
    """Return the mismatch of a blocks record: of iterations of a test, or of times by block; "" without one."""
    request = record["request"]
    whole, count = request["warmup"] + request["iterations"], request["sides"] * len(request["bytes"])
    for test in record["iterations_s"]:
        if len(test) != whole:
            warmup = f", of which {request['warmup']} warm up" * (len(test) <= request["warmup"])
            return f"iterations_s: {len(test)} iterations of a test{warmup}, of {whole} requested"
        if not any(test[request["warmup"] :]):
            return "iterations_s: a test without time"
    for name, seconds in record.get("blocks", {}).items():
        if len(seconds) != count:
            return f"blocks/{name}: {len(seconds)} times of {count} blocks"
    return ""


# Checks that the schema cannot express, by kind.
_FAULTS: dict[str, Callable[[dict], str]] = {
    "measurement": _fault_of_measurement,
    "blocks": _fault_of_blocks,
    "cg-solve": _fault_of_solve,
}


def fault_of(record: Any, schema: str = RECORD) -> str:
    """Return the first fault of a record, by the published schema or by parts that do not fit; "" without one.

    schema: RECORD or CG.
    """
    fault = schemas.fault_of(record, SCHEMA_FILE, schema)
    find = _FAULTS.get(record["kind"]) if not fault else None
    return find(record) if find else fault


@dataclass
class RecordFile:
    """The good records of one file, its number of bad lines, and the numbers (from 1) and faults of the first ones.

    studies: the options of studies whose records the file holds, which are not among `records`.
    """

    path: Path
    records: list[dict] = field(default_factory=list)
    studies: list[dict] = field(default_factory=list)
    bad_lines: list[tuple[int, str]] = field(default_factory=list)
    bad: int = 0

    @property
    def measurements(self) -> list[dict]:
        """The records that hold times."""
        return [r for r in self.records if r["kind"] == "measurement"]

    def complaints(self) -> list[str]:
        """Return messages for the user: one per bad line whose fault is stored, and one for all other bad lines."""
        lines = [f"{self.path}, line {number}: {reason}; the line is left out" for number, reason in self.bad_lines]
        more = self.bad - len(self.bad_lines)
        return lines + [f"{self.path}: {more} more bad lines are left out"] * bool(more)

    def note_bad(self, number: int, reason: str) -> None:
        """Count a bad line. Raises UsageError where too many come before the first record."""
        self.bad += 1
        if self.bad <= MOST_NAMED:
            self.bad_lines.append((number, reason))
        if not self.records and self.bad == MOST_BEFORE:
            first, fault = self.bad_lines[0]
            raise UsageError(
                f"{self.path} is not a record file: none of its first {MOST_BEFORE} lines is a record (line {first}: "
                f"{fault}); give a file that haloscope wrote"
            )


def parse_line(line: str, schema: str = RECORD) -> dict:
    """Parse and check one line. schema: RECORD or CG. Raises ValueError with the reason."""
    try:
        record: dict = files.json_of(line)
    except ValueError as error:
        raise ValueError(f"not complete JSON ({error})") from None
    if fault := fault_of(record, schema):
        raise ValueError(f"not a {NAMES[schema]} ({fault})")
    return record


def read(path: str | Path, schema: str = RECORD) -> RecordFile:
    """Read a record file; good lines are returned, bad lines counted, the first of them with their numbers and faults.

    path: JSON Lines, or the same compressed (.xz). schema: RECORD or CG. Raises UsageError if unreadable, or if it
    begins with bad lines alone.
    """
    path = Path(path)
    result = RecordFile(path)
    for number, line in enumerate(io.StringIO(_text_of(path), newline="\n"), start=1):
        try:
            if line.strip():
                record = parse_line(line, schema)
                (result.studies if record["kind"] == STUDY else result.records).append(record)
        except ValueError as error:
            result.note_bad(number, str(error))
    return result


def read_aloud(path: str | Path, schema: str = RECORD) -> RecordFile:
    """Read a record file as `read` does, and report its bad lines on the error output."""
    found = read(path, schema)
    for complaint in found.complaints():
        say(complaint)
    return found


def read_together(paths: Sequence[str]) -> list[dict]:
    """Return the records of some files, with distinct launches; bad lines are reported on the error output.

    Raises UsageError for a file that cannot be read, and if none of them holds a record.
    """
    found = []
    for number, path in enumerate(dict.fromkeys(paths), 1):
        for record in read_aloud(path).records:
            launch = record.get("launch", {"id": ""})
            found.append({**record, "launch": {**launch, "id": f"{number}/{launch['id']}"}})
    if not found:
        raise UsageError(f"no records in {', '.join(paths)}; give files that `haloscope run` wrote")
    return found


def _text_of(path: Path) -> str:
    return files.text_of(path, "the record file", "give the path of a .jsonl file")


def scratch(name: str) -> Path:
    """Return the default record file of a run: results/scratch/NAME-TIME.jsonl."""
    return Path("results/scratch") / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}.jsonl"


def prepare(path: Path) -> None:
    """Make a file ready to be appended to: create its folder, end a line that a killed run left unfinished.

    Raises HaloscopeError if that cannot be done, before any time is spent on measuring. A pipe is not
    opened: that would wait for its reader.
    """
    files.refuse_additions(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab+") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    file.write(b"\n")
    except OSError as error:
        raise HaloscopeError(
            f"cannot write records to {path}: {error.strerror}; choose another file with --output"
        ) from None


def refuse_foreign(path: Path) -> None:
    """Raise UsageError if a file to add records to holds other content, is compressed or not a regular file.

    An empty file, or half a record, is accepted: a killed run may leave it behind.
    """
    files.refuse_additions(path)
    text = _text_of(path) if path.is_file() else ""
    unfinished = text.startswith('{"') and "\n" not in text
    if text.strip() and not unfinished and not any(map(_is_record, text.split("\n"))):
        raise UsageError(f"{path} holds no records, and records would be added to it; give --output another file")


def _is_record(line: str) -> bool:
    try:
        parse_line(line)
    except ValueError:
        return False
    return True


def append(path: Path, records: Iterable[dict]) -> None:
    """Append records as lines and flush them. Raises HaloscopeError if space or permission is missing."""
    _write(path, "".join(json.dumps(record) + "\n" for record in records))


def try_to_write(path: Path) -> None:
    """Write an empty line, which readers skip. Raises HaloscopeError if space or permission is missing."""
    _write(path, "\n")


def _write(path: Path, text: str) -> None:
    files.refuse_additions(path)
    try:
        with path.open("a") as file:
            file.write(text)
    except OSError as error:
        raise HaloscopeError(
            f"cannot write records to {path}: {error.strerror}; free some space or choose another file with --output"
        ) from None


def skipped(request: Requested, reason: str, exit_code: int, launch_id: str) -> dict:
    """Return the record of a request that was not run, with the reason."""
    return _about(request, "skipped", launch_id) | {"reason": reason, "exit_code": exit_code}


def failed(request: Requested, fault: Any, launch_id: str) -> dict:
    """Return the record of a request during which a rank failed, died or got stuck; `fault` is a faults.Fault."""
    parts = ("reason", "rank", "phase", "step", "waiting_for")
    return _about(request, "failed", launch_id) | {part: getattr(fault, part) for part in parts}


def of_study(name: str, options: Mapping[str, Any]) -> dict:
    """Return the record of the options of a study."""
    return {
        "schema": "haloscope.record",
        "schema_version": SCHEMA_VERSION,
        "kind": STUDY,
        "id": name,
        "options": dict(options),
    }


def _about(request: Requested, kind: str, launch_id: str) -> dict:
    return {
        "schema": "haloscope.record",
        "schema_version": SCHEMA_VERSION,
        "kind": kind,
        "id": request.id,
        "launch": {"id": launch_id},
        "request": request.request(),
    }


def done(records: Iterable[dict]) -> set[tuple[str, str]]:
    """Return the pairs (launch id, request id) that need not run again: measured, or known to be impossible."""
    return {(r.get("launch", {}).get("id", ""), r["id"]) for r in records if r["kind"] in ("skipped", *MEASURED)}


def hosts_of(record: Mapping) -> list[str]:
    """Return the names of the hosts that a record's ranks ran on, sorted; none in records without them."""
    return sorted(set(record["environment"].get("hosts", ())))


def step_times(record: Mapping) -> list[float]:
    """Return the seconds per time step of each repetition of a measurement."""
    times = record["time_s"]["repetitions"]
    # A run that ends early may take a few more steps in one repetition than in another.
    steps = record.get("outcome", {}).get("steps") or [record["request"]["steps"]] * len(times)
    return [seconds / count for seconds, count in zip(times, steps, strict=True)]


class Tail:
    """Reads the records that another process appends to a file, complete lines only."""

    def __init__(self, path: Path):
        """Start at the file's present end."""
        self._path = path
        self._offset = path.stat().st_size if path.is_file() else 0

    def new(self) -> list[dict]:
        """Return the records completed since the last call; damaged lines are left to `read` to report."""
        if not self._path.is_file():
            return []
        with self._path.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        complete = data[: data.rfind(b"\n") + 1]
        self._offset += len(complete)
        found = []
        for line in complete.splitlines():
            with contextlib.suppress(ValueError):
                found.append(files.json_of(line.decode(errors="replace")))
        return found
