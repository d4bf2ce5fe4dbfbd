"""The machine profiles of the 2017 study's four clusters, made from its printed tables.

`python -m haloscope_studies.davis2017.replay.profiles [FOLDER]` writes them; the files that ship with the package are
its output. The notes of each profile list printed, derived and missing costs.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from haloscope import studies
from haloscope.data import DATA
from haloscope.model import fit, profile, segments
from haloscope_studies.davis2017 import network
from haloscope_studies.davis2017.replay import hydra_kernels
from haloscope_studies.davis2017.replay.hydra_kernels import significant
from haloscope_studies.davis2017.replay.hydra_runs import ON_ONE_NODE, measured, messages_alone, stage_factor

MACHINES = ("minerva", "hector", "dawndev", "hera")
# Table 3 leaves the sockets of DawnDev open: four cores share one memory. HECToR's four NUMA regions of 8
# cores share a memory bus each, so they count as sockets here.
SOCKETS = {"minerva": 2, "hector": 4, "dawndev": 1, "hera": 4}
WHERE = {"intra": "node", "inter": "network"}


def build(machine: str) -> dict:
    """Return the profile of one of MACHINES as a JSON object."""
    row = next(r for r in studies.published("davis2017", "machines") if r["machine"] == machine)
    sockets = SOCKETS[machine]
    data = {
        "schema": profile.SCHEMA,
        "schema_version": profile.SCHEMA_VERSION,
        "name": machine,
        "origin": "published",
        "source": f"Davis 2017, chapter 3 and {_TABLES[machine]}",
        "machine": {
            "host": f"{machine} ({row['type']}, {row['interconnect']})",
            "cpu": f"{row['cpu']} {row['clock_GHz']} GHz",
            "nodes": int(row["nodes"]),
            "sockets_per_node": sockets,
            "cores_per_socket": int(row["cores_per_node"]) // sockets,
        },
        "mpi_library": row["mpi"],
        "network": {"classes": _classes(machine), "injection_bytes_per_s": None},
    }
    data["kernels"] = hydra_kernels.kernels() if machine == "minerva" else hydra_kernels.scaled(data)
    rows = [r for r in studies.published("davis2017", "allreduce") if r["machine"] == machine]
    if rows:
        # The last size of HECToR is printed as 65336; 65536 is meant.
        ranks = [65536 if r["processes"] == "65336" else int(r["processes"]) for r in rows]
        times = [significant(float(r["time_us"]) * 1e-6) for r in rows]
        data["reductions"] = {"allreduce": [{"ranks": p, "time_s": t} for p, t in zip(ranks, times, strict=True)]}
    data["notes"] = _NOTES["all"] + _NOTES[machine]
    return data


def pingpong(machine: str, place: str, pairs: int = 1, benchmark: str = "IMB") -> tuple[np.ndarray, np.ndarray]:
    """Return bytes and seconds of one message; round trips are halved.

    place: intra, inter (node). pairs: number of concurrent pairs of processes.
    """
    found = [
        (float(r["message_bytes"]), float(r["time_us"]) * (5e-7 if r["quantity"] == "round_trip" else 1e-6))
        for r in studies.published("davis2017", "pingpong")
        if (r["machine"], r["placement"], int(r["pairs"])) == (machine, place, pairs) and benchmark in r["benchmark"]
    ]
    sizes, times = np.array(sorted(found)).T
    return sizes, times


def _classes(machine: str) -> dict:
    made: dict[str, dict[str, Any]] = {}
    for place, where in WHERE.items():
        laws = _printed(place) if machine == "minerva" else _fitted(machine, place)
        made[where] = {"segments": laws, "contention": _contention(machine, place)}
    if machine == "minerva":
        alone = [messages_alone(made, *case) for case in ON_ONE_NODE]
        factor = stage_factor(alone, [measured(*case, "point_to_point") for case in ON_ONE_NODE])
        made["node"]["contention"]["stage_factor"] = significant(factor, 3)
    return made


def _printed(place: str) -> list[dict]:
    """Return table 5.9; its slopes are microseconds per byte, despite the heading."""
    return [
        {
            "from_bytes": int(r["bytes_from"]),
            "to_bytes": int(r["bytes_below"]) if r["bytes_below"] else None,
            "latency_s": significant(float(r["intercept_us"]) * 1e-6),
            "per_byte_s": significant(float(r["slope_us_per_byte"]) * 1e-6),
        }
        for r in studies.published("davis2017", "message_regimes")
        if r["placement"] == place
    ]


def _fitted(machine: str, place: str) -> list[dict]:
    sizes, times = pingpong(machine, place, benchmark="SKaMPI" if (machine, place) == ("hera", "inter") else "IMB")
    found = fit.pieces(sizes, times, fit.find_breaks(sizes, times, most=4), loss="soft_l1")
    exact = segments.to_json(found)
    return [
        {key: significant(v) if key.endswith("_s") else None if v is None else int(v) for key, v in s.items()}
        for s in exact
    ]


def _contention(machine: str, place: str) -> dict:
    """Return the source's factors of concurrent messages, per class."""
    if machine == "minerva":
        # PingPing takes 2 times a message inside a node, between nodes at most 15 % more than one.
        return {"duplex": 2.0 if place == "intra" else 1.15}
    if machine != "dawndev":
        return {}
    rows = link_factors(place)
    sharing = {r["pairs"]: r["factor"] for r in rows}
    return {"shared": significant(network.fit_shared(sharing)), "pairs": rows}


def link_factors(place: str, size: int = 16384) -> list[dict]:
    """Return DawnDev's time with several pairs on one link (or in one node) over the time of one pair.

    64, 128 and 256 pairs were formed so that four of them share each link between two nodes. Source: table A.12.
    """
    runs = {"intra": {2: 2}, "inter": {64: 4, 128: 4, 256: 4}}[place]

    def time(pairs: int) -> float:
        sizes, times = pingpong("dawndev", place, pairs)
        return float(times[sizes == size][0])

    factors: dict[int, list[float]] = {}
    for pairs, sharing in runs.items():
        factors.setdefault(sharing, []).append(time(pairs) / time(1))
    return [{"pairs": m, "bytes": size, "factor": significant(float(np.mean(f)))} for m, f in factors.items()]


_TABLES = {
    "minerva": "tables 5.9, A.5, A.13, A.14, A.27 to A.32",
    "hector": "tables A.9, A.10",
    "dawndev": "table A.12",
    "hera": "table A.11",
}
_NOTES = {
    "all": [
        "Made by haloscope_studies.davis2017.replay.profiles; the study prints no costs of packing, so there is no "
        "section pack."
    ],
    "minerva": [
        "network: table 5.9 as printed; contention: section 5.3.4 (PingPing).",
        "kernels: twelve are printed (serial, variant A); what a function's time leaves is shared by calls of the "
        "others.",
        "kernels: busier sockets scale all of them as the printed runs of 2, 4 and 12 processes on one node do.",
        "stage_factor: from the measured exchanges of 2 to 12 processes on one node; it contains packing.",
    ],
    "hector": [
        "network: PingPong with automatic breaks and a robust loss, as several printed points are outliers.",
        "kernels: an estimate, Minerva's times the ratio of a serial iteration of conjugate gradients; the hydrocode "
        "was not run on this machine.",
    ],
    "dawndev": [
        "network: PingPong of one pair; contention: two pairs in a node, four pairs on a link, 16384 bytes.",
        "kernels: Minerva's times one number, which gives the printed compute time of 64 processes of 75^3 cells.",
    ],
    "hera": [
        "network: IMB PingPong inside a node, half of SKaMPI round trips between nodes; no contention is printed.",
        "kernels: Minerva's times one number, which gives the printed compute time of 32 processes of 75^3 cells.",
    ],
}


def write(folder: Path) -> list[Path]:
    """Write all four profiles to a folder; return the files."""
    files = [folder / f"{machine}.json" for machine in MACHINES]
    for machine, file in zip(MACHINES, files, strict=True):
        profile.save(build(machine), file)
    return files


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else DATA / "profiles"
    print(*write(target), sep="\n")
