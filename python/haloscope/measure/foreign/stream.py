"""STREAM 5: the best rate of copy, scale, add and triad, by its own count of bytes."""

from __future__ import annotations

import re

from haloscope.measure.foreign.text import Output, Sample, number, whole
from haloscope.report import patterns

NAME = "STREAM"
HOLDS = "Copy, Scale, Add, Triad"

_ROW = re.compile(r"^(Copy|Scale|Add|Triad):\s+(\S+)", re.MULTILINE)
_VERSION = re.compile(r"STREAM version\D*([\d.]+)")
_ELEMENT = re.compile(r"uses (\d+) bytes per")
_LENGTH = re.compile(r"Array size = (\d+)")
_THREADS = re.compile(r"Number of Threads (counted|requested) = (\d+)")


def recognise(text: str) -> bool:
    """Whether a text is the output of STREAM."""
    return "STREAM version" in text and "Function" in text


def parse(text: str) -> Output:
    """Return the times of one pass at the best rate. Raises ValueError where rates or the arrays' size are missing."""
    version, length, element = _VERSION.search(text), _LENGTH.search(text), _ELEMENT.search(text)
    rows = list(_ROW.finditer(text))
    if not (length and element and rows):
        raise ValueError("the size of the arrays or the table of rates is missing")
    # Neither kind is in a build without OpenMP.
    threads = {found[1]: whole(found[2], _line(text, found)) for found in _THREADS.finditer(text)}
    size = whole(length[1], _line(text, length)) * whole(element[1], _line(text, element))
    output = Output(f"STREAM {version[1]}" if version else "STREAM", verification=_verification(text))
    for row in rows:
        key = f"{row[1].lower()}_s"
        rate = number(row[2], _line(text, row)) * 1e6
        if rate <= 0:
            raise ValueError(f"the rate of {row[1]} is 0")
        seconds = size * patterns.MEASURES[key].moved / rate
        output.samples.append(Sample(key, size, seconds, threads=threads.get("counted", threads.get("requested", 1))))
    return output


def _line(text: str, found: re.Match[str]) -> int:
    return text.count("\n", 0, found.start()) + 1


def _verification(text: str) -> str:
    return "passed" if "Solution Validates" in text else "failed" if "Failed Validation" in text else "off"
