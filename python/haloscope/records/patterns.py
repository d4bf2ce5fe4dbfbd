"""Patterns of micro-benchmarks: the keys of their samples in records, and the meanings of the keys.

`src/lab/haloscope/rank/microbench/patterns.def` has the same patterns.
"""

from __future__ import annotations

from dataclasses import dataclass

PAIRS, ONESIDED, RING, COLLECTIVE, MEMORY = "pairs", "onesided", "ring", "collective", "memory"


@dataclass(frozen=True)
class Measure:
    """One list of samples: its key in records, a heading, and the operation that one sample times.

    moved: bytes that are read or written per byte of the size; 0 for measures shown as a time, not as a bandwidth.
    """

    key: str
    words: str
    of: str
    moved: int = 0


@dataclass(frozen=True)
class Pattern:
    """One pattern by the name that `--pattern` accepts: its concurrent unit (`kind`), and its measures."""

    name: str
    kind: str
    measures: tuple[Measure, ...]


def _pattern(name: str, kind: str, *measures: Measure) -> Pattern:
    return Pattern(name, kind, measures)


ALL = (
    _pattern("pingpong", PAIRS, Measure("latency_s", "latency", "half a round trip")),
    _pattern("pingping", PAIRS, Measure("exchange_s", "both ways", "one message each way, concurrently")),
    _pattern("batch", PAIRS, Measure("batch_s", "bandwidth one way", "batches, one way", 1)),
    _pattern("batches", PAIRS, Measure("both_batch_s", "bandwidth both ways", "batches, both ways", 2)),
    _pattern(
        "put",
        ONESIDED,
        Measure("put_s", "put", "one with a flush"),
        Measure("put_batch_s", "puts", "batches with one flush", 1),
    ),
    _pattern(
        "get",
        ONESIDED,
        Measure("get_s", "get", "one with a flush"),
        Measure("get_batch_s", "gets", "batches with one flush", 1),
    ),
    _pattern(
        "exchange", RING, Measure("ring_s", "exchange with both neighbours", "concurrent messages to and from each")
    ),
    _pattern("allreduce", COLLECTIVE, Measure("allreduce_s", "allreduce", "a sum of arrays of this size")),
    _pattern("allgather", COLLECTIVE, Measure("allgather_s", "allgather", "an array of every rank to every rank")),
    _pattern(
        "stream",
        MEMORY,
        Measure("copy_s", "copy", "a = b", 2),
        Measure("scale_s", "scale", "a = q b", 2),
        Measure("add_s", "add", "a = b + c", 3),
        Measure("triad_s", "triad", "a = b + q c", 3),
    ),
    _pattern(
        "cache",
        MEMORY,
        Measure("read_s", "read", "every element", 1),
        Measure("write_s", "write", "every element", 1),
        Measure("update_s", "update", "read, modify, write", 2),
    ),
)
BY_NAME = {pattern.name: pattern for pattern in ALL}
MEASURES = {measure.key: measure for pattern in ALL for measure in pattern.measures}
KIND_OF = {measure.key: pattern.kind for pattern in ALL for measure in pattern.measures}
USUAL = ("pingpong", "pingping", "batch", "batches")
