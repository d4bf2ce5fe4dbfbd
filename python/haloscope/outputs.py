"""Files that a command was told to write: each is whole or as it was before, and none replaces what Haloscope did not
write.

All that the package writes over existing files goes through `writing`, `write` and `move`; records are added to files
by records/__init__.py.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from haloscope import files
from haloscope.errors import HaloscopeError, UsageError
from haloscope.terminal import printable

_LOOKED_AT = 1 << 20  # bytes
_TAG = re.compile(r"(?<!\\)((?:\\\\)*+)<(?=[A-Za-z/!?])")  # after an even number of backslashes, which hide each other

# What files of each kind hold near their beginning, and those of other programs do not.
DRAWN = "Written by haloscope, with Matplotlib"
SIMULATED = "Written by haloscope simulate"
VALIDATED = "Written by haloscope validate"
SUBMITTING = "Written by haloscope study"
Kind = re.Pattern[bytes]
FIGURE = re.compile(DRAWN.encode())
SCHEDULE = POINTS = re.compile(SIMULATED.encode())
REPORT = re.compile(VALIDATED.encode())
SUBMISSION = re.compile(SUBMITTING.encode())
SCRIPT = re.compile(rb"# Set HALOSCOPE_RANK to the program haloscope-rank of a build with this cluster's MPI\.")
REQUESTS = re.compile(rb'\A\{"kind": "\w+", "id": "[^"]+", "request": \{')
RECORDS = re.compile(rb'"schema"\s*:\s*"haloscope\.record"')
PROFILE = re.compile(rb'"schema"\s*:\s*"haloscope-profile"')
TRACE = re.compile(rb'"(clock [-+][\d.]+ us|device) \+- [\d.]+ us"')  # a label: how well times of two clocks compare


def refuse_foreign(path: Path, kind: Kind) -> None:
    """Raise UsageError when an existing file is not of the kind that would replace it."""
    try:
        beginning = files.beginning_of(path, _LOOKED_AT)
    except (FileNotFoundError, NotADirectoryError):
        return
    except files.Unfit:
        raise UsageError(f"{path} is no regular file; choose another name") from None
    except OSError as error:
        raise UsageError(f"{path} is there and cannot be read: {error.strerror}; choose another name") from None
    if beginning.strip() and not kind.search(beginning):
        raise UsageError(f"{path} is there and was not written by haloscope; choose another name, or move it away")


def refuse_foreign_figure(stem: Path) -> None:
    """Raise UsageError when a figure's SVG or PNG would replace something else."""
    for suffix in (".svg", ".png"):
        refuse_foreign(beside(stem, suffix), FIGURE)


def beside(stem: Path, ending: str) -> Path:
    """Return the file of a stem, which may hold dots, with an ending."""
    return stem.with_name(stem.name + ending)


def stem_of(file: Path) -> Path:
    """Return the stem of what is written beside a file: its path without .jsonl, .jsonl.xz or .json."""
    bare = file.name.removesuffix(".xz").removesuffix(".jsonl").removesuffix(".json")
    return file.with_name(bare or file.name)


@contextlib.contextmanager
def writing(path: Path, kind: Kind) -> Iterator[TextIO]:
    """Yield a file that takes the place of `path` at the end; where anything fails, `path` is as it was.

    Makes the folder. A link stays, and the file that it leads to is replaced; its permissions stay.
    Raises UsageError as `refuse_foreign` does, HaloscopeError when the file cannot be written.
    """
    refuse_foreign(path, kind)
    with _explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        target = Path(os.path.realpath(path))
        with files.draft_of(target, like=target.stat() if target.exists() else None) as draft:
            yield draft


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = error.strerror or error
        raise HaloscopeError(f"cannot write {path}: {why}; free some space or choose another name") from None


def write(path: Path, kind: Kind, text: str) -> None:
    """Write a file; as `writing`."""
    with writing(path, kind) as draft:
        draft.write(text)


def write_report(path: Path, text: str) -> None:
    """Write a file of Markdown, without tags of others; as `writing`."""
    own = _TAG.sub(r"\1\\<", printable(text))
    write(path, REPORT, f"<!-- {VALIDATED} -->\n\n{own}\n")


def move(path: Path, target: Path, kind: Kind) -> None:
    """Rename a file. Raises UsageError as `refuse_foreign` does, HaloscopeError when that cannot be done."""
    refuse_foreign(target, kind)
    with _explained(target):
        path.replace(target)
