"""Values that are made once, by the first thread that needs them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

Made = TypeVar("Made")


def once(make: Callable[[], Made]) -> Callable[[], Made]:
    """Return a function that calls `make` once, while other threads wait, and returns its result each time.

    functools.cache would call it once in each thread that arrives meanwhile.
    """
    lock = threading.RLock()
    made: list[Made] = []

    def get() -> Made:
        if not made:
            with lock:
                if not made:
                    made.append(make())
        return made[0]

    get.__doc__ = make.__doc__
    return get
