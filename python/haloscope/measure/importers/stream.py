"""STREAM 5: the best rate of copy, scale, add and triad, by STREAM's count of bytes."""

from __future__ import annotations

import math
import re

from haloscope.measure.importers.text import Output, Sample, number, whole
from haloscope.records import patterns

NAME = "STREAM"
HOLDS = "Copy, Scale, Add, Triad"

_ROW = re.compile(r"^(Copy|Scale|Add|Triad):\s++(\S+)")
_VERSION = re.compile(r"STREAM version\D{0,80}+([\d.]+)")
_ELEMENT = re.compile(r"uses (\d+) bytes per")
_LENGTH = re.compile(r"Array size = (\d+)")
_THREADS = re.compile(r"Number of Threads (counted|requested) = (\d+)")


def recognise(text: str) -> bool:
    """Return whether a text is the output of STREAM."""
    return "STREAM version" in text and "Function" in text


def parse(text: str) -> Output:
    """Return the times of one pass at the best rate. Raises ValueError where rates or the arrays' size are missing."""
    lengths, elements, rows = (_found(pattern, text) for pattern in (_LENGTH, _ELEMENT, _ROW))
    if not (lengths and elements and rows):
        raise ValueError("the size of the arrays or the table of rates is missing")
    # A build without OpenMP prints neither kind.
    threads = {found[1]: whole(found[2], line) for found, line in _found(_THREADS, text)}
    size = math.prod(whole(found[1], line) for found, line in (lengths[0], elements[0]))
    version = _VERSION.search(text)
    output = Output(f"STREAM {version[1]}" if version else "STREAM", verification=_verification(text))
    for row, line in rows:
        key = f"{row[1].lower()}_s"
        rate = number(row[2], line) * 1e6
        if rate <= 0:
            raise ValueError(f"the rate of {row[1]} is 0")
        seconds = size * patterns.MEASURES[key].moved / rate
        output.samples.append(Sample(key, size, seconds, threads=threads.get("counted", threads.get("requested", 1))))
    return output


def _found(pattern: re.Pattern[str], text: str) -> list[tuple[re.Match[str], int]]:
    """Return the first match of a pattern in each line that has one, with the numbers of the lines."""
    matches = ((pattern.search(line), number) for number, line in enumerate(text.splitlines(), start=1))
    return [(match, number) for match, number in matches if match]


def _verification(text: str) -> str:
    return "passed" if "Solution Validates" in text else "failed" if "Failed Validation" in text else "off"
