"""Comparison of the outputs and files of two runs of a program, number by number, with positions in a grid."""

from __future__ import annotations

import itertools
import math
import os
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from haloscope import files
from haloscope.errors import UnavailableError, UsageError

NUMBER = re.compile(
    r"(?<![\w.])[-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eEdD][-+]?\d++)?|(?<!\w)[-+]?(?:nan|inf(?:inity)?)(?!\w)",
    re.IGNORECASE,
)
OUTPUT = "standard output"
INPUT_NS = 0  # time of the last change of an input file that the program has not written
UNSUPPORTED = (".h5", ".hdf5", ".he5", ".nc", ".nc4", ".cdf")
_TEXT = (".txt", ".csv")
_NPY = b"\x93NUMPY"


@dataclass(frozen=True)
class Tolerance:
    """Equal numbers differ by at most `absolute`, or `relative` times the larger magnitude; 0: not at all."""

    relative: float = 0.0
    absolute: float = 0.0

    @property
    def exact(self) -> bool:
        """Whether every digit counts."""
        return self.relative == self.absolute == 0


@dataclass(frozen=True)
class Planes:
    """The positions of differences along one axis of an array.

    runs: first and last plane of each group of neighbouring planes that hold differences; peaks: the plane of each
    group with the largest one; share: the part of the points on these planes that differs.
    """

    axis: str
    extent: int
    runs: tuple[tuple[int, int], ...]
    peaks: tuple[int, ...]
    share: float

    @property
    def count(self) -> int:
        """Number of planes that hold differences."""
        return sum(last - first + 1 for first, last in self.runs)


@dataclass(frozen=True)
class Difference:
    """The difference of one output of two runs; without `values`, it is not a difference of numbers.

    relative, absolute: the largest difference of two numbers, infinite if one of them is not finite.
    """

    where: str
    what: str
    first: str = ""
    values: tuple[str, str] | tuple[()] = ()
    relative: float = 0.0
    absolute: float = 0.0
    planes: tuple[Planes, ...] = ()


def mark_inputs(folder: Path) -> None:
    """Mark all files of a working folder as inputs of the program, until it writes them."""
    for path in folder.rglob("*"):
        if path.is_file():
            os.utime(path, ns=(INPUT_NS, INPUT_NS))


def _is_written(path: Path) -> bool:
    return path.is_file() and path.stat().st_mtime_ns != INPUT_NS


def summarize(found: Sequence[Difference]) -> str:
    """Return a short description of a run's differences; "equal" without any."""
    more = f" and {len(found) - 1} more" * (len(found) > 1)
    return f"{found[0].where}: {found[0].what}{more}" if found else "equal"


@dataclass(frozen=True)
class Rules:
    """Rules of the comparison of two runs.

    printed: standard output; files: patterns, relative to the working folder; type: NumPy's name of the type in raw
    binary files, as f8; shape: their points per dimension, x (contiguous) first; ignore: patterns of skipped lines.
    """

    printed: bool = True
    files: tuple[str, ...] = ()
    type: str | None = None
    shape: tuple[int, ...] = ()
    numbers_only: bool = False
    ignore: tuple[re.Pattern, ...] = ()
    tolerance: Tolerance = Tolerance()

    def files_in(self, folder: Path) -> list[str]:
        """Return the names of the files in a working folder that are compared."""
        found = (path for pattern in self.files for path in sorted(folder.glob(pattern)) if _is_written(path))
        return list(dict.fromkeys(str(path.relative_to(folder)) for path in found))

    def kept_lines(self, text: str) -> list[tuple[int, str]]:
        """Return the lines that count, each with its number from 1."""
        lines = enumerate(text.splitlines(), start=1)
        return [(n, line) for n, line in lines if not any(pattern.search(line) for pattern in self.ignore)]

    def is_array(self, path: Path) -> bool:
        """Return whether a file holds an array: a .npy file, or raw binary by `type`; else it is text."""
        return path.suffix == ".npy" or (self.type is not None and path.suffix not in _TEXT)


def check_base(rules: Rules, folder: Path, printed: str, ranks: str) -> None:
    """Refuse a base of comparison that holds nothing to compare.

    ranks: of the run, as text. Raises UsageError for patterns that match no file and for texts without a number,
    UnavailableError for files of an unsupported format.
    """
    if rules.printed and not _has_numbers(rules, printed):
        raise UsageError(
            f"on {ranks} the program printed no number that could be compared; name files it writes: --file PATTERN"
        )
    for pattern in rules.files:
        if not any(map(_is_written, folder.glob(pattern))):
            written = sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if _is_written(p))[:8]
            fault = f"on {ranks} the program wrote no file '{pattern}' into its working folder"
            raise UsageError(f"{fault}, but {', '.join(written) or 'none'}")
    for name in rules.files_in(folder):
        path = folder / name
        if path.suffix in UNSUPPORTED:
            refuse_format(name)
        is_array = rules.is_array(path)
        if not (_read_array(rules, path).size if is_array else _has_numbers(rules, _read_text(rules, path))):
            raise UsageError(f"{name} on {ranks} holds no number; compare another file")


def refuse_format(name: str) -> None:
    """Raise UnavailableError for a file of an unsupported format."""
    raise UnavailableError(
        f"{name}: HDF5 and NetCDF files are not read; have the program write .npy, raw binary (--type) or text as well"
    )


def compare_runs(rules: Rules, base: tuple[Path, str], other: tuple[Path, str]) -> list[Difference]:
    """Return the differences of a run from the base, one entry for each output that differs.

    base, other: working folder and standard output; `check_base` has accepted the base.
    Cost: a pass over all outputs, and several times the memory of the largest array that differs.
    """
    found = [_compare_texts(rules, OUTPUT, base[1], other[1])] if rules.printed else []
    ours, theirs = rules.files_in(base[0]), rules.files_in(other[0])
    found += [_compare_files(rules, name, base[0], other[0]) for name in ours if name in theirs]
    found += [Difference(name, "not written") for name in ours if name not in theirs]
    found += [Difference(name, "not written on the first number of ranks") for name in theirs if name not in ours]
    return [difference for difference in found if difference]


def _compare_files(rules: Rules, name: str, base: Path, other: Path) -> Difference | None:
    read: Callable[[Rules, Path], Any] = _read_array if rules.is_array(base / name) else _read_text
    ours = read(rules, base / name)
    try:
        theirs = read(rules, other / name)
    except UsageError as problem:
        return Difference(name, "cannot be read", str(problem))
    if isinstance(ours, str):
        return _compare_texts(rules, name, ours, theirs)
    return compare_arrays(name, ours, theirs, rules.tolerance)


# ---- text ------------------------------------------------------------------------------------------------------------


def _has_numbers(rules: Rules, text: str) -> bool:
    return any(NUMBER.search(line) for _, line in rules.kept_lines(text))


def _read_text(_: Rules, path: Path) -> str:
    try:
        data = files.bytes_of(path)
    except files.Unfit as fault:
        raise UsageError(f"{path.name} cannot be read: {fault}; compare another file") from None
    if b"\0" in data:
        raise UsageError(f"{path.name} is not text; specify its content, as --type f8, or write it as .npy")
    return data.decode(errors="replace")


def _compare_texts(rules: Rules, where: str, base: str, other: str) -> Difference | None:
    if base == other:
        return None
    lines = rules.kept_lines(base), rules.kept_lines(other)
    text = "" if rules.numbers_only else _first_other_text(*lines)
    ours, theirs = (list(_numbers(kept)) for kept in lines)
    pairs = [(a, b) for a, b in zip(ours, theirs, strict=False) if not _same(a[2], b[2], rules.tolerance)]
    if text or len(ours) != len(theirs):
        return Difference(where, "other text" if text else f"{len(theirs)} numbers, not {len(ours)}", text)
    if not pairs:
        return None
    (line, place, one), (_, _, two) = pairs[0]
    relative, absolute = zip(*(_sizes(_value(a[2]), _value(b[2])) for a, b in pairs), strict=True)
    count, first = f"{len(pairs)} of {len(ours)} values", f"line {line}, number {place}"
    return Difference(where, count, first, (one, two), max(relative), max(absolute))


def _numbers(lines: list[tuple[int, str]]) -> Iterator[tuple[int, int, str]]:
    """Yield each number with its line and its position in the line, both from 1."""
    for line, text in lines:
        for place, found in enumerate(NUMBER.finditer(text), start=1):
            yield line, place, found[0]


def _first_other_text(base: list[tuple[int, str]], other: list[tuple[int, str]]) -> str:
    """Return a description of the first line whose text around the numbers differs; "" without one."""
    for ours, theirs in itertools.zip_longest(base, other):
        if ours is None or theirs is None:
            line, text = ours or theirs
            return f"line {line}, '{text.strip()}', is on {'the first' if ours else 'this'} number of ranks only"
        if _around(ours[1]) != _around(theirs[1]):
            return f"line {ours[0]} is '{ours[1].strip()}', then '{theirs[1].strip()}'"
    return ""


def _around(line: str) -> list[str]:
    """Return the texts before, between and after the numbers of a line; blanks count as one."""
    return [" ".join(piece.split()) for piece in NUMBER.split(line)]


def _value(token: str) -> float:
    return float(token.lower().replace("d", "e"))


def _same(one: str, two: str, tolerance: Tolerance) -> bool:
    if one == two or tolerance.exact:
        return one == two
    a, b = _value(one), _value(two)
    near = math.isclose(a, b, rel_tol=tolerance.relative, abs_tol=tolerance.absolute)
    return near or (math.isnan(a) and math.isnan(b))


def _sizes(a: float, b: float) -> tuple[float, float]:
    """Return the relative and the absolute difference of two numbers."""
    if not (math.isfinite(a) and math.isfinite(b)):
        return math.inf, math.inf
    return (abs(a - b) / max(abs(a), abs(b)) if a != b else 0.0), abs(a - b)


# ---- arrays ----------------------------------------------------------------------------------------------------------


def _read_array(rules: Rules, path: Path) -> np.ndarray:
    try:
        if path.suffix == ".npy":
            array = _mapped(path)
        else:
            number = np.dtype(rules.type)
            if rest := path.stat().st_size % number.itemsize:
                raise ValueError(f"after the last number of {number.itemsize} bytes, {rest} are left")
            array = np.fromfile(path, number)
            array = array.reshape(rules.shape[::-1]) if rules.shape else array
    except (ValueError, EOFError) as error:
        shape = f" and --shape {'x'.join(map(str, rules.shape))}" if rules.shape else ""
        form = "as .npy" if path.suffix == ".npy" else f"with --type {rules.type}{shape}"
        raise UsageError(f"{path.name} cannot be read {form}: {error}") from None
    if array.dtype.kind not in "biufc":
        raise UsageError(f"{path.name} holds {array.dtype}, not numbers; write an array of numbers for each quantity")
    return array


def _mapped(path: Path) -> np.ndarray:
    """Return the array of a .npy file, which is not read before it is used. Raises ValueError for any other file."""
    if not files.beginning_of(path, len(_NPY)).startswith(_NPY):
        raise ValueError("it does not begin as such a file")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about headers that Python 2 could have written
            array: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
            return array
    except (OSError, MemoryError, ValueError):
        raise
    except Exception as error:  # NumPy parses the header as Python, with all errors of that
        raise ValueError(f"its header is damaged ({error})") from None


def compare_arrays(where: str, base: np.ndarray, other: np.ndarray, tolerance: Tolerance) -> Difference | None:
    """Return the difference of two arrays of numbers, None if equal. 0 and -0 differ by default; a NaN equals a NaN."""
    if base.shape != other.shape or base.dtype != other.dtype:
        return Difference(where, f"{_form(other)}, not {_form(base)}")
    differs = _differing(base, other, tolerance)
    if not differs.any():
        return None
    with np.errstate(all="ignore"):
        ours, theirs = (a[differs].astype(complex if a.dtype.kind == "c" else float) for a in (base, other))
        size = np.abs(ours - theirs)
        relative = np.where(size == 0, 0, size / np.maximum(np.abs(ours), np.abs(theirs)))
    size, relative = (np.where(np.isfinite(s), s, np.inf) for s in (size, relative))
    index, axes = tuple(int(i[0]) for i in np.nonzero(differs)), _axes(base)
    count, values = f"{len(size)} of {differs.size} values", (str(base[index]), str(other[index]))
    largest = float(relative.max()), float(size.max())
    return Difference(where, count, _place(index, axes), values, *largest, _planes(differs, size, axes))


def _form(array: np.ndarray) -> str:
    return f"{array.dtype} of shape {array.shape}"


def _differing(base: np.ndarray, other: np.ndarray, tolerance: Tolerance) -> np.ndarray:
    if base.dtype.kind == "c":
        parts = (_differing(getattr(base, part), getattr(other, part), tolerance) for part in ("real", "imag"))
        either: np.ndarray = np.logical_or(*parts)
        return either
    unequal: np.ndarray = base != other
    if base.dtype.kind == "f":
        unequal |= np.signbit(base) != np.signbit(other) if tolerance.exact else False
        unequal &= ~(np.isnan(base) & np.isnan(other))
    if not tolerance.exact and unequal.any():
        with np.errstate(all="ignore"):
            a, b = base[unequal].astype(float), other[unequal].astype(float)
            allowed = np.maximum(tolerance.absolute, tolerance.relative * np.maximum(np.abs(a), np.abs(b)))
            near = np.isfinite(a) & np.isfinite(b) & (np.abs(a - b) <= allowed)
        unequal[unequal] = ~near
    return unequal


def _axes(array: np.ndarray) -> list[str]:
    """Return the names of an array's axes: x for the contiguous one, or plain numbers for more than three."""
    if array.ndim > 3:
        return [f"axis {axis}" for axis in range(array.ndim)]
    names = list("xyz"[: array.ndim])
    return names if array.flags.f_contiguous and not array.flags.c_contiguous else names[::-1]


def _place(index: tuple[int, ...], axes: list[str]) -> str:
    named = ", ".join(f"{axis} = {i}" for axis, i in sorted(zip(axes, index, strict=True)))
    return f"[{', '.join(map(str, index))}]" + (f" ({named})" if len(axes) > 1 else "")


def _planes(differs: np.ndarray, size: np.ndarray, axes: list[str]) -> tuple[Planes, ...]:
    """Return the positions of differences along each axis, x first; size: of the points that differ."""
    points = np.nonzero(differs)
    found = []
    for axis, name in enumerate(axes):
        largest = np.full(differs.shape[axis], -1.0)
        np.maximum.at(largest, points[axis], size)
        planes = np.flatnonzero(largest >= 0)
        groups = np.split(planes, np.flatnonzero(np.diff(planes) > 1) + 1)
        share = len(size) / (len(planes) * (differs.size // differs.shape[axis]))
        runs = tuple((int(group[0]), int(group[-1])) for group in groups)
        peaks = tuple(int(group[largest[group].argmax()]) for group in groups)
        found.append(Planes(name, differs.shape[axis], runs, peaks, share))
    return tuple(sorted(found, key=lambda planes: planes.axis))


# ---- blocks ----------------------------------------------------------------------------------------------------------


def find_cuts(planes: Planes, ranks: int) -> tuple[int, tuple[int, ...]]:
    """Return the smallest number of even blocks whose borders explain the positions of differences, and these borders.

    A border is the cell at which two blocks meet. A process grid of `ranks` can have this number of blocks along the
    axis. Each group of planes has its largest difference right next to a border, or at an edge of the array. Returns
    (0, ()) if no number of blocks explains the differences, or if they are everywhere.
    """
    from haloscope import bridge

    if planes.count == planes.extent:
        return 0, ()
    for blocks in range(2, min(ranks, planes.extent) + 1):
        if ranks % blocks == 0:
            layout = bridge.Layout((planes.extent,), (blocks,))
            borders = [layout.owned(rank).lo[0] for rank in range(1, blocks)]
            if cuts := _explaining(planes, borders):
                return blocks, cuts
    return 0, ()


def _explaining(planes: Planes, borders: Sequence[int]) -> tuple[int, ...]:
    """Return the borders next to which differences lie; () if some lie elsewhere."""
    beside = {peak: border for border in borders for peak in (border - 1, border)}
    edges = (0, planes.extent - 1)
    if any(peak not in beside and peak not in edges for peak in planes.peaks):
        return ()
    return tuple(sorted({beside[peak] for peak in planes.peaks if peak in beside}))
