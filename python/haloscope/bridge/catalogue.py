"""Transports, schedules, strategies and rules of process grids, with their traits."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from haloscope.bridge import capi
from haloscope.bridge.choice import Choice
from haloscope.bridge.json_values import decoded
from haloscope.errors import UsageError, unknown_name


@dataclass(frozen=True)
class Transport:
    """Traits of a transport. device: it moves device memory. shared_fields: it accesses neighbours' fields."""

    name: str
    summary: str
    colour: str
    options: tuple[str, ...]
    device: bool
    shared_fields: bool


@dataclass(frozen=True)
class Schedule:
    """Traits of a schedule.

    options: schedule-only fields of a choice that this schedule reads. plain: exchange and sweeps take turns.
    on_host: fields may be in host memory; boxed: and on a device. in_place: for sweeps in place, and only those.
    """

    name: str
    summary: str
    colour: str
    options: tuple[str, ...]
    plain: bool
    on_host: bool
    boxed: bool
    in_place: bool


@dataclass(frozen=True)
class Strategy:
    """A parsed strategy: its canonical name, its transports, and the probes of the MPI library that it relies on.

    shared_fields: neighbours' fields are read or written, which must then be in memory that a node's ranks share.
    """

    name: str
    transport: str
    pattern: str
    device: bool
    shared_fields: bool
    probes: tuple[str, ...]


@functools.cache
def transports() -> tuple[Transport, ...]:
    """Return all transports."""
    return tuple(decoded(Transport, found) for found in capi.answer("hs_describe", b"transports"))


@functools.cache
def schedules() -> tuple[Schedule, ...]:
    """Return all schedules."""
    return tuple(decoded(Schedule, found) for found in capi.answer("hs_describe", b"schedules"))


def schedule_names() -> list[str]:
    """Return the names of all schedules."""
    return [schedule.name for schedule in schedules()]


def find_schedule(name: str) -> Schedule:
    """Return a schedule. Raises UsageError with the nearest valid names."""
    found = [schedule for schedule in schedules() if schedule.name == name]
    if not found:
        raise UsageError(unknown_name("schedule", name, schedule_names()))
    return found[0]


def strategy_names() -> list[str]:
    """Return the strategies for fields in host memory that a glob is matched against, `reference` first."""
    return list(capi.names("strategies"))


def device_strategy_names() -> list[str]:
    """Return the strategies for fields in device memory that a glob is matched against, the default first."""
    return list(capi.names("device-strategies"))


def process_grid_rules() -> list[str]:
    """Return the rules that choose a process grid."""
    return list(capi.names("rules"))


@functools.cache
def find_strategy(text: str) -> Strategy:
    """Parse a strategy. Raises UsageError for a malformed one, with the nearest valid names."""
    return decoded(Strategy, capi.answer("hs_parse_strategy", text.encode()))


def canonical_strategy(text: str) -> str:
    """Return a strategy string in canonical form. Raises UsageError with the nearest valid names."""
    return find_strategy(text).name


def needs_shared_fields(strategy: str) -> bool:
    """Return whether a strategy needs fields in memory that a node's ranks share. Raises as `find_strategy`."""
    return find_strategy(strategy).shared_fields


def messages_on_device(choice: Choice) -> bool:
    """Return whether messages move fields of a device; with walls they move host cells."""
    return bool(choice.device) and not find_schedule(choice.schedule).boxed


def stream_from_bytes() -> int:
    """Return the bytes of a rank's field from which on its sweeps store around the cache by default."""
    size: int = capi.answer("hs_describe", b"constants")["stream_from_bytes"]
    return size


def version() -> str:
    """Return the version of the library."""
    return capi.text(capi.load()[1].hs_version())
