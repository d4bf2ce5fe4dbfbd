"""The profile made by hand that tests of the model share (its fixture is `toy`), and how to change it."""

from __future__ import annotations

import copy
from pathlib import Path

from haloscope.model import profile

TOY = Path(__file__).parent / "profiles" / "toy.json"


def kernel_row(data: dict) -> dict:
    """Return the cost of the sweep of laplace2d on four cores."""
    return data["kernels"]["laplace2d/star/f64"]["4"][0]


def make_uncertain(row: dict, key: str, share: float) -> None:
    """Give a parameter an interval of this share of it to either side."""
    row["interval"] = {key: [(1 - share) * row[key], (1 + share) * row[key]]}


def changed(toy: profile.Profile, change) -> profile.Profile:
    """Return a copy of a profile after `change(data)`."""
    data = copy.deepcopy(toy.data)
    change(data)
    return profile.checked(data)
