"""Temporary folders of a process, removed at its end or, if it was killed, before the next such folder is made."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

RUN, LAB = "haloscope-run-", "haloscope-lab-"  # beginnings of names: runs of any command, emulated clusters


@contextlib.contextmanager
def folder(prefix: str = RUN) -> Iterator[Path]:
    """Yield a new temporary folder, then remove it. `sweep` finds folders of dead processes by their names."""
    sweep(prefix)
    with tempfile.TemporaryDirectory(prefix=f"{prefix}{_place() or 'here'}-{os.getpid()}-") as name:
        yield Path(name)


def sweep(prefix: str) -> list[Path]:
    """Remove and return this user's folders whose processes were killed; the kernel has removed all else.

    Folders whose process numbers are of another machine or container stay. A folder has its name from the moment it is
    made, so no folder of a living process is removed.
    """
    place = _place()
    if place is None:
        return []
    left, own = [], f"{prefix}{place}-"
    for path in Path(tempfile.gettempdir()).glob(f"{own}*"):
        number = path.name.removeprefix(own).split("-")[0]
        if _is_own(path) and number.isdecimal() and not _is_there(int(number)):
            shutil.rmtree(path, ignore_errors=True)
            left.append(path)
    return left


def _place() -> str | None:
    """Return the boot and the namespace of this process's number: containers may share a folder, but not numbers.

    None where the system does not show them.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
        return f"{boot}.{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return None


def _is_there(number: int) -> bool:
    try:
        os.kill(number, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # another user's
        return True
    return True


def _is_own(path: Path) -> bool:
    try:
        return path.lstat().st_uid == os.geteuid()
    except OSError:  # another process has just removed it
        return False
