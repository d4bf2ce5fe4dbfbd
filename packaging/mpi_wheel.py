"""MPICH's wheel as a dependency of `pip install` on machines without MPI, for building and for running."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path


def dynamic_metadata(
    settings: Mapping[str, str],
    project: Mapping[str, object],  # noqa: ARG001
) -> dict[str, list[str]]:
    """Return the dependencies: the wheel, if the package is built or will be built on it."""
    return {"dependencies": [] if _site_has_mpi() else [settings["wheel"]]}


def dynamic_wheel(settings: Mapping[str, str]) -> dict[str, bool]:  # noqa: ARG001
    """Mark dependencies as metadata in which a wheel may differ from the source distribution."""
    return {"dependencies": True}


def get_requires_for_dynamic_metadata(settings: Mapping[str, str]) -> list[str]:
    """Return the wheel if the machine has no other MPI to build on."""
    return [] if _site_has_mpi() else [settings["wheel"]]


def _site_has_mpi() -> bool:
    """Return whether the machine has an MPI other than MPICH's wheel: specified for CMake, or by mpicxx on PATH."""
    if any(word in os.environ.get("CMAKE_ARGS", "") for word in ("-DMPI_", "-DCMAKE_CXX_COMPILER")) or os.environ.get(
        "MPI_HOME"
    ):
        return True
    found = shutil.which("mpicxx")
    return bool(found) and not list(Path(found).parents[1].glob("lib/python*/*-packages/mpich-*.dist-info"))
