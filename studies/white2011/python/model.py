"""Step times of the 2011 study's versions: concurrent parts cost as much as the longest, the rest adds up.

Source: White and Dongarra 2011, section IV; checklist row W24.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from haloscope.errors import UsageError, unknown_name
from haloscope.studies.parts import Composition, concurrent, sequence

MPI = ("mpi x", "mpi y", "mpi z")  # the exchange of one dimension
CPU = ("cpu x", "cpu y", "cpu z")  # points that need no MPI halo, by the exchange concurrent with them
COPIES = ("copy to gpu", "copy from gpu")  # halos in, boundaries out
# Kernels of two streams may run together, but share the GPU: its time is their sum.
GPU = sequence("gpu interior", "gpu faces")
FACES = sequence("copy to gpu", "gpu faces", "copy from gpu")  # a chain: faces need halos, and give boundaries
EXCHANGE = sequence("pack", *MPI)  # pack: all threads fill send buffers and empty receive buffers
BESIDE_EXCHANGE = sequence("pack", *(concurrent(m, c) for m, c in zip(MPI, CPU, strict=True)), "cpu boundary")

VERSIONS: dict[str, Composition] = {
    "B": sequence(EXCHANGE, *CPU, "cpu boundary"),
    "C": BESIDE_EXCHANGE,
    "F": sequence("copy from gpu", EXCHANGE, "copy to gpu", GPU),
    "G": concurrent(GPU, sequence(EXCHANGE, FACES)),
    "H": sequence(*COPIES, EXCHANGE, concurrent(GPU, sequence(*CPU, "cpu boundary"))),
    # The box between GPU block and MPI halos makes the two kinds of traffic independent: three chains instead of G's
    # two.
    "I": concurrent(GPU, FACES, BESIDE_EXCHANGE),
}


def step_time(version: str, parts: Mapping[str, float]) -> float:
    """Return the time of one step, without a cost of overlapping.

    version: B, C, F, G, H or I. parts: seconds per step of every part in the version's formula
    (`VERSIONS[version].names`); "cpu boundary" are the points that wait for MPI halos, with the copy of the new state
    to the current one. In H and I the GPU parts belong to the inner block, the CPU parts to the box around it. Returns
    seconds. Raises UsageError for an unknown version and for a part without a time. Source: section IV-B to
    IV-I.
    """
    if version not in VERSIONS:
        raise UsageError(unknown_name("version", version, VERSIONS))
    return VERSIONS[version].time(parts)


def box_share(block: Sequence[int], thickness: int) -> float:
    """Return the part of a block's points that lie in its outer box: 1 - (nx-2w)(ny-2w)(nz-2w) / (nx ny nz).

    block: points per dimension. thickness: w >= 0, in points. Raises UsageError when the box leaves no inner block.
    """
    if min(block) <= 2 * thickness:
        raise UsageError(
            f"a box of thickness {thickness} leaves nothing inside a block of {'x'.join(map(str, block))}; "
            f"use less than {math.ceil(min(block) / 2)}"
        )
    return 1 - math.prod(n - 2 * thickness for n in block) / math.prod(block)


def parts_of(
    version: str, block: Sequence[int], gpu: float, cpu: float, mpi: float, copies: float, thickness: int = 1
) -> dict[str, float]:
    """Divide a machine's times for a whole block into the parts of a version.

    block: points per dimension of a task. gpu, cpu: seconds in which GPU or CPU alone sweep the block. mpi: seconds of
    the exchange, packing included. copies: seconds of both directions between CPU and GPU, as long for a block as for
    the slightly smaller block in a box. thickness: w >= 1 of the box of H and I. Returns seconds by part; each of three
    dimensions gets a third of the shared times, each direction of copying half. Raises UsageError as `box_share` does.
    """
    box = box_share(block, thickness) if version in "HI" else 1.0 if version in "BC" else 0.0
    outer = min(box, box_share(block, 1))  # one layer waits for MPI halos
    inside = [n - 2 * thickness for n in block] if version in "HI" else block
    faces = box_share(inside, 1) * (1 - box)
    parts = {
        "pack": 0.0,
        "gpu interior": (1 - box - faces) * gpu,
        "gpu faces": faces * gpu,
        "cpu boundary": outer * cpu,
    }
    parts |= (
        dict.fromkeys(MPI, mpi / 3) | dict.fromkeys(CPU, (box - outer) * cpu / 3) | dict.fromkeys(COPIES, copies / 2)
    )
    return parts


def order(
    block: Sequence[int],
    gpu: float,
    cpu: float,
    mpi: float,
    copies: float,
    thickness: int = 1,
    versions: Sequence[str] = ("F", "G", "H", "I"),
) -> list[str]:
    """Return versions from the slowest to the fastest; arguments as in `parts_of`."""
    times = {v: step_time(v, parts_of(v, block, gpu, cpu, mpi, copies, thickness)) for v in versions}
    return sorted(times, key=lambda version: times[version], reverse=True)
