"""Options of `haloscope check`: numbers of ranks, rules of comparison, folders."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from haloscope.errors import UsageError
from haloscope.measure import launch, lists
from haloscope.records import differences

MOST_RANKS = 1024


def counts_of(ranks: str) -> list[int]:
    """Return the numbers of ranks of a list. Raises UsageError for too many ranks, and for fewer than two numbers."""
    counts = lists.numbers(ranks, "--ranks")
    for count in counts:
        launch.require_ranks(count)
        if count > MOST_RANKS:
            raise UsageError(f"--ranks {count} is more than the {MOST_RANKS} that a check starts; fewer show the same")
    if len(counts) < 2:
        raise UsageError(f"--ranks {ranks} is one number of ranks; give two or more to compare, as 1,2,3")
    return counts


def rules_of(options: Mapping[str, Any]) -> differences.Rules:
    """Return the rules of comparison of options. Raises UsageError, UnavailableError for impossible ones."""
    shape = options["shape"] or ""
    shapes = lists.shapes(shape, 1, "--shape") if shape else [()]
    if len(shapes) != 1 or any(points < 1 for points in shapes[0]):
        raise UsageError(f"--shape {shape} is not one shape; write up to three numbers as 64x64x32")
    if shape and not options["type"]:
        raise UsageError("--shape is for raw binary files; specify their type, as --type f8")
    if not options["files"]:
        for name in ("type", "printed"):
            if options[name]:
                raise UsageError(f"--{name} goes with --file; name the files, as --file 'u*.dat'")
    for pattern in options["files"]:
        _refuse_pattern(pattern)
        if pattern.endswith(differences.UNSUPPORTED):
            differences.refuse_format(pattern)
    tolerance = differences.Tolerance(options["relative"], options["absolute"])
    return differences.Rules(
        options["printed"] or not options["files"],
        options["files"],
        options["type"],
        shapes[0],
        options["numbers_only"],
        tuple(map(_pattern, options["ignore"])),
        tolerance,
    )


def _refuse_pattern(pattern: str) -> None:
    path = Path(pattern)
    if not path.parts or path.is_absolute() or ".." in path.parts or any("**" in p and p != "**" for p in path.parts):
        raise UsageError(f"--file '{pattern}' is not a pattern below the working folder; write it as 'out/u*.npy'")


def _pattern(text: str) -> re.Pattern:
    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError(f"--ignore '{text}' is not a regular expression: {error}") from None


def refuse_inputs(inputs: Sequence[Path], keep: Path | None) -> None:
    """Raise UsageError for an input that cannot be copied into each working folder, or that contains `keep`."""
    for path in inputs:
        if not (path.is_file() or path.is_dir()) or not path.resolve().name:
            raise UsageError(f"--input {path} does not exist; pass a file or folder")
        if keep and keep.resolve().is_relative_to(path.resolve()):
            fault = f"--keep {keep} lies in --input {path}, which would be copied into itself"
            raise UsageError(f"{fault}; keep it elsewhere")


def prepare_folder(folder: Path) -> Path:
    """Make and return the folder that keeps all files of a check. Raises UsageError for a folder that is not empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"--keep {folder} exists and is not an empty folder; name a new one")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
