"""Errors a user can act on, and the exit code each maps to."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

OK, FAILED, USAGE, UNAVAILABLE = 0, 1, 2, 3


class HaloscopeError(Exception):
    """What was asked, what is wrong and what to do, in one or two sentences. Exit code 1 unless a subclass says more."""

    exit_code = FAILED


class UsageProblem(HaloscopeError):
    """A request that can never work: wrong value, unknown name, illegal combination."""

    exit_code = USAGE


class NotAvailable(HaloscopeError):
    """A legal request that this machine, build or MPI cannot serve."""

    exit_code = UNAVAILABLE


def nearest(name: str, valid: Iterable[str], count: int = 3) -> list[str]:
    """Return up to `count` of the `valid` names that look like `name`, nearest first; prefixes come before edits."""
    valid = list(valid)
    prefixed = [v for v in valid if name and v.startswith(name)]
    similar = difflib.get_close_matches(name, valid, n=count, cutoff=0.55)
    return list(dict.fromkeys(prefixed + similar))[:count]


MOST_NAMES = 16  # that a message lists


def unknown_name(kind: str, name: str, valid: Iterable[str]) -> str:
    """Return the text every unknown name gets: "unknown KIND 'NAME'; did you mean A or B?", or which names there are."""
    valid = list(valid)
    near = nearest(name, valid)
    if near:
        return f"unknown {kind} '{name}'; did you mean {' or '.join(near)}?"
    more = f" and {len(valid) - MOST_NAMES} more" if len(valid) > MOST_NAMES else ""
    return f"unknown {kind} '{name}'; valid names are {', '.join(valid[:MOST_NAMES])}{more}"
