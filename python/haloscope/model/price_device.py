"""Costs of a device's operations by a machine profile: sweeps, packing and copies on its streams, and hand-over.

All tables are by the number of ranks that share the device, linear between given ones. Packing is priced by the 32-byte sectors
of memory that it touches, and so are sweeps of regions whose rows are shorter than those.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence

from haloscope import core
from haloscope.errors import NotAvailable
from haloscope.model import segments, surcharge
from haloscope.model.compose import Action
from haloscope.model.profile import Profile
from haloscope.model.tracks import STREAMS, SWEEP_STREAM

SECTOR = 32  # least bytes that a device reads or writes at once (NVIDIA and AMD alike)
PART_LINE = 128  # bytes: parts of a message are whole ones of these
PINNED, PAGEABLE = "pinned", "pageable"
ELEMENT_BYTES = {"f64": 8, "f32": 4}
MOST_CONFLICT = 0.98  # a sweep that stands still while the other stream works would never end

Laws = Mapping[int, Sequence[segments.Segment]]  # costs by the ranks that share the device


def touched(size: float, run_bytes: float) -> float:
    """Return the bytes of all sectors that `size` bytes in stretches of `run_bytes` lie in, each stretch from a sector's begin."""
    return size / run_bytes * SECTOR * math.ceil(run_bytes / SECTOR) if size else 0.0


class DevicePrices:
    """The prices of a device's operations for one choice.

    Raises NotAvailable when the profile has no device, one of another back end, or not the cost of this kernel or transport.
    """

    def __init__(
        self,
        profile: Profile,
        choice: core.Choice,
        kernels: Sequence[str],
        note: Callable[[str, float, float, float], None],
    ):
        """kernels: names in the profile of all sweeps of a step."""
        self.data, self.name, self.note = profile.section("device"), profile.name, note
        if self.data["backend"] != choice.device:
            raise NotAvailable(
                f"profile '{self.name}' is of a device of back end '{self.data['backend']}' ({self.data['name']}), not "
                f"'{choice.device}'; calibrate with --device {choice.device}"
            )
        transport, _, words = surcharge.transports_of(choice.strategy)[0].partition(":")
        if transport == "aware":
            raise NotAvailable(
                f"profile '{self.name}' has no cost of messages that MPI takes from device memory; use staged or ipc"
            )
        self.element = ELEMENT_BYTES[choice.real]
        self.writes_there = transport == "ipc"  # to its neighbour's memory: messages only notify
        self.kernels = {name: segments.by_count(self._of("kernels", name), "cells") for name in kernels}
        fused = self._of("fused", kernels[0]) if choice.substeps == "blocked" and choice.depth > 1 else {}
        self.fused = {int(levels): segments.by_count(table, "cells") for levels, table in fused.items()}
        where = PAGEABLE if PAGEABLE in words.split(",") else PINNED
        self.copies = {way: segments.by_count(self.data[way][where]) for way in ("d2h", "h2d")}
        self.packing = segments.by_count(self.data["pack"])
        self.conflict = min(self.data.get("conflict", 1.0), MOST_CONFLICT)
        self.hand_s, self.notice_s = self.data.get("operation_s", 0.0), self.data.get("notice_s", 0.0)
        self.capture = choice.capture
        self.tasks = TaskKernel(self, words.split(",")) if transport == "taskqueue" else None
        if self.tasks:
            self.notice_s = self.tasks.signal_s  # the host looks at words of the kernel, not at events

    def _of(self, section: str, kernel: str) -> Mapping:
        if kernel not in self.data.get(section, {}):
            raise NotAvailable(
                f"profile '{self.name}' has no cost of {'several steps at once of ' * (section == 'fused')}kernel '{kernel}' "
                f"on {self.data['name']}; calibrate with --device {self.data['backend']}"
            )
        found: Mapping = self.data[section][kernel]
        return found

    def sweep(self, kernel: str, region: core.Box, levels: int, sharing: float) -> float:
        """Return the seconds of one launch that sweeps a region `levels` times."""
        if not region.volume:
            return 0.0
        table = self.kernels[kernel]
        if levels > 1:
            self.note("sweeps done at once on a device", levels, min(self.fused), max(self.fused) + 1)
            table = self.fused[min(self.fused, key=lambda known: abs(math.log(known / levels)))]
        cells = touched(region.volume * self.element, region.shape[0] * self.element) / self.element
        return levels * self._at(table, sharing, cells, "cells of a device's sweep")

    def faces(self, kernel: str, cells: float, moved: float, sharing: float) -> float:
        """Return the seconds of one launch that sweeps cells and also moves bytes (touched, both ends)."""
        swept = self._at(self.kernels[kernel], sharing, cells, "cells of a device's sweep")
        law = _nearest(self.packing, sharing)
        return swept + max(0.0, self._at(self.packing, sharing, moved, "bytes to pack on a device") - law[0].fixed)

    def pack(self, size: float, run_bytes: float, sharing: float) -> float:
        """Return the seconds of one launch that gathers or scatters bytes."""
        amount = size + touched(size, run_bytes)
        return self._at(self.packing, sharing, amount, "bytes to pack on a device") if size else 0.0

    def copy(self, way: str, size: float, sharing: float) -> float:
        """Return the seconds of one copy to the host (`d2h`) or from it (`h2d`)."""
        return self._at(self.copies[way], sharing, size, f"bytes to copy ({way})") if size else 0.0

    def _at(self, table: Laws, sharing: float, amount: float, what: str) -> float:
        self.note("ranks of a device", sharing, min(table), max(table) + 1)
        law = _nearest(table, sharing)
        self.note(what, amount, law[0].start, law[-1].end)
        return max(0.0, segments.evaluate_at(table, sharing, amount))


class TaskKernel:
    """The prices of transport `taskqueue`: one kernel packs a round's messages part by part, each part is sent when it is
    ready, and the kernel unpacks what arrives. Raises NotAvailable when the profile has no cost of a signal.
    """

    def __init__(self, device: DevicePrices, words: Sequence[str]):
        if "signal_s" not in device.data:
            raise NotAvailable(
                f"profile '{device.name}' has no cost of signals between a running kernel and the host; calibrate it again, or "
                f"use staged"
            )
        self.device = device
        self.signal_s: float = device.data["signal_s"]
        self.copied = "device" in words
        given = [int(word.partition("=")[2]) for word in words if word.startswith("chunks=")]
        self.most_parts = given[0] if given else 1

    def parts(self, size: float) -> int:
        """Return the parts of a message of `size` bytes."""
        return int(min(self.most_parts, max(1, math.ceil(size / PART_LINE))))

    def pack(self, sizes: Sequence[float], run_bytes: float, sharing: float) -> float:
        """Return the seconds until the last part of a round's messages can be sent.

        A kernel that packs into the host's memory is as slow as the slower of packing and the way there. Copies fetch a
        part while the next one is packed.
        """
        size, count = sum(sizes), sum(map(self.parts, sizes))
        launch, packing = self._packing(size, run_bytes, sharing)
        if not self.copied:
            return launch + max(packing, self._travel("d2h", size, sharing))
        copies = sum(self.parts(s) * self.device.copy("d2h", s / self.parts(s), sharing) for s in sizes)
        return launch + (packing + copies + (count - 1) * max(packing, copies)) / max(1, count)

    def unpack(self, sizes: Sequence[float], run_bytes: float, sharing: float) -> float:
        """Return the seconds from the host's notice that the last part has arrived until it is in its place, less those of the
        host's call for the operation, which the kernel does not wait for."""
        if not sizes:
            return 0.0
        size, count = sum(sizes), max(map(self.parts, sizes))
        _, packing = self._packing(size, run_bytes, sharing)
        last = max(packing, self._travel("h2d", size, sharing)) / count
        called: float = self.device.hand_s
        return max(0.0, self.signal_s + last - called)

    def flight(self, seconds: float, size: float, run_bytes: float, sharing: float) -> float:
        """Return how long a message is still on its way once its last part is: the others have left while it was packed."""
        _, packing = self._packing(size, run_bytes, sharing)
        packed = max(packing, self._travel("d2h", size, sharing))
        return seconds - min(seconds, packed) * (1 - 1 / self.parts(size))

    def _packing(self, size: float, run_bytes: float, sharing: float) -> tuple[float, float]:
        """Split the seconds of packing into those of a launch and those of the bytes."""
        whole = self.device.pack(size, run_bytes, sharing)
        launch = min(whole, max(0.0, _nearest(self.device.packing, sharing)[0].fixed))
        return launch, whole - launch

    def _travel(self, way: str, size: float, sharing: float) -> float:
        """Return the seconds of bytes on the way between device and host, without those of a copy's start."""
        start = max(0.0, _nearest(self.device.copies[way], sharing)[0].fixed)
        return max(0.0, self.device.copy(way, size, sharing) - start)


def _nearest(table: Laws, count: float) -> Sequence[segments.Segment]:
    return table[min(table, key=lambda known: abs(known - count))]


class StreamActions:
    """The operations of one rank's program that its device does, with their prices."""

    def __init__(
        self,
        program: core.Program,
        prices: DevicePrices,
        kernels: Sequence[str],
        sharing: float,
        traffic: Sequence,
        copies: Sequence,
    ):
        """kernels: names in the profile of the stage's sweeps. sharing: ranks of a device."""
        self.program, self.prices, self.kernels, self.sharing = program, prices, kernels, sharing
        self.traffic, self.copies = traffic, copies
        together = sum(map(on_stream, program.ops)) if prices.capture else 1  # operations that are handed over at once
        self.hand_s = prices.hand_s / max(1, together)

    def action(self, op: core.Op) -> Action:
        """Return an operation of a stream."""
        seconds = getattr(self, op.kind)(op)
        base = {"comm": False, "after": op.after, "stream": op.lane, "hand_s": self.hand_s}
        if op.kind == "sweep":
            beside = seconds / (1 - self.prices.conflict) if op.lane == SWEEP_STREAM else seconds
            return Action("sweep", sweep=(beside, seconds, seconds), **base)
        term = {"gather": "pack", "scatter": "unpack", "transfer": self._way(op)}.get(op.kind, op.kind)
        return Action("work", parts=((term, seconds),), copying=op.kind in ("d2h", "h2d", "transfer"), **base)

    def sweep(self, op: core.Op) -> float:
        """One launch of one or several time steps; of faces it takes as long as sweeping, packing and unpacking them would,
        but for a launch."""
        sweep = self.program.sweeps[op.target]
        if not sweep.faces:
            return self.prices.sweep(self.kernels[sweep.number], sweep.region, sweep.levels, self.sharing)
        widest = max(sweep.region, sweep.twin, key=lambda box: box.volume)
        cells = touched(sweep.cells * self.prices.element, widest.shape[0] * self.prices.element)
        share = sweep.cells / max(1, sum(s.cells for s in self.program.sweeps if s.faces))
        moved = share * sum(t.bytes + touched(t.bytes, t.run_bytes) for t in self.traffic)
        return self.prices.faces(self.kernels[sweep.number], cells / self.prices.element, moved, self.sharing)

    def pack(self, op: core.Op) -> float:
        """All messages of a set in one launch; what sweeps have packed already costs nothing."""
        if self.prices.tasks:
            return self.prices.tasks.pack(*self._moved(op), self.sharing)
        return 0.0 if self.program.packs_in_sweeps else self.unpack(op)

    def unpack(self, op: core.Op) -> float:
        """All messages of a set in one launch, or by the kernel that has packed."""
        sizes, run_bytes = self._moved(op)
        if self.prices.tasks:
            return self.prices.tasks.unpack(sizes, run_bytes, self.sharing)
        return self.prices.pack(sum(sizes), run_bytes, self.sharing)

    def _moved(self, op: core.Op) -> tuple[list[float], float]:
        """Return the bytes of each message of a set and the mean length of a stretch of them."""
        moved = [self.traffic[m] for m in self.program.sets[op.target]]
        rows = sum(t.bytes / t.run_bytes for t in moved)
        return [t.bytes for t in moved], sum(t.bytes for t in moved) / max(rows, 1)

    def copy(self, op: core.Op) -> float:
        """Own-neighbour halos: from one side of the block to the other, so strided at both ends."""
        moved = self.copies[op.target]
        return self.prices.pack(touched(moved.bytes, moved.run_bytes), SECTOR, self.sharing)

    def _staged(self, op: core.Op) -> float:
        return self.prices.copy(op.kind, sum(self.traffic[m].bytes for m in self.program.sets[op.target]), self.sharing)

    d2h = h2d = _staged

    def _way(self, op: core.Op) -> str:
        return "h2d" if op.kind == "transfer" and self.program.rings[op.target].to_device else "d2h"

    def transfer(self, op: core.Op) -> float:
        """The cells of a ring to the other memory."""
        return self.prices.copy(self._way(op), self.ring(op.target)[0], self.sharing)

    def gather(self, op: core.Op) -> float:
        """The cells of a ring into one stretch, or back into their places, on the device."""
        return self.prices.pack(*self.ring(op.target), self.sharing)

    scatter = gather

    @functools.cache  # noqa: B019  (lives as long as one pricing)
    def ring(self, number: int) -> tuple[float, float]:
        """Return the bytes of a ring and the mean length of a stretch of them."""
        boxes = self.program.rings[number].boxes
        size = sum(box.volume for box in boxes) * self.prices.element
        return size, size / max(1, sum(box.volume / box.shape[0] for box in boxes if box.volume))


def on_stream(op: core.Op) -> bool:
    """Whether an operation is a device's."""
    return op.lane in STREAMS
