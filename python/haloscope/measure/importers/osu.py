"""OSU Micro-Benchmarks 5 to 7: tables of microseconds or of MB/s (10^6 bytes) by message size, between two ranks.

A table begins with `# OSU MPI NAME Test vVERSION`, then a line of column names; the second column counts. A bandwidth
is that of many messages in flight, one way or both. Tables of collectives do not have the number of their ranks. Of
one-sided operations, those that a flush completes are read.
"""

from __future__ import annotations

import re

from haloscope.measure.importers.text import Output, Sample, number, seconds_of, whole

NAME = "OSU"
HOLDS = "osu_latency, osu_bw, osu_bibw, osu_put_latency, osu_put_bw, osu_get_latency, osu_get_bw"
LATENCY = {"Latency": "latency_s", "Put Latency": "put_s", "Get latency": "get_s"}
BANDWIDTH = {
    "Bandwidth": ("batch_s", 1),
    "Bi-Directional Bandwidth": ("both_batch_s", 2),
    "Put Bandwidth": ("put_batch_s", 1),
    "Get Bandwidth": ("get_batch_s", 1),
}  # keys, and directions that count

_TITLE = re.compile(r"^#\s*+OSU MPI(?P<device>-\w+)?[ _](?P<name>[^\n]*?) Test v(?P<version>\S+)")
_OTHER_SYNCHRONISATION = re.compile(r"^#\s*+Synchronization: (?!MPI_Win_flush\s*$)")


def recognise(text: str) -> bool:
    """Return whether a text is the output of an OSU benchmark of MPI."""
    return any(_TITLE.match(line) for line in text.splitlines())


def parse(text: str) -> Output:
    """Return the times of all benchmarks in HOLDS. Raises ValueError for a damaged table."""
    output = Output("OSU")
    name, about, left_out, without = "", "", dict[str, None](), 0
    for count, line in enumerate(text.splitlines(), start=1):
        if title := _TITLE.match(line):
            output.program = f"OSU {title['version']}"
            name, about = title["name"] if not title["device"] else "", line.strip("# ").partition(" Test")[0]
            if name not in LATENCY and name not in BANDWIDTH:
                name, left_out = "", left_out | {about: None}
        elif name and _OTHER_SYNCHRONISATION.match(line):
            name, left_out = "", left_out | {f"{about} by {line.partition(':')[2].strip()}": None}
        elif name and line.strip() and not line.startswith("#"):
            sample = _sample(name, line.split(), count)
            without += sample is None
            output.samples += [sample] if sample else []
    output.notes = (f"left out: {', '.join(left_out)}",) if left_out else ()
    output.notes += (f"{without} sizes without a bandwidth",) if without else ()
    return output


def _sample(name: str, words: list[str], count: int) -> Sample | None:
    """Return the time of a row; None for a bandwidth of 0.00."""
    if len(words) < 2:
        raise ValueError(f"line {count} is cut off")
    size, value = whole(words[0], count), number(words[1], count)
    if name in LATENCY:
        return Sample(LATENCY[name], size, seconds_of(value), 2)
    key, ways = BANDWIDTH[name]
    return Sample(key, size, ways * size / (value * 1e6), 2) if value > 0 and size > 0 else None
