"""Inventory of this machine and build, with the reason for everything that is absent."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from haloscope import bridge
from haloscope.bridge import build
from haloscope.errors import HaloscopeError
from haloscope.measure import answers, launch, lists, probes

Answer = TypeVar("Answer")


def gather() -> dict:
    """Return everything that `haloscope info` shows, as a plain value; if no rank starts, the reason replaces it."""
    answer, silent = _tried(answers.information)
    path, no_path = _tried(launch.mpiexec)
    program, no_program = _tried(build.rank_program)
    answer = answer or {}
    unknown = f"unknown: {silent}"
    machine = {
        "Haloscope": f"{answer.get('version') or bridge.version()}, commit {answer.get('commit') or '?'}",
        "program": str(program or no_program),
        "built for": build.mpi() or "an MPI that is not known",
        "MPI": f"{' '.join(answer['mpi_library'].split())} (standard {answer.get('mpi_standard', '?')})"
        if answer
        else unknown,
        "mpicxx": (program and launch.cmake_cache("MPI_CXX_COMPILER")) or answer.get("mpi_compiler", "unknown"),
        "mpiexec": f"{path} ({launch.flavour(path)})" if path else no_path,
        "compiler": f"{answer['compiler']} {answer.get('compiler_flags', '')} ({answer.get('build_type', '?')})".strip()
        if answer
        else unknown,
        "other compilers": ", ".join(other_compilers()) or "none on PATH (nvcc, hipcc, clang++ looked for)",
        "CPU": f"{cpu()}, {launch.cores()} of {os.cpu_count()} cores usable",
        "kernels": ", ".join(answer.get("isas", [])) + " (best first)" if answer else unknown,
        "GPUs": ", ".join(gpus()) or "none (nvidia-smi and rocm-smi name no device)",
    }
    return {
        "machine": machine,
        "probes": probes.table(probes.findings()) if answer else [],
        "devices": [_back_end(entry) for entry in answer.get("devices", [])],
        "transports": [_transport(transport, ranks_start=bool(answer)) for transport in bridge.transports()],
        "schedules": [_present(schedule) for schedule in bridge.schedules()],
        "apps": [_present(bridge.find_app(name)) for name in bridge.app_names()],
    }


def _tried(question: Callable[[], Answer]) -> tuple[Answer | None, str]:
    """Return (the answer, ""), or (None, the reason for its absence)."""
    try:
        return question(), ""
    except HaloscopeError as error:
        return None, str(error)


def _back_end(entry: dict) -> dict:
    """Return the entry of a back end of --device: its devices, or the reason for its absence."""
    names = [f"{d['name']} ({d['total_bytes'] / 2**30:.1f} GiB)" for d in entry["devices"]]
    about = entry["absent"] or ", ".join(names) or "no device"
    return {"name": entry["name"], "state": "no" if entry["absent"] else "yes", "about": about}


def _present(one: bridge.Schedule | bridge.App) -> dict:
    return {"name": one.name, "state": "yes", "about": one.summary}


def _transport(transport: bridge.Transport, *, ranks_start: bool) -> dict:
    """Return the entry of a transport: its summary and options, or the probes that this MPI fails."""
    strategy = transport.name if transport.name in lists.SINGLE else f"direct/{transport.name}"
    lacking = ranks_start and probes.lacking(strategy)
    options = f" (options: {', '.join(transport.options)})" if transport.options else ""
    about = lacking or transport.summary + options
    state = "?" if not ranks_start else "no" if lacking else "yes"
    return {"name": transport.name, "state": state, "about": about}


def cpu() -> str:
    """Return the CPU's model name."""
    try:
        with Path("/proc/cpuinfo").open() as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def gpus() -> list[str]:
    """Return the names of the GPUs that the vendors' tools see."""
    nvidia = launch.output_of("nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader")
    amd = [line for line in launch.output_of("rocm-smi", "--showproductname").splitlines() if "Card series" in line]
    return [line for line in nvidia.splitlines() if line] + [line.split(":")[-1].strip() for line in amd]


def other_compilers() -> list[str]:
    """Return name and version of compilers on PATH that back ends of devices can be built with."""
    found = []
    for name in ("nvcc", "hipcc", "clang++"):
        lines = launch.output_of(name, "--version").splitlines()
        if version := next((line for line in lines if "release" in line or "version" in line.lower()), ""):
            found.append(f"{name}: {version.strip()}")
    return found
