"""Lists and ranges as users write them: numbers, grid sizes, names and globs, strategies."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Sequence

from haloscope import bridge
from haloscope.errors import UsageError, unknown_name

MOST_VALUES = 1000  # of one range: a longer one is a typing error
SINGLE = ("reference", "auto")  # strategies of one word

_RANGE = re.compile(r"^(?P<first>[^.]+)\.\.(?P<last>[^.*+]+)(?P<step>[*+]\d+)?$")


def numbers(text: str, option: str, repeated: bool = False) -> list[int]:
    """Parse a list of integers: `1,2,4`, `1..8`, `64..512*2` (factor), `64..256+64` (step), mixed by commas.

    repeated: a number may occur several times, else all but the first are removed.
    """
    values = [value[0] for value in _values(text, option, widths=(1,))]
    return values if repeated else list(dict.fromkeys(values))


def shapes(text: str, dims: int, option: str = "--cells") -> list[tuple[int, ...]]:
    """Parse grid sizes: `128x128x64`, or one number for a cube, with the lists and ranges that `numbers` accepts."""
    values = dict.fromkeys(_values(text, option, widths=(1, 1, 2, 3)))
    return [v * dims if len(v) == 1 else v for v in values]


def _values(text: str, option: str, widths: Sequence[int]) -> list[tuple[int, ...]]:
    values = [v for item in text.split(",") for v in _range(item.strip(), option)]
    if any(len(v) not in widths for v in values):
        remedy = "up to three numbers as 64x64x32" if 3 in widths else "plain integers"
        raise UsageError(f"{option} '{text}': write {remedy}")
    return values


def _integers(word: str, option: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in word.split("x"))
    except ValueError:
        raise UsageError(
            f"{option} '{word}' is not a number; write a list (1,2,4) or a range (1..8, 64..512*2, 64..256+64)"
        ) from None


def _range(item: str, option: str) -> Iterable[tuple[int, ...]]:
    match = _RANGE.match(item)
    if not match:
        return [_integers(item, option)]
    first, last = _integers(match["first"], option), _integers(match["last"], option)
    step = match["step"] or "+1"
    by, factor = int(step[1:]), step[0] == "*"
    grows = by > 0 if not factor else by > 1 and min(first) > 0
    if not grows or len(first) != len(last) or any(a > b for a, b in zip(first, last, strict=False)):
        raise UsageError(f"{option} '{item}' goes nowhere; write FIRST..LAST*FACTOR or FIRST..LAST+STEP, FIRST <= LAST")
    values, value = [], first
    while all(v <= end for v, end in zip(value, last, strict=True)):
        values.append(value)
        if len(values) > MOST_VALUES:
            raise UsageError(f"{option} '{item}' has more than {MOST_VALUES} values; use a larger step")
        value = tuple(v * by if factor else v + by for v in value)
    return values


def names(text: str, valid: Sequence[str], kind: str) -> list[str]:
    """Parse a comma list of names and globs (`*`, `s*`) against the valid names, in the order written."""
    return list(dict.fromkeys(name for item in text.split(",") for name in matching(item.strip(), valid, kind)))


def is_glob(text: str) -> bool:
    """Return whether a text has wildcards."""
    return any(c in text for c in "*?[")


def matching(item: str, valid: Sequence[str], kind: str) -> list[str]:
    """Return the valid names that a name or glob matches. Raises UsageError if none matches."""
    found = fnmatch.filter(valid, item) if is_glob(item) else [item] * (item in valid)
    if not found:
        raise UsageError(unknown_name(kind, item, valid))
    return found


def strategies(text: str, on_device: bool = False) -> list[str]:
    """Parse a comma list of strategies and globs (`ordered/*`); commas between a strategy's options are kept.

    on_device: the fields live in device memory; globs are matched against the strategies for that.
    """
    valid = bridge.device_strategy_names() if on_device else bridge.strategy_names()
    found = []
    for item in _strategy_items(text):
        found += matching(item, valid, "strategy") if is_glob(item) else [bridge.canonical_strategy(item)]
    return list(dict.fromkeys(found))


def named_strategies(text: str) -> list[str]:
    """Return the strategies of a comma list that are written out, not matched by a glob."""
    return [bridge.canonical_strategy(item) for item in _strategy_items(text) if not is_glob(item)]


def _strategy_items(text: str) -> list[str]:
    """Cut at the commas that separate strategies: an option word belongs to the strategy before it."""
    items: list[str] = []
    for piece in text.split(","):
        head = re.split("[:/]", piece)[0]
        complete = items and ("/" in items[-1] or items[-1] in SINGLE or is_glob(items[-1]))
        starts = head in ("ordered", "direct", *SINGLE) or is_glob(head) or (complete and "/" in piece)
        if items and not starts:
            items[-1] += "," + piece
        else:
            items.append(piece)
    return items
