"""Diagnosis of a run that ended early, from the ranks' status board and mpiexec's last output.

The board is a small file that every rank maps into memory and keeps up to date, so it outlives its ranks. For each rank
it shows the process, the phase, the step, the configuration and the rank that it waits for.
"""

from __future__ import annotations

import contextlib
import re
import signal
import struct
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from haloscope.bridge import capi

MAGIC = b"HSBOARD1"
HEADER = struct.Struct("<8sii")
SLOT = struct.Struct("<iiqqiiq")
HEADER_BYTES = 64
PHASES_OUTSIDE = {100: "setup", 101: "verify", 102: "idle", 103: "done"}

_SPOKEN = re.compile(r"^haloscope: rank (\d+): (.*)$", re.MULTILINE)
_WAITS = re.compile(r"haloscope: rank \d+ has waited for ")
_STALL = re.compile(r"rank (\d+) made no progress for ([\d.]+) s")
_HYDRA_PID = re.compile(r"PID (\d+) RUNNING AT")
_HYDRA_SIGNAL = re.compile(r"EXIT STRING: [^(\n]{0,200}+\(signal (\d+)\)")
_OPENMPI_RANK = re.compile(r"process rank (\d+) with PID \d+ on node \S+ exited on\s+signal (\d+)")


@dataclass(frozen=True)
class Slot:
    """The last status of one rank."""

    rank: int
    pid: int
    phase: str
    step: int
    order: int  # number of the configuration within the launch
    waiting_for: int | None
    heartbeat: int

    def place(self) -> str:
        """Return the position of the rank as text."""
        return f"in phase {self.phase} of step {self.step}" if self.phase in operations() else f"during {self.phase}"


@dataclass(frozen=True)
class Fault:
    """A rank that failed, died or got stuck: `reason` describes the fault."""

    reason: str
    rank: int | None = None
    phase: str | None = None
    step: int | None = None
    waiting_for: int | None = None
    order: int | None = None


def operations() -> tuple[str, ...]:
    """Return the phases of a step by number: the kinds of a program's operations."""
    return capi.names("operations")


def read_board(path: Path) -> list[Slot]:
    """Return every rank's slot; an empty list when no rank has written a board yet."""
    data = path.read_bytes() if path.exists() else b""
    if len(data) < HEADER_BYTES or not data.startswith(MAGIC):
        return []
    _, ranks, slot_bytes = HEADER.unpack_from(data)
    if slot_bytes < SLOT.size or len(data) < HEADER_BYTES + ranks * slot_bytes:
        return []
    slots = []
    for rank in range(ranks):
        pid, phase, step, order, waiting_for, _, heartbeat = SLOT.unpack_from(data, HEADER_BYTES + rank * slot_bytes)
        if not pid:  # this rank has not begun
            slots.append(Slot(rank, 0, "start", 0, 0, None, 0))
            continue
        inside = 0 <= phase < len(operations())
        name = operations()[phase] if inside else PHASES_OUTSIDE.get(phase, f"phase {phase}")
        slots.append(Slot(rank, pid, name, step, order, waiting_for if waiting_for >= 0 else None, heartbeat))
    return slots


def end_of_waiting(board: list[Slot], start: Slot) -> Slot:
    """Follow the chain of waiting ranks from `start` to one that waits for no other, or to where a circle closes."""
    seen = {start.rank}
    slot = start
    while slot.waiting_for is not None and slot.waiting_for < len(board) and slot.waiting_for not in seen:
        slot = board[slot.waiting_for]
        seen.add(slot.rank)
    return slot


def _waiters(board: list[Slot], culprit: Slot, certain: bool) -> str:
    others = [s for s in board if s.waiting_for == culprit.rank and s.rank != culprit.rank]
    text = "".join(f"; rank {s.rank} was waiting for it {s.place()}" for s in others[:4])
    for other in others:
        if not certain and (other.rank, other.step) == (culprit.waiting_for, culprit.step):
            text += f"; they waited for each other, so rank {other.rank} (process {other.pid}) may have been the first"
    return text


def _fault(board: list[Slot], culprit: Slot, event: str, message: str = "", certain: bool = False) -> Fault:
    """Return the fault of a rank.

    event: the event, as text; message: of the rank, if any; certain: whether the event was seen, not concluded.
    """
    name = f"rank {culprit.rank}: {message}; it" if message else f"rank {culprit.rank}"
    for_whom = f", waiting for rank {culprit.waiting_for}" if culprit.waiting_for is not None else ""
    reason = f"{name} (process {culprit.pid}) {event} {culprit.place()}{for_whom}{_waiters(board, culprit, certain)}"
    return Fault(reason, culprit.rank, culprit.phase, culprit.step, culprit.waiting_for, culprit.order)


def reports_a_wait(line: str) -> bool:
    """Return whether a line is the report of a rank that has waited for long, and goes on."""
    return _WAITS.match(line) is not None


def diagnose(
    board: list[Slot],
    log: list[str],
    returncode: int,
    dead: Sequence[Slot] = (),
    ended: Sequence[Collection[int]] = (),
) -> Fault | None:
    """Return the rank that failed, died or got stuck; None if all ended in an orderly way (and reported the reason).

    board: the last state of the slots; log: the output of mpiexec and the ranks; returncode: mpiexec's; dead: the
    ranks whose processes had disappeared while mpiexec continued; ended: the processes in the order in which they were
    seen to end, those without an order between them together.
    """
    text = "\n".join(log)
    stall = _STALL.search(text)
    if stall and board:
        culprit = end_of_waiting(board, board[int(stall[1])])
        return _fault(board, culprit, f"made no progress for {stall[2]} s")
    spoken = _SPOKEN.search(text)
    if spoken and int(spoken[1]) < len(board):
        return _fault(board, board[int(spoken[1])], "was", spoken[2])
    # Where mpiexec had to be ended, the signal that hydra reports is the union of all ranks' signals, by bits.
    killed, number = (None, 0) if dead else _killed(board, text)
    orderly = killed is None and not dead and returncode in (0, 1, 2, 3)
    if (first := _first_ended(board, ended)) and not orderly:
        return _fault(board, first, _ended_by(number) if killed == first else "died or was killed", certain=True)
    if dead:
        at_the_end = _first_dead(board, dead[0])
        return _fault(board, at_the_end if at_the_end in dead else dead[0], "died or was killed")
    if killed is not None:
        return _fault(board, killed, _ended_by(number))
    return None if orderly else _unnamed(board, log, returncode)


def _unnamed(board: list[Slot], log: list[str], returncode: int) -> Fault:
    """Return the fault of a rank that mpiexec does not name: hydra sometimes fails itself when a rank dies."""
    waiting = [s for s in board if s.waiting_for is not None]
    if waiting:  # the board still shows which rank others awaited
        return _fault(board, _first_dead(board, waiting[0]), "died or was killed")
    last = f"mpiexec ended with code {returncode} and named no rank; its last words: {_last_words(log)}"
    return _last_behind(board, last) if returncode > 0 else Fault(last)


def _last_behind(board: list[Slot], last: str) -> Fault:
    """Return the rank furthest behind where neither mpiexec nor a waiting rank shows which one died first."""
    begun = [slot for slot in board if slot.pid > 0 and slot.phase != "done"]
    if not begun:
        return Fault(last)
    culprit = min(begun, key=lambda slot: (slot.order, slot.step, slot.heartbeat))
    level = [slot for slot in begun if slot != culprit and (slot.order, slot.step) == (culprit.order, culprit.step)]
    others = "".join(f"; rank {s.rank} (process {s.pid}) {s.place()} may have been the first" for s in level[:4])
    fault = _fault(board, culprit, "died or was killed")
    return replace(fault, reason=f"{fault.reason}{others} ({last})")


def _killed(board: list[Slot], text: str) -> tuple[Slot | None, int]:
    """Return the rank that a signal ended, as hydra (by process) or Open MPI (by rank) report it, and the signal."""
    openmpi, pid, number = _OPENMPI_RANK.search(text), _HYDRA_PID.search(text), _HYDRA_SIGNAL.search(text)
    if openmpi and int(openmpi[1]) < len(board):
        return board[int(openmpi[1])], int(openmpi[2])
    if number is None or not board:
        return None, 0
    by_pid = [s for s in board if pid and s.pid == int(pid[1])]
    waiting = [s for s in board if s.waiting_for is not None]
    start = next(iter(by_pid or waiting), None)
    return (_first_dead(board, start) if start else None), int(number[1])


def _first_dead(board: list[Slot], reported: Slot) -> Slot:
    """Return the rank that died first: hydra ends the others immediately and may report one of them.

    A waiting rank was alive until its partner failed to answer, so the rank at the end of the chain died first. If
    ranks wait in a circle, it is the rank furthest behind: the others had its messages and continued.
    """
    end = end_of_waiting(board, reported)
    if end.waiting_for is None:
        return end
    circle = [end]
    while (awaited := circle[-1].waiting_for) is not None and (after := board[awaited]) not in circle:
        circle.append(after)
    behind = min(s.step for s in circle)
    return next(s for s in [reported, *circle] if s.step == behind)


def _first_ended(board: list[Slot], ended: Sequence[Collection[int]]) -> Slot | None:
    """Return the rank that was seen to end before all others that had work left; None where no order was seen."""
    for together in ended:
        found = [slot for slot in board if slot.pid in together and slot.phase != "done"]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _ended_by(number: int) -> str:
    """Return the end of a rank as text. number: of the signal; 0: none."""
    if not number:
        return "ended without a word"
    try:
        return f"was ended by signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"was ended by signal {number}"


def _last_words(log: list[str]) -> str:
    words = [line.strip() for line in log if line.strip(" =\n")]
    return " / ".join(words[-3:]) or "none"


def dead_ranks(board: list[Slot], program: str) -> list[Slot]:
    """Return the ranks that have begun, have not finished and whose processes are gone."""
    begun = [slot for slot in board if slot.pid > 0 and slot.phase != "done"]
    alive = {process.pid for process in still_running(begun, program)}
    return [slot for slot in begun if slot.pid not in alive]


def still_running(board: list[Slot], program: str) -> list[psutil.Process]:
    """Return the board's processes that are alive and still run `program` (a number may have been reused)."""
    alive = []
    for slot in board:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied, ValueError):
            process = psutil.Process(slot.pid)
            if slot.pid > 0 and process.name()[:15] == program[:15] and process.status() != psutil.STATUS_ZOMBIE:
                alive.append(process)
    return alive
