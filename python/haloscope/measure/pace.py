"""A measurement of only the pace of this machine, in a second."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from haloscope import scratch
from haloscope.errors import HaloscopeError, UnavailableError, UsageError
from haloscope.measure import launch
from haloscope.model import pace
from haloscope.model.profile import Profile

KIND = "pace"
SECONDS = 1.0
LIMIT_S = 5.0  # of all, the start of the ranks included


@dataclass(frozen=True)
class PaceRequest:
    """A request to time the kernels of a pace on some ranks for some seconds."""

    ranks: int
    seconds: float = SECONDS
    threads: int = 1
    strategies: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """A readable name."""
        return f"{KIND},r{self.ranks}"

    def request(self) -> dict:
        """Return the request as its record holds it."""
        return {"ranks": self.ranks, "seconds": self.seconds}

    def line(self) -> dict:
        """Return the line of a requests file that makes the ranks measure this."""
        return {"kind": KIND, "id": self.id, "request": self.request()}


def measure(ranks: int, seconds: float = SECONDS) -> dict:
    """Start ranks, time only the pace and return its record.

    Raises UnavailableError if ranks share cores, HaloscopeError if the ranks fail or take longer than LIMIT_S.
    Cost: seconds, and the start of the ranks.
    """
    with scratch.folder() as folder:
        job = launch.Job([PaceRequest(ranks, seconds)], folder / "records.jsonl", KIND, limit_s=LIMIT_S)
        outcome = launch.run(job)
    if outcome.fault:
        raise HaloscopeError(f"the pace of this machine could not be measured: {outcome.fault.reason}")
    for record in outcome.records:
        if record["kind"] == KIND:
            return record
    raise UnavailableError("; ".join(outcome.messages) or f"mpiexec ended without a record: {outcome.last_words}")


def now(profile: Profile) -> dict:
    """Measure the pace of this machine with the largest number of ranks in the profile for which cores suffice.

    Raises UsageError for a profile without a pace, of another machine, or of more ranks than cores here.
    """
    ranks = _ranks_for(profile.paces, profile.name)
    record = measure(ranks)
    environment = record["environment"]
    others = profile.foreign([environment["cpu"]], [environment["mpi_library"]], "this machine")
    if others:
        raise UsageError(f"{'; '.join(others)}; its pace cannot be measured here")
    pace: dict = record["pace"]
    return pace


def at_pace(machine: Profile, refresh: bool) -> tuple[Profile, str]:
    """Return a profile at the pace of predictions, and a description of that pace, with a remedy if it is old.

    refresh: measure it now. Raises as `now` does.
    """
    if refresh:
        here = now(machine)
        machine = machine.at_pace(here)
        away = pace.describe(pace.difference(machine.paces[str(here["ranks"])], here))
        text = f"Pace: measured now; against the calibration: {away or 'as fast'} (time of each kernel)."
        text += " Of the machine's states that the profile has, the nearest counts." * ("states" in machine.data)
        return machine, text
    if machine.data["origin"] == "published":
        return machine, ""
    if not machine.paces:
        return machine, "Pace: not known, as the profile has none; calibrate again to compare it with another hour."
    ages = [age for age in map(pace.age_s, machine.paces.values()) if age is not None]
    if not ages or min(ages) < pace.STALE_S:
        return machine, "Pace: that of the calibration."
    return machine, (
        f"Pace: that of the calibration, {pace.ago(min(ages))} ago, which is stale: a shared machine may be faster or "
        "slower by now. --refresh measures it in a second."
    )


def _ranks_for(paces: Iterable[str], name: str) -> int:
    known = sorted(map(int, paces))
    if not known:
        raise UsageError(f"profile '{name}' has no pace to compare with; calibrate the machine again")
    possible = [ranks for ranks in known if ranks <= launch.cores()]
    if not possible:
        raise UsageError(
            f"profile '{name}' has the pace of {known[0]} ranks, but only {launch.cores()} cores are here; use a "
            "machine like the calibrated one"
        )
    return possible[-1]
