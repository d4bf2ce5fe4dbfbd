"""Cases of `haloscope blocks` and of this study for the general tests."""

from __future__ import annotations

import json

from mutate import lines_of
from test_blocks import BASE, EVENTS, QUEUE, around, record

ROW = "taskqueue:queue,device,blocking"
DEVICE_KERNELS = {"PassBlocks": 24}


def timed() -> list[dict]:
    """Records of a baseline and of a task queue."""
    return [record(BASE, around(1.0)), record(QUEUE, around(2.0))]


def timelines(begin_s: float = 0.0) -> list[dict]:
    """The same with the events of an iteration, which begins at `begin_s`."""
    events = [
        {
            "kind": kind,
            "block": block,
            "chunk": 0,
            "begin_s": begin_s + 1e-6 * a,
            "end_s": begin_s + 1e-6 * b,
            "rank": 0,
        }
        for kind, block, a, b in EVENTS
    ]
    clock = {"ticks_per_s": 1e9, "precision_s": 1.5e-6}
    return [record(name, around(9), detail="on", timeline=events, clock=clock) for name in (BASE, QUEUE)]


def of_the_study() -> list[dict]:
    """Records that the study draws: two tests of each variant."""
    return [record(name, around(us), around(us)) for name, us in ((BASE, 100), (QUEUE, 80), (ROW, 55))]


def served(variant: str, **more) -> tuple[str, str]:
    """The words that make haloscope-rank exchange few blocks on two ranks."""
    few = {"workload": "XS", "device": "host", "warmup": 1, "iterations": 2, "repetitions": 1, "limit_s": 20}
    request = {"variant": variant, "ranks": 2, **few, **more}
    return ("--request", json.dumps({"kind": "blocks", "id": "blocks", "request": request}))


WORKING = {"blocks": ("XS", "--device", "host")}
FILES_OF_COMMANDS = {"blocks": (lambda random: lines_of(random, timed()), lambda file: ("blocks", "--from", file))}
REQUESTED = {"blocks": timed()[0]}
APPENDING = {"blocks": ("blocks", "XS", "--device", "host")}
WRITERS = {"blocks": (("blocks", "--from", "r.jsonl", "--timeline", "t.json"), ("t.json", "t.svg", "t.png"), timelines)}
READING = {"blocks": ("--from",)}
DRAWING = {
    "blocks": (lambda: timelines(50.0), ("blocks", "--from", "r.jsonl", "--timeline", "f.json")),
    "vanecek2020": (of_the_study, ("study", "vanecek2020", "--from", "r.jsonl")),
}
RESUMED = {"blocks": ("blocks", "XS", "--device", "host", "--variant", "baseline:coherent", "--repetitions", 1)}
OF_THE_RANK_PROGRAM = {
    "blocks-baseline": served("baseline", timeline=True),
    "blocks-testany": served("baseline:testany,blocking,coherent", scheme="ring"),
    "blocks-taskqueue": served("taskqueue", detail="on"),
    "blocks-kernels": served("kernels"),
}
