"""The setting that makes tests try everything instead of a sample, as `make check-long` does."""

import os
from collections.abc import Iterable, Sequence

import pytest

LONG = os.environ.get("HALOSCOPE_LONG", "0") not in ("", "0")  # as world.hpp has it


def or_long(quick: Sequence, long: Iterable) -> list:
    """Return parameters of tests, of which the second ones run in the long tests."""
    return [
        *quick,
        *(pytest.param(*(one if isinstance(one, tuple) else (one,)), marks=pytest.mark.long) for one in long),
    ]
