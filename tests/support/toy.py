"""The profile made by hand that tests of the model share (its fixture is `toy`), and how to change it."""

from __future__ import annotations

import copy
from pathlib import Path

from haloscope.model import profile

TOY = Path(__file__).parent / "profiles" / "toy.json"


def changed(toy: profile.Profile, change) -> profile.Profile:
    """Return a copy of a profile after `change(data)`."""
    data = copy.deepcopy(toy.data)
    change(data)
    return profile.checked(data)
