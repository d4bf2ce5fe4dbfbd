"""Outputs of other micro-benchmarks (IMB, OSU, SKaMPI, STREAM), read as records. Their text determines their format."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from haloscope import files, records, terminal
from haloscope.errors import UsageError
from haloscope.measure.importers import imb, osu, skampi, stream
from haloscope.measure.importers.text import Output, Sample
from haloscope.records.curves import MICROBENCH

MOST_BYTES, MOST_LINE = 64 << 20, 64 << 10  # of an output, and characters of one of its lines
UNKNOWN = {"oversubscribed": False, "compiler": "not known", "mpi_library": "not known"}
FORMATS = (imb, osu, skampi, stream)  # each has NAME, HOLDS, recognise(text) and parse(text)


@dataclass(frozen=True)
class Imported:
    """The records of one text. notes: its skipped parts, with reasons."""

    records: list[dict]
    notes: tuple[str, ...]


def read(file: Path) -> Imported:
    """Return the records of a file: one per number of ranks, pairs or threads, with all measurements of it.

    Raises UsageError for a file that cannot be read or has longer lines than an output, for text of an unknown program,
    for text without a supported benchmark, and for a table that has other values than numbers.
    """
    text = _text_of(file)
    known = next((form for form in FORMATS if form.recognise(text)), None)
    understood = "; ".join(f"{form.NAME}: {form.HOLDS}" for form in FORMATS)
    if known is None:
        raise UsageError(f"{file} is not the output of a supported benchmark ({understood})")
    try:
        output = known.parse(text)
    except ValueError as error:
        raise UsageError(f"{file}: {error}; give the whole, unchanged output of {known.NAME}") from None
    if not output.samples:
        why = "; ".join(output.notes) or "it has no table"
        raise UsageError(f"{file} holds no supported benchmark of {known.NAME} ({known.HOLDS}): {why}")
    made = _records(output, known.NAME, text)
    for record in made:
        if fault := records.fault_of(record):
            raise UsageError(f"{file} holds values that no benchmark measures ({fault}); give the unchanged output")
    return Imported(made, output.notes)


def import_files(paths: Sequence[Path], output: Path) -> list[dict]:
    """Return the records of some files, added to a record file; skipped parts are printed.

    Raises UsageError as `read` does, and for an output file that holds other content than records.
    """
    found = []
    for file in paths:
        made = read(file)
        for note in made.notes:
            terminal.say(f"{file}: {note}")
        found += made.records
    records.refuse_foreign(output)
    records.prepare(output)
    records.append(output, found)
    return found


def _text_of(file: Path) -> str:
    text = files.text_of(file, "the output", "give the output of a benchmark as a file", MOST_BYTES)
    for number, line in enumerate(text.splitlines(), start=1):
        if len(line) > MOST_LINE:
            raise UsageError(f"{file}, line {number} has more than {MOST_LINE} characters; give the unchanged output")
    return text


def _records(output: Output, name: str, text: str) -> list[dict]:
    groups: dict[tuple, list[Sample]] = defaultdict(list)
    for sample in output.samples:
        groups[sample.group].append(sample)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]  # two files are two micro-benchmarks
    return [_record(output, name, digest, samples) for samples in groups.values()]


def _record(output: Output, name: str, digest: str, samples: list[Sample]) -> dict:
    sizes: dict[int, dict] = defaultdict(dict)
    for sample in samples:
        sizes[sample.bytes].setdefault(sample.key, []).append(sample.seconds)
    first = samples[0]
    who = [f"r{first.ranks}", f"groups{first.groups}"] if not first.threads else [f"t{first.threads}"]
    request: dict = {"patterns": list(dict.fromkeys(s.pattern for s in samples)), "ranks": first.ranks}
    if first.threads:
        request["threads"] = first.threads
    else:
        request |= {"transport": name, "pairs": first.groups, "nodes": 0}
    return {
        "schema": "haloscope.record",
        "schema_version": records.SCHEMA_VERSION,
        "kind": MICROBENCH,
        "id": ",".join([MICROBENCH, name, digest, first.pattern if first.threads or first.apart else "messages", *who]),
        "launch": {"id": f"import-{digest}"},
        "request": request,
        "environment": UNKNOWN | {"program": output.program},
        "sizes": [{"bytes": size} | found for size, found in sorted(sizes.items())],
        "verification": {"status": output.verification},
    }
