"""Message schedules in GOAL, the text format of LogGOPSim: sends, receives and calculations with dependencies.

Source: Hoefler, Siebert, Lumsdaine, "Group Operation Assembly Language", ICPP 2009; the grammar of LogGOPSim's txt2bin.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

import numpy as np

from haloscope import bridge, outputs
from haloscope.errors import UnavailableError, UsageError
from haloscope.model.predict import RunSettings
from haloscope.model.profile import Profile
from haloscope.simulate.simulate import Programs, programs_of

MOST_LINES = 50_000_000  # about 2 GB of text


def refuse_file(path: Path, requests: Sequence) -> None:
    """Raise UsageError where a schedule cannot be written: of several requests, or over a file of another program."""
    if len(requests) > 1:
        raise UsageError("--goal writes one schedule, and this is a space; ask for one choice")
    outputs.refuse_foreign(path, outputs.SCHEDULE)


def write_file(path: Path, choice: bridge.Choice, profile: Profile, setting: RunSettings, rounds: int) -> int:
    """Write the message schedule of a choice to a file; return the number of lines.

    Raises as `write` and `outputs.writing` do.
    """
    programs = programs_of(choice, profile, setting)
    with outputs.writing(path, outputs.SCHEDULE) as file:
        return write(programs, rounds, file)


def write(programs: Programs, rounds: int, file: TextIO) -> int:
    """Write the message schedule of all ranks over `rounds` rounds; return the number of lines.

    Calculations are in nanoseconds, the unit of LogGOPSim; its parameters define the costs of messages. Each lane keeps
    its order; the comm lane is cpu 0 with the main lane, or cpu 1 where a separate thread runs it. `progress` has no
    effect in GOAL, where messages advance independently.
    Raises UnavailableError for devices, whose streams GOAL does not support, UsageError for programs with barriers or
    all-reduces, and for more than 50 million lines.
    """
    choice, class_of = programs.choice, programs.class_of
    if choice.device:
        raise UnavailableError(f"GOAL has no streams, and '{choice.device}' is a device; export the choice without it")
    texts = [_Rank(programs, number, rounds) for number in range(len(programs.classes))]
    lines = 2 + sum(len(texts[c].lines) + 2 for c in class_of.tolist())
    if lines > MOST_LINES:
        raise UsageError(f"the schedule would have {lines} lines; export fewer ranks or steps")
    file.write(f"// {outputs.SIMULATED}\nnum_ranks {choice.ranks}\n")
    layout = bridge.make_layout(choice)
    peers: dict[int, np.ndarray] = {}  # of ranks of a class, by message
    place = np.zeros(choice.ranks, int)
    for number, text in enumerate(texts):
        members = np.flatnonzero(class_of == number)
        place[members] = np.arange(len(members))
        peers[number] = np.concatenate([bridge.peers(layout, plan, members) for plan in text.plans], axis=1)
    for rank, number in enumerate(class_of.tolist()):
        whose = peers[number][place[rank]]
        body = texts[number]
        file.write(f"rank {rank} {{\n{body.text % tuple(whose[m] for m in body.messages)}}}\n")
    return lines


class _Rank:
    """The text of a class of ranks, with a %d for each peer; `messages`: the message of each %d."""

    def __init__(self, programs: Programs, number: int, rounds: int):
        choice, whose = programs.choice, programs.classes[number]
        layout, stages = bridge.make_layout(choice), len(bridge.step_of(choice).stages)
        self.plans = [bridge.make_plan(layout, whose.rank, bridge.exchange_spec(choice, s)) for s in range(stages)]
        self.comm_cpu = int(programs.comm_thread)
        self.lines: list[str] = []
        self.messages: list[int] = []
        self.labels = 0
        self.received: dict[int, list[str]] = {}  # per incoming message: receives that no wait has taken yet
        self.sent: dict[int, str] = {}
        self.last: dict[str, str] = {}  # label of the last operation per lane
        all_of_them = list(zip(whose.stages, whose.programs, whose.seconds, strict=True))
        for one in all_of_them[: whose.opening]:
            self.add(*one)
        for _ in range(rounds):
            for one in all_of_them[whose.opening :]:
                self.add(*one)
        self.text = "".join(f"{line}\n" for line in self.lines)

    def add(self, stage: int, program: bridge.Program, seconds: Sequence[float]) -> None:
        """Add one program: it begins when both lanes of the previous program have ended."""
        begin, self.last = tuple(self.last.values()), {}
        both = []  # labels of the first and the last entry of each operation
        for op, duration in zip(program.ops, seconds, strict=True):
            if op.kind in ("barrier", "reduce", "reduced"):
                raise UsageError("GOAL has no barrier and no all-reduce; export a schedule without them")
            before = (self.last[op.lane],) if op.lane in self.last else begin
            both.append(self.operation(op, stage, program, duration, before))
            self.last[op.lane] = both[-1][1]
        for op, (first, _) in zip(program.ops, both, strict=True):  # some wait for an operation listed after them
            self.lines += [f"{first} requires {both[a][1]}" for a in op.after]

    def operation(
        self, op: bridge.Op, stage: int, program: bridge.Program, seconds: float, before: tuple[str, ...]
    ) -> tuple[str, str]:
        """Add one operation and return the labels of its first and its last entry."""
        cpu = self.comm_cpu if op.lane == "comm" else 0
        first_message = sum(len(plan.messages) for plan in self.plans[:stage])
        of_stage = program.sets[op.target] if op.kind in ("post", "send", "wait", "complete") else ()
        messages = tuple(first_message + m for m in of_stage)
        if op.kind == "wait":
            before += tuple(self.received[m].pop(0) for m in messages)
        if op.kind == "complete":
            before += tuple(self.sent[m] for m in messages)
        first = last = self.line(f"calc {round(seconds * 1e9)} cpu {cpu}", before)
        for m in messages:
            message = self.plans[stage].messages[m - first_message]
            tag = message.tag + (stage << 20)  # messages of different stages between two ranks have separate tags
            if op.kind == "post":
                started = self.line(f"recv {message.bytes}b from %d tag {tag} cpu {cpu}", (first,), m)
                self.received.setdefault(m, []).append(started)
            elif op.kind == "send":
                last = self.sent[m] = self.line(f"send {message.bytes}b to %d tag {tag} cpu {cpu}", (last,), m)
        return first, last

    def line(self, text: str, before: tuple[str, ...], message: int | None = None) -> str:
        """Add an entry that starts when the entries of `before` have ended; return its label."""
        self.labels += 1
        label = f"l{self.labels}"
        if message is not None:
            self.messages.append(message)
        self.lines.append(f"{label}: {text}")
        self.lines += [f"{label} requires {other}" for other in dict.fromkeys(before)]
        return label
