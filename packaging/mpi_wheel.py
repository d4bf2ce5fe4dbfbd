"""For `pip install`: MPICH's wheel where the machine has no MPI, to build on and to run on."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path


def dynamic_metadata(
    settings: Mapping[str, str],
    project: Mapping[str, object],  # noqa: ARG001
) -> dict[str, list[str]]:
    """Return the wheel among the dependencies where the package is built on it, or is going to be."""
    return {"dependencies": [] if _site_has_mpi() else [settings["wheel"]]}


def dynamic_wheel(settings: Mapping[str, str]) -> dict[str, bool]:  # noqa: ARG001
    """Mark dependencies as what a wheel may have other than the source distribution."""
    return {"dependencies": True}


def get_requires_for_dynamic_metadata(settings: Mapping[str, str]) -> list[str]:
    """Return the wheel where there is nothing else to build on."""
    return [] if _site_has_mpi() else [settings["wheel"]]


def _site_has_mpi() -> bool:
    """Return whether there is an MPI that is not MPICH's wheel: named to CMake, or by mpicxx on PATH."""
    if any(word in os.environ.get("CMAKE_ARGS", "") for word in ("-DMPI_", "-DCMAKE_CXX_COMPILER")) or os.environ.get(
        "MPI_HOME"
    ):
        return True
    found = shutil.which("mpicxx")
    return bool(found) and not list(Path(found).parents[1].glob("lib/python*/*-packages/mpich-*.dist-info"))
