"""Files that others may have written, read within bounds or refused with the reason; drafts of files; cache entries.

Only regular files of bounded size are read. JSON has bounded depth and numbers. Cache entries are of this user or root.
"""

from __future__ import annotations

import contextlib
import json
import lzma
import math
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from haloscope.errors import UsageError

MOST_BYTES = 1 << 30  # of a file, and of the contents of a compressed one
MOST_TIMES, LEAST_UNPACKED = 100, 64 << 20  # of the contents: times the compressed size; bytes that are always allowed
MOST_UNPACKER_BYTES = 256 << 20  # that the reader of a compressed file may allocate
MOST_DEPTH = 64  # of objects and lists in JSON
TOO_DEEP = f"more than {MOST_DEPTH} objects and lists in each other"
MOST_DIGITS = 20  # of a whole number in JSON, its sign included
MOST_KEPT_BYTES = 64 << 10  # of an entry of a cache
COMPRESSED = ".xz"
_PIECE = 1 << 20


class Unfit(ValueError):
    """The reason why a file or a text is refused."""


def text_of(path: str | Path, name: str, remedy: str, most: int = MOST_BYTES, strict: bool = False) -> str:
    """Return the text of a file, unpacked where its name ends in .xz.

    name: the file in words, "the profile". remedy: a remedy, for errors. most: max bytes. strict: whether bytes that
    are not UTF-8 are refused; otherwise they are replaced. Raises UsageError for a file that does not exist, is not
    regular, too large, or not readable. Cost: at most three times the text's memory.
    """
    try:
        return bytes_of(Path(path), most).decode("utf-8-sig", errors="strict" if strict else "replace")
    except UnicodeDecodeError:
        why = "it is not text"
    except Unfit as fault:
        why = str(fault)
    except OSError as error:
        why = error.strerror or str(error)
    raise UsageError(f"cannot read {name} {path}: {why}; {remedy}")


def bytes_of(path: Path, most: int = MOST_BYTES) -> bytes:
    """Return the bytes of a regular file, unpacked where it ends in .xz. Raises OSError, or Unfit with the reason."""
    with _opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        if path.suffix == COMPRESSED:
            return _unpacked(file, min(most, max(LEAST_UNPACKED, MOST_TIMES * size)))
        data = file.read(most + 1)
    if len(data) > most:
        raise Unfit(f"it holds more than {most} bytes")
    return data


def beginning_of(path: Path, most: int) -> bytes:
    """Return the first bytes of a regular file. Raises OSError, or Unfit for other files, which are not opened."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise Unfit("it is not a regular file")
    with _opened(path) as file:
        return file.read(most)


def _opened(path: Path, flags: int = 0) -> BinaryIO:
    """Open a regular file, without waiting for the writer of a pipe. Raises OSError, or Unfit for other files."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise Unfit("it is not a regular file")
    return os.fdopen(handle, "rb")


def _unpacked(file: BinaryIO, most: int) -> bytes:
    """Unpack streams sequentially, piece by piece, so that a small file cannot fill the memory."""
    found = bytearray()
    unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MOST_UNPACKER_BYTES)
    packed = file.read(_PIECE)
    try:
        while packed:
            if unpacker.eof:
                unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MOST_UNPACKER_BYTES)
            found += unpacker.decompress(packed, most + 1 - len(found))
            if len(found) > most:
                raise Unfit(f"it holds more than {most} bytes, unpacked")
            packed = unpacker.unused_data or file.read(_PIECE)
    except lzma.LZMAError as error:
        raise Unfit(f"it is not an xz file ({error})") from None
    if not unpacker.eof:
        raise Unfit("it is not a complete xz file")
    return bytes(found)


def refuse_additions(path: Path) -> None:
    """Raise UsageError where records cannot be added: to a compressed file, or to one that is not regular."""
    with contextlib.suppress(OSError):
        if not stat.S_ISREG(path.stat().st_mode):
            raise UsageError(
                f"cannot write records to {path}: it is not a regular file; choose another file with --output"
            )
    if path.suffix == COMPRESSED:
        raise UsageError(
            f"{path} would be compressed, and records are added to plain .jsonl files; unpack it with xz -d, or give "
            f"--output another name"
        )


# ---- JSON ------------------------------------------------------------------------------------------------------------


def json_of(text: str) -> Any:
    """Return the value of a JSON text. Raises Unfit for anything else, deep nesting, and numbers out of range."""
    try:
        value = json.loads(text, parse_constant=_refuse_constant, parse_int=_whole, parse_float=number_of)
    except RecursionError:
        raise Unfit(TOO_DEEP) from None
    except json.JSONDecodeError as error:
        raise Unfit(str(error)) from None
    _refuse_deep(value)
    return value


def _refuse_deep(value: Any) -> None:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MOST_DEPTH):
        inside = (each for one in level for each in (one.values() if isinstance(one, dict) else one))
        level = [each for each in inside if isinstance(each, dict | list)]
        if not level:
            return
    raise Unfit(TOO_DEEP)


def _refuse_constant(word: str) -> float:
    raise Unfit(f"{word} is not a number in JSON")


def _whole(word: str) -> int:
    if len(word) > MOST_DIGITS:
        raise Unfit(f"a whole number of {len(word)} digits is too large")
    return int(word)


def number_of(word: str) -> float:
    """Return a word as a finite number. Raises Unfit for any other word."""
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if math.isnan(number):
        raise Unfit(f"'{word[:20]}' is not a number")
    if math.isinf(number):
        raise Unfit(f"the number {word[:20]} is too large")
    return number


# ---- drafts ----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def draft_of(path: Path, mode: int = 0o666, like: os.stat_result | None = None) -> Iterator[TextIO]:
    """Yield a new file that replaces `path` once it is on the disk; on any failure it is removed.

    mode: permissions, minus the umask. like: the file whose owner and permissions the new one gets instead.
    Raises OSError.
    """
    name = path.with_name(f".haloscope-{os.urandom(8).hex()}")
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, like.st_mode & 0o777 if like else mode)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            yield file
            file.flush()
            if like:
                _make_alike(handle, like)
            os.fsync(handle)
        name.replace(path)
    except BaseException:
        name.unlink(missing_ok=True)
        raise


def _make_alike(handle: int, like: os.stat_result) -> None:
    with contextlib.suppress(OSError):  # only root changes owners
        os.fchown(handle, like.st_uid, like.st_gid)
    with contextlib.suppress(OSError):  # some file systems have no permissions
        os.fchmod(handle, stat.S_IMODE(like.st_mode))


# ---- caches ----------------------------------------------------------------------------------------------------------


def kept(path: Path, is_whole: Callable[[Any], bool]) -> Any:
    """Return the JSON value of a cache entry, None without an entry that can be trusted.

    An entry is a small regular file of this user or root that others cannot write, and `is_whole` accepts its value.
    """
    try:
        with _opened(path, os.O_NOFOLLOW) as file:
            state = os.fstat(file.fileno())
            if state.st_uid not in (os.geteuid(), 0) or state.st_mode & 0o022 or state.st_size > MOST_KEPT_BYTES:
                return None
            value = json_of(file.read(MOST_KEPT_BYTES).decode())
    except (OSError, ValueError):
        return None
    return value if is_whole(value) else None


def keep(path: Path, value: Any) -> None:
    """Write a cache entry, completely or not at all; a cache that cannot be written is not an error."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with draft_of(path, 0o600) as file:
            json.dump(value, file, indent=1)
