"""Provenance of a study's measurements: machine, compiler, MPI library, repetitions, and standard errors."""

from __future__ import annotations

import csv
import io
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from haloscope import records
from haloscope.measure.host_mapping import HostMapping
from haloscope.model.link import Link
from haloscope.records.text import listed, machine_of, mpi_of

STEP, ITERATION = "step", "iteration"  # quantities that every record of a kind has


@dataclass(frozen=True)
class MeanTime:
    """The mean of a time over launches, with its standard error; infinite where one launch has none.

    id: of the configuration. quantity: STEP, ITERATION, or a part of it as the records name it, a mean over ranks.
    repetitions: of all launches, whose mean is the time of a launch.
    """

    id: str
    quantity: str
    launches: int
    repetitions: int
    mean_s: float
    standard_error_s: float


def sentence(found: Sequence[Mapping]) -> str:
    """Return machine, compiler, MPI library, launches and repetitions of records; "" where none was measured."""
    measured = [record for record in found if _samples(record)]
    if not measured:
        return ""
    environments = [record.get("environment", record) for record in measured]  # PETSc's former records name MPI alone
    numbers = sorted({len(_samples(record)) for record in measured})
    launches = len({_launch(record) for record in measured})
    often = f"{listed(numbers)} repetition{'s' * (numbers != [1])} of each configuration"
    parts = [_distinct(describe(one) for one in environments) for describe in PARTS]
    where = "; ".join(part for part in parts if part)
    return f"Measured on {where}; {launches} launch{'es' * (launches != 1)} with {often}."


def _distinct(texts: Iterable[str]) -> str:
    """Return the distinct texts as a list, without empty ones."""
    found = list(dict.fromkeys(filter(None, texts)))
    return listed(found) if found else ""


def _device(environment: Mapping) -> str:
    return f"device {environment['device']['name']}" if "device" in environment else ""


def _network(environment: Mapping) -> str:
    return Link(**environment["emulated_network"]).text if "emulated_network" in environment else ""


def _mapping(environment: Mapping) -> str:
    return HostMapping(**environment["mapping"]).text if "mapping" in environment else ""


def _software(environment: Mapping) -> str:
    compiler = f"{environment.get('compiler', 'not known')} {environment.get('compiler_flags', '')}".strip()
    return f"compiler {compiler}; MPI {mpi_of(environment)}"


def _launch(record: Mapping) -> str:
    """Return the launch of a record, of any kind."""
    launch = record["launch"]
    return str(launch["id"] if isinstance(launch, Mapping) else launch)


def _samples(record: Mapping) -> list[float]:
    """Return the seconds of each repetition: of a step, or of an iteration; none where the record has no times."""
    if record["kind"] == "measurement":
        return list(records.step_times(record))
    if record["kind"] == "blocks":
        warmup = record["request"]["warmup"]
        return [statistics.fmean(test[warmup:]) for test in record["iterations_s"]]
    return [seconds / record["iterations"] for seconds in record.get("solve_s", ())]


def _quantities(record: Mapping) -> dict[str, float]:
    """Return the times of a record: the whole, and its parts, means over ranks."""
    parts: dict[str, float] = {
        STEP if record["kind"] == "measurement" else ITERATION: statistics.fmean(_samples(record))
    }
    for group in ("components_s", "phases_s"):
        parts |= {f"{group[:-3]} {name}": over["mean"] for name, over in record.get(group, {}).items()}
    return parts | {f"segment {name}": seconds for name, seconds in record.get("segments_s", {}).items()}


def id_of(record: Mapping) -> str:
    """Return the name of a record's configuration, which records of conjugate gradients compose."""
    if "id" in record:
        return str(record["id"])
    return ",".join(str(record[part]) for part in ("code", "method", "form", "ranks", "side"))


def mean_times(found: Iterable[Mapping]) -> Iterator[MeanTime]:
    """Yield the mean of each time of each configuration that took any, in the order of their first measurement."""
    launches: dict[tuple[str, str], dict[str, list[float]]] = {}
    counts: dict[str, int] = {}
    for record in found:
        if samples := _samples(record):
            name = id_of(record)
            counts[name] = counts.get(name, 0) + len(samples)
            for quantity, seconds in _quantities(record).items():
                launches.setdefault((name, quantity), {}).setdefault(_launch(record), []).append(seconds)
    for (name, quantity), by_launch in launches.items():
        means = [statistics.fmean(seconds) for seconds in by_launch.values()]
        if not any(means):
            continue
        error = statistics.stdev(means) / math.sqrt(len(means)) if len(means) > 1 else math.inf
        yield MeanTime(name, quantity, len(means), counts[name], statistics.fmean(means), error)


# Parts of a sentence, of an environment.
PARTS = (machine_of, _device, _network, _mapping, _software)


def table(found: Iterable[Mapping]) -> str:
    """Return `mean_times` as comma-separated values with a line of titles."""
    text = io.StringIO()
    writer: Any = csv.DictWriter(text, list(MeanTime.__dataclass_fields__), lineterminator="\n")
    writer.writeheader()
    for one in mean_times(found):
        writer.writerow(
            asdict(one) | {"mean_s": f"{one.mean_s:.4g}", "standard_error_s": f"{one.standard_error_s:.2g}"}
        )
    return text.getvalue()
