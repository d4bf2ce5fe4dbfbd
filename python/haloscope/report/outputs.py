"""Files that a command was told to write: none takes the place of a file that Haloscope did not write."""

from __future__ import annotations

import re
from pathlib import Path

from haloscope.errors import HaloscopeError, UsageProblem
from haloscope.terminal import printable

_LOOKED_AT = 4096  # bytes
_TAG = re.compile(r"(?<!\\)<(?=[A-Za-z/!?])")

# What the beginning of each kind of file holds.
FIGURE = b"atplotlib"  # Matplotlib signs the SVG and PNG files that it writes
GOAL = b"num_ranks "
EXTRAP = b'{"params"'
PROFILE = b'"haloscope-profile"'
TRACE = b'"ph"'
VALIDATION = b"# Predicted against measured"


def refuse_foreign(path: Path, kind: bytes) -> None:
    """Raise UsageProblem when an existing file is not of the kind that would replace it."""
    if not path.exists():
        return
    if not path.is_file():
        raise UsageProblem(f"{path} is no regular file; choose another name")
    with path.open("rb") as file:
        beginning = file.read(_LOOKED_AT)
    if beginning.strip() and kind not in beginning:
        raise UsageProblem(f"{path} is there and was not written by haloscope; choose another name, or move it away")


def refuse_foreign_figure(stem: Path) -> None:
    """Raise UsageProblem when a stem has no name, or a figure's SVG or PNG would replace something else."""
    if not stem.name:
        raise UsageProblem(f"--output {stem} has no name for the files; give a stem, for example map")
    for suffix in (".svg", ".png"):
        refuse_foreign(stem.with_suffix(suffix), FIGURE)


def write(path: Path, text: str) -> None:
    """Write a file of Markdown, without tags, and the folders that it is in. Raises HaloscopeError when that cannot be done."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_TAG.sub(r"\\<", printable(text)) + "\n")
    except OSError as error:
        raise HaloscopeError(f"cannot write {path}: {error.strerror}; choose another name with --output") from None
