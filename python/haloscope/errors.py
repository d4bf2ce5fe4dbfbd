"""Errors that a user can act on, and their exit codes."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable

OK, FAILED, USAGE, UNAVAILABLE = 0, 1, 2, 3


class HaloscopeError(Exception):
    """A request, its fault and the remedy, in one or two sentences. Exit code 1 unless a subclass has another."""

    exit_code = FAILED


class UsageError(HaloscopeError):
    """A request that can never work: wrong value, unknown name, illegal combination."""

    exit_code = USAGE


class UnavailableError(HaloscopeError):
    """A legal request that this machine, build or MPI cannot serve."""

    exit_code = UNAVAILABLE


def nearest(name: str, valid: Iterable[str], count: int = 3) -> list[str]:
    """Return up to `count` of the `valid` names similar to `name`, closest first; prefixes come before edits."""
    valid = list(valid)
    prefixed = [v for v in valid if name and v.startswith(name)]
    similar = difflib.get_close_matches(name, valid, n=count, cutoff=0.55)
    return list(dict.fromkeys(prefixed + similar))[:count]


MOST_NAMES, MOST_CHARACTERS = 16, 400  # of the list in a message


def unknown_name(kind: str, name: str, valid: Iterable[str]) -> str:
    """Return the text for an unknown name: "unknown KIND 'NAME'; did you mean A or B?", or a list of valid names."""
    valid = list(valid)
    near = nearest(name, valid)
    if near:
        return f"unknown {kind} '{name}'; did you mean {' or '.join(near)}?"
    ends = itertools.accumulate(len(one) + len(", ") for one in valid)
    shown = max(1, sum(end <= MOST_CHARACTERS for end in itertools.islice(ends, MOST_NAMES)))
    more = f" and {len(valid) - shown} more" if len(valid) > shown else ""
    return f"unknown {kind} '{name}'; valid names are {', '.join(valid[:shown])}{more}"
