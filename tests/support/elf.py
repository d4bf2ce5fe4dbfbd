"""Reads the run paths of binaries."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from programs import run


def files_of(folder: Path) -> Iterator[Path]:
    """Yield the programs and shared libraries in a folder and below."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.suffix != ".o":
            with path.open("rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def run_path(file: Path) -> list[str]:
    """Return the entries of a binary's run path."""
    found = re.search(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", run("readelf", "-dW", file))
    return found[1].split(":") if found else []


def fault(file: Path, entry: str) -> str:
    """Return why an entry lets others put a library there, "" where it does not."""
    if not entry:
        return "it is empty: the current folder"
    if not entry.startswith(("/", "$ORIGIN/")) and entry != "$ORIGIN":
        return "it is relative: to the current folder"
    place = Path(entry.replace("$ORIGIN", str(file.parent))).resolve()
    there = next(parent for parent in (place, *place.parents) if parent.exists())
    return f"anyone may write into {there}" if there.stat().st_mode & 0o002 else ""


def faults_of(folder: Path) -> list[str]:
    """Return the faults of all run paths in a folder; raises AssertionError where it has no binaries."""
    binaries = list(files_of(folder))
    assert binaries, folder
    return [f"{file}: '{entry}': {why}" for file in binaries for entry in run_path(file) if (why := fault(file, entry))]
