"""Guests: studies, subcommands and flags of other distributions, found by their entry points."""

from __future__ import annotations

import functools
from importlib import metadata
from typing import Any

from haloscope.errors import UnavailableError

STUDIES, COMMANDS, RUN_FLAGS = "haloscope.studies", "haloscope.commands", "haloscope.run_flags"
ABSENT = "haloscope-studies is not installed; in a checkout, 'pip install ./studies' installs it"


@functools.cache
def find_guests(group: str) -> dict[str, metadata.EntryPoint]:
    """Return the guests of a group by name. Cost: a few milliseconds, once."""
    return {entry.name: entry for entry in metadata.entry_points(group=group)}


def owner_of(group: str, name: str) -> str:
    """Return the name of the distribution of a guest."""
    entry = find_guests(group)[name]
    return entry.dist.name if entry.dist else entry.value


def load(group: str, name: str) -> Any:
    """Import a guest and return its object. Raises UnavailableError where it cannot be imported."""
    try:
        return find_guests(group)[name].load()
    except (ImportError, AttributeError) as error:
        owner = owner_of(group, name)
        raise UnavailableError(
            f"{owner} has '{name}', which cannot be imported: {error}; install {owner} again, or uninstall it"
        ) from None
