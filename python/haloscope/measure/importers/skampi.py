"""SKaMPI 5: lines of microseconds between `begin result "NAME"` and `end result`.

A line has its parameters (`count= 4096`), the bytes of a message, the time, its standard error, the number of
measurements, and the time of every process. A ping-pong's time is that of the whole round trip and is halved here.
"""

from __future__ import annotations

import re

from haloscope.measure.importers.text import Output, Sample, number

NAME = "SKaMPI"
HOLDS = "Pingpong_..., MPI_Allreduce"
PARTS = {"latency_s": 0.5, "allreduce_s": 1.0}  # of the time that is printed

_BEGIN = re.compile(r'^#?[ \t]*+begin result[ \t]++"([^"\n]+)"', re.MULTILINE)
_END = re.compile(r"^#?[ \t]*+end result")
_VERSION = re.compile(r"SKaMPI Version ([\w.]+)")
_PARAMETER = re.compile(r"\b\w++=\s*+\S+")


def recognise(text: str) -> bool:
    """Return whether a text is the output of SKaMPI."""
    return bool(_BEGIN.search(text))


def parse(text: str) -> Output:
    """Return the times of all results in HOLDS. Raises ValueError for a damaged line."""
    version = _VERSION.search(text)
    output = Output(f"SKaMPI {version[1]}" if version else "SKaMPI")
    key, inside = "", False
    left_out: dict[str, None] = {}
    for count, line in enumerate(text.splitlines(), start=1):
        if begin := _BEGIN.match(line):
            key, inside = _key(begin[1]), True
            left_out |= {} if key else {begin[1]: None}
        elif _END.match(line):
            inside = False
        elif inside and key and line.strip() and not line.startswith("#"):
            output.samples.append(_sample(key, line, count))
    output.notes = (f"left out: {', '.join(left_out)}",) if left_out else ()
    return output


def _key(name: str) -> str:
    if name.startswith("Pingpong_"):
        return "latency_s"
    return "allreduce_s" if re.match(r"MPI_Allreduce\b", name) else ""


def _sample(key: str, line: str, count: int) -> Sample:
    values = [number(word, count) for word in _PARAMETER.sub("", line).split()]
    if len(values) < 6:  # bytes, time, error, measurements, and the times of two processes or more
        raise ValueError(f"line {count} is cut off")
    size, us, _, _, *processes = values
    return Sample(key, int(size), us * PARTS[key] / 1e6, len(processes))
