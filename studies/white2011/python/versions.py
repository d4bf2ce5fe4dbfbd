"""The nine versions of White & Dongarra 2011, and the settings in which each of them is measured."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from haloscope.measure import space
from haloscope.studies import Options

APP, FORM = "advection3d", "dense"
ORDERED = "ordered/p2p"  # six messages, dimension by dimension (IV-B)
STAGED = "ordered/staged"  # the same, through the host
WALLS, SHORT_WALLS = range(1, 7), (1, 3)  # layers of the CPU around the GPU's block; 1 and 3 are named (V-F)
WIDTHS, HEIGHTS = (16, 32, 64), range(4, 17)  # threads of a block in x and y (figures 7 and 8)
SHORT_WIDTHS, SHORT_HEIGHTS = (16, 32), (8,)


@dataclass(frozen=True)
class Version:
    """A version: its name, the schedule and strategy that run it, and the limits of tasks and of threads of each."""

    name: str
    schedule: str
    strategy: str = ORDERED
    most_tasks: float = math.inf
    least_threads: int = 1
    most_threads: float = math.inf


IMPLEMENTATIONS = {
    "A": Version("single task", "bulk", most_tasks=1),
    "B": Version("bulk-synchronous MPI", "bulk"),
    "C": Version("non-blocking overlap", "interleaved"),
    "D": Version("threaded overlap", "comm-thread", least_threads=2),
}
# The same on a device. Threads compute in H and I only; others take one task per core, and share the devices.
ON_DEVICE = {
    "E": Version("GPU resident", "resident", STAGED, most_tasks=1, most_threads=1),
    "F": Version("GPU and bulk-synchronous MPI", "faces", STAGED, most_threads=1),
    "G": Version("GPU and MPI, streams", "faces-overlap", STAGED, most_threads=1),
    "H": Version("CPU and GPU, bulk-synchronous MPI", "box"),
    "I": Version("CPU and GPU, full overlap", "box-overlap"),
}
VERSIONS = IMPLEMENTATIONS | ON_DEVICE
BOXES = "HI"  # versions that divide a task's block between GPU and CPU


@dataclass(frozen=True)
class Point:
    """One setting of a version; walls: layers of the CPU, 0 without a box; block: threads, "" = the kernel's own."""

    cells: int
    cores: int
    letter: str
    tasks: int
    threads: int
    walls: int = 0
    block: str = ""

    @property
    def split(self) -> str:
        """Return tasks and threads of each, such as `2 x 6`."""
        return f"{self.tasks} x {self.threads}"

    @property
    def setting(self) -> str:
        """Return all values that are tuned, such as `2 x 6, walls 3`."""
        tuned = [f"walls {self.walls}"] * bool(self.walls) + [f"block {self.block}"] * bool(self.block)
        return ", ".join([self.split, *tuned])


def core_counts(cores: int) -> list[int]:
    """Return the core counts to report: powers of two and all cores."""
    return sorted({2**k for k in range(cores.bit_length()) if 2**k <= cores} | {cores})


def splits(letter: str, cores: int) -> list[tuple[int, int]]:
    """Return the ways (tasks, threads per task) to use `cores` cores; for D on two cores also 2 x 2."""
    limits = VERSIONS[letter]
    found = [(n, int(min(cores // n, limits.most_threads))) for n in range(1, cores + 1) if cores % n == 0]
    found = [(tasks, t) for tasks, t in found if tasks <= limits.most_tasks and t >= limits.least_threads]
    if letter == "D" and cores == 2:
        found.append((2, 2))  # more threads than cores: marked, and not ranked
    return found


def walls_of(letter: str, options: Options) -> tuple[int, ...]:
    """Return the thicknesses of the box to measure; (0,) for versions without a box."""
    return (0,) if letter not in BOXES else SHORT_WALLS if options.short else tuple(WALLS)


def blocks_of(letter: str, options: Options) -> tuple[str, ...]:
    """Return the shapes of thread blocks to measure: the paper tunes E alone. "" is the kernel's own shape."""
    if letter != "E":
        return ("",)
    widths, heights = (SHORT_WIDTHS, SHORT_HEIGHTS) if options.short else (WIDTHS, HEIGHTS)
    return ("", *(f"{x}x{y}" for x, y in itertools.product(widths, heights)))


def request(point: Point, options: Options) -> space.Space:
    """Return the request of one point of the tuning grid, refused where it cannot run."""
    version = VERSIONS[point.letter]
    axes = {
        "cells": (point.cells,) * 3,
        "ranks": point.tasks,
        "threads": point.threads,
        "schedule": version.schedule,
        "strategy": version.strategy,
        "form": FORM,
    }
    if point.letter in ON_DEVICE:
        axes["device"] = options.device
    if point.walls:
        axes["walls"] = point.walls
    if point.block:
        axes["device_block"] = point.block
    return space.expand(APP, {name: [value] for name, value in axes.items()}, options.settings())


def points(options: Options) -> dict[Point, space.Space]:
    """Return all points with their requests."""
    made = [
        Point(cells, cores, letter, tasks, threads, walls, block)
        for cells in options.sizes
        for cores in core_counts(options.cores)
        for letter in (VERSIONS if options.device else IMPLEMENTATIONS)
        for tasks, threads in splits(letter, cores)
        for walls in walls_of(letter, options)
        for block in blocks_of(letter, options)
    ]
    return {point: request(point, options) for point in made}
