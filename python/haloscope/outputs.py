"""Output files of commands: each is complete or unchanged, and none replaces a file that Haloscope did not write.

The package replaces existing files only by `writing`, `write` and `move`; records/__init__.py adds records to files.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from haloscope import files
from haloscope.errors import HaloscopeError, UsageError
from haloscope.terminal import printable

_LOOKED_AT = 1 << 20  # bytes at the beginning of a file
_TAG = re.compile(r"(?<!\\)((?:\\\\)*+)<(?=[A-Za-z/!?])")  # after backslashes in pairs, which escape each other

# Texts near the beginning of the files of each kind, which files of other programs lack.
DRAWN = "Written by haloscope, with Matplotlib"
SIMULATED = "Written by haloscope simulate"
VALIDATED = "Written by haloscope validate"
SUBMITTING = "Written by haloscope study"
PAGED = "Written by haloscope report"
Kind = re.Pattern[bytes]
FIGURE = re.compile(DRAWN.encode())
SCHEDULE = POINTS = re.compile(SIMULATED.encode())
REPORT = re.compile(VALIDATED.encode())
PAGE = re.compile(PAGED.encode())
SUBMISSION = re.compile(SUBMITTING.encode())
SCRIPT = re.compile(rb"# Set HALOSCOPE_RANK to the program haloscope-rank of a build with this cluster's MPI\.")
REQUESTS = re.compile(rb'\A\{"kind": "\w+", "id": "[^"]+", "request": \{')
RECORDS = re.compile(rb'"schema"\s*:\s*"haloscope\.record"')
PROFILE = re.compile(rb'"schema"\s*:\s*"haloscope-profile"')
TRACE = re.compile(rb'"(clock [-+][\d.]+ us|device) \+- [\d.]+ us"')  # a label: the uncertainty of times of two clocks


def refuse_foreign(path: Path, kind: Kind) -> None:
    """Raise UsageError when an existing file is not of the kind that would replace it."""
    try:
        beginning = files.beginning_of(path, _LOOKED_AT)
    except (FileNotFoundError, NotADirectoryError):
        return
    except files.Unfit:
        raise UsageError(f"{path} is not a regular file; choose another name") from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return  # such a file cannot exist, and writing it fails with this reason
        raise UsageError(f"{path} exists and cannot be read: {error.strerror}; choose another name") from None
    if beginning.strip() and not kind.search(beginning):
        raise UsageError(f"{path} exists and was not written by haloscope; choose another name, or move it away")


def refuse_foreign_figure(stem: Path) -> None:
    """Raise UsageError when a figure's SVG or PNG would replace something else."""
    for suffix in (".svg", ".png"):
        refuse_foreign(beside(stem, suffix), FIGURE)


def beside(stem: Path, ending: str) -> Path:
    """Return the file with a stem, which may contain dots, and an ending."""
    return stem.with_name(stem.name + ending)


def stem_of(file: Path) -> Path:
    """Return the stem of files that are written next to a file: its path without .jsonl, .jsonl.xz or .json."""
    bare = file.name.removesuffix(".xz").removesuffix(".jsonl").removesuffix(".json")
    return file.with_name(bare or file.name)


@contextlib.contextmanager
def writing(path: Path, kind: Kind) -> Iterator[TextIO]:
    """Yield a file that replaces `path` at the end; on any failure `path` stays unchanged.

    Makes the folder. A link stays, and the file that it points to is replaced; the permissions of that file stay.
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
    """Write a Markdown file, with tags in the text escaped; as `writing`."""
    own = _TAG.sub(r"\1\\<", printable(text))
    write(path, REPORT, f"<!-- {VALIDATED} -->\n\n{own}\n")


def move(path: Path, target: Path, kind: Kind) -> None:
    """Rename a file. Raises UsageError as `refuse_foreign` does, HaloscopeError when it fails."""
    refuse_foreign(target, kind)
    with _explained(target):
        path.replace(target)
