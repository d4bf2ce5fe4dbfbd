"""Machine profiles: the costs of a machine's network, packing, transports and kernels, in one JSON file.

data/profile.schema.json defines the format. Profiles of published machines ship with the package; `haloscope calibrate`
writes profiles of other machines.
"""

from __future__ import annotations

import functools
import json
import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from haloscope import files, outputs, schemas
from haloscope.bridge import capi
from haloscope.bridge.json_values import encoded
from haloscope.data import DATA
from haloscope.errors import UnavailableError, UsageError, unknown_name
from haloscope.model import segments

SCHEMA, SCHEMA_VERSION = "haloscope-profile", 1
SCHEMA_FILE = DATA / "profile.schema.json"
CLASSES = ("self", "socket", "node", "network")  # the extent that contains both ends of a message, smallest first


@dataclass(frozen=True)
class Profile:
    """A valid machine profile; `data` is the JSON object, the methods read parts of it.

    pace: the pace that predictions assume, in the form of records; None: the pace of the calibration, to which all of
    `data` refers. calibrated: the profile at the pace of the calibration; see `at_pace`.
    """

    data: dict
    pace: Mapping[str, Any] | None = None
    calibrated: Profile | None = field(default=None, repr=False, compare=False)

    @functools.cached_property
    def handle(self) -> capi.CData:
        """The C library's handle of the profile at its pace, opened once."""
        if self.calibrated is not None:
            return _handle("hs_profile_at_pace", self.calibrated.handle, encoded(self.pace))
        return _handle("hs_open_profile", encoded(self.data))

    @property
    def paces(self) -> dict[str, dict]:
        """The paces at which the machine was calibrated, by number of ranks; empty where they were not measured."""
        paces: dict[str, dict] = self.data.get("pace", {})
        return paces

    def at_pace(self, pace: Mapping[str, Any]) -> Profile:
        """Return the profile at another pace. Raises UnavailableError if it has no pace of that number of ranks."""
        if str(pace["ranks"]) not in self.paces:
            known = ", ".join(self.paces) or "none"
            raise UnavailableError(f"profile '{self.name}' has no pace of {pace['ranks']} ranks (it has: {known})")
        return Profile(self.data, pace, self.calibrated or self)

    @property
    def name(self) -> str:
        """The profile's name."""
        name: str = self.data["name"]
        return name

    @property
    def machine(self) -> dict:
        """host, cpu, nodes, sockets_per_node, cores_per_socket."""
        machine: dict = self.data["machine"]
        return machine

    @property
    def cores_per_node(self) -> int:
        """Cores of one node."""
        cores: int = self.machine["sockets_per_node"] * self.machine["cores_per_socket"]
        return cores

    def foreign(self, cpus: Iterable[str], mpi_libraries: Iterable[str], whose: str) -> list[str]:
        """Return warnings where the profile is of another CPU or MPI than `whose`, such as "the records"."""
        texts = []
        for part, own, names in (
            ("CPU", self.machine["cpu"], cpus),
            ("MPI", self.data.get("mpi_library", ""), mpi_libraries),
        ):
            others = sorted({" ".join(name.split()) for name in names} - {" ".join(own.split())})
            if others:
                texts.append(f"the profile '{self.name}' is of another {part} ({own}) than {whose} ({others[0]})")
        return texts

    def section(self, name: str) -> Any:
        """Return one part of the profile ("network", "pack", "transports", "kernels", "reductions", "overlap").

        Raises UnavailableError, naming the part, when the profile lacks it.
        """
        if name not in self.data:
            raise UnavailableError(
                f"profile '{self.name}' has no section '{name}', which this needs; calibrate the machine, or choose "
                f"another profile with --profile"
            )
        return self.data[name]

    def network_class(self, wanted: str) -> dict:
        """Return segments (as `segments.Segment`) and contention of a class of CLASSES; of the closest class if absent.

        Of two equally close classes the larger extent counts, so that a message is too expensive rather than too cheap.
        Raises UnavailableError without a network section, UsageError for an unknown class.
        """
        if wanted not in CLASSES:
            raise UsageError(unknown_name("locality class", wanted, CLASSES))
        return self._classes[wanted]

    @functools.cached_property
    def _classes(self) -> dict[str, dict]:
        costs: dict[str, dict] = {
            name: {"segments": segments.from_json(c["segments"]), "contention": c.get("contention", {})}
            for name, c in self.section("network")["classes"].items()
        }

        def nearest(place: int) -> str:
            return min(costs, key=lambda c: (abs(CLASSES.index(c) - place), -CLASSES.index(c)))

        return {name: costs[nearest(place)] for place, name in enumerate(CLASSES)}

    def kernel(self, name: str) -> dict[int, list[segments.Segment]]:
        """Return a kernel's segments over cells by active cores per socket; `name` is APP/FORM/REAL.

        Raises UnavailableError when the profile has no cost of this kernel.
        """
        known = self.section("kernels")
        if name not in known:
            apps = sorted({kernel.split("/")[0].split(".")[0] for kernel in known})
            raise UnavailableError(
                f"profile '{self.name}' has no cost of kernel '{name}' (it has kernels of "
                f"{', '.join(apps) or 'none'}); calibrate with this kernel (--apps), or choose another profile"
            )
        return segments.by_count(known[name], "cells")

    @property
    def cache_limits(self) -> tuple[float, float]:
        """Bytes of one slot of a block from which its sweeps leave less than the whole block in the cache, and from
        which they leave none of it; infinite where unknown."""
        far = self.data.get("beyond_cache", {})
        begin = far.get("from_block_bytes", math.inf)
        return begin, far.get("to_block_bytes", begin)

    def packing(self, stride: str) -> dict[int, list[segments.Segment]]:
        """Return the cost of packing over bytes by threads, of blocks in the cache.

        stride: contiguous, lines, strided, scattered. Raises UnavailableError when the profile has no such cost.
        """
        if table := self.section("pack").get(stride):
            return segments.by_count(table)
        raise UnavailableError(f"profile '{self.name}' has no cost of packing {stride} data; calibrate the machine")


def _handle(function: str, *arguments: object) -> capi.CData:
    """Call a function whose last argument receives a profile; return the profile, which garbage collection closes."""
    ffi, lib = capi.load()
    result = ffi.new("hs_profile**")
    capi.call(function, *arguments, result)
    return ffi.gc(result[0], lib.hs_free_profile)


def fault_of(data: object) -> str:
    """Return the first fault of a profile, "" without one: schema, version, missing parts, gaps between segments."""
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        return f'it is not a machine profile ("schema" must be "{SCHEMA}")'
    if data.get("schema_version") != SCHEMA_VERSION:
        return f"it has version {data.get('schema_version')} of the format, this program reads {SCHEMA_VERSION}"
    return schemas.fault_of(data, SCHEMA_FILE) or _fault_in_library(data)


def _fault_in_library(data: dict) -> str:
    """Return the C library's complaint about a profile, "" without one: gaps between segments, numbers out of range."""
    try:
        _handle("hs_open_profile", encoded(data))
    except UsageError as problem:
        return str(problem).partition(" is not valid: ")[2].rpartition("; ")[0]
    return ""


def names() -> list[str]:
    """Return the names of the profiles that ship with the package."""
    return sorted(file.stem for file in (DATA / "profiles").glob("*.json"))


def load(profile: str | os.PathLike[str]) -> Profile:
    """Read a profile.

    profile: the name of a shipped one (`names()`) or the path of a JSON file.
    Raises UsageError for an unknown name, an unreadable file, text that is not JSON, and an invalid profile.
    """
    path = Path(profile)
    if str(profile) in names():
        path = DATA / "profiles" / f"{profile}.json"
    elif path.suffix != ".json" and not path.exists():
        raise UsageError(unknown_name("profile", str(profile), names()) + "; a path ends in .json")
    text = files.text_of(path, "the profile", "give the path of a .json file")
    try:
        data = files.json_of(text)
    except ValueError as error:
        raise UsageError(f"the profile {path} is not JSON ({error}); make it anew with haloscope calibrate") from None
    return checked(data, f"the profile {path}")


def checked(data: dict, subject: str = "this profile") -> Profile:
    """Return the profile if it is valid. Raises UsageError with the fault and its location."""
    fault = fault_of(data)
    if fault:
        raise UsageError(f"{subject} is not valid: {fault}; correct it, or make it anew with haloscope calibrate")
    return Profile(data)


def text(data: dict) -> str:
    """Return a profile as the JSON text of its file, each segment on one line."""
    spread = json.dumps(data, indent=1) + "\n"
    return re.sub(r"\{[^{}\[\]]*\}", lambda inner: re.sub(r"\n\s*", " ", inner.group()), spread)


def save(profile: Profile | dict, path: str | Path) -> None:
    """Check a profile and write it. Raises UsageError for an invalid profile; other errors as `outputs.writing`."""
    data = checked(profile.data if isinstance(profile, Profile) else profile, "the profile to be written").data
    outputs.write(Path(path), outputs.PROFILE, text(data))
