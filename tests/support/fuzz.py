"""A child process that feeds wrong documents to one reader, to predictions, simulations or advice: `fuzz.py TARGET SEED
COUNT`.

It prints each seed before it uses it, so that the last one of a child that died or stuck is known.
"""

from __future__ import annotations

import functools
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random

from guest_cases import guest_cases
from haloscope import bridge, records
from haloscope.advice import validate
from haloscope.bridge import build, capi
from haloscope.bridge.json_values import encoded
from haloscope.errors import HaloscopeError
from haloscope.measure import launch
from haloscope.model import profile
from haloscope.simulate import simulate
from mutate import changed, damaged, document_of
from paths import RANK_PROGRAMS, ROOT
from test_any_file import READERS, measured
from toy import TOY

PACE = {"compute_s": 1e-5, "memory_s": 1e-4, "latency_s": 1e-6, "error": {"compute_s": 0.01}}
PROFILES = [
    profile.load(file).data | {"pace": {"2": PACE}} for file in (TOY, ROOT / "results" / "tune" / "machine.json.xz")
]
CHOICES = [
    {"app": "laplace2d", "cells": [64, 64], "ranks": 4, "depth": 2, "strategy": "ordered/p2p"},
    {
        "app": "laplace3d",
        "cells": [32, 32, 32],
        "ranks": 8,
        "threads": 2,
        "strategy": "direct/persistent",
        "schedule": "split",
    },
    {"app": "advection3d", "cells": [24, 24, 24], "ranks": 2, "nodes": 2, "strategy": "ordered/shared+p2p", "tiles": 4},
    *guest_cases("FUZZED").values(),
]
PLAN = {
    "layout": {"grid": {"dims": 2, "cells": [64, 48, 1], "periodic": [True, False, False]}, "ranks": [2, 3, 1]},
    "rank": 3,
    "spec": {
        "quantities": [{"name": "u", "centring": "face_x"}],
        "low": [1, 2, 0],
        "high": [2, 1, 0],
        "order": [1, 0, 2],
    },
    "schedule": "split",
    "stage": 0,
    "step": json.loads(encoded(bridge.step_of(bridge.Choice("laplace2d", (64, 48))))),
    "options": {"depth": 2, "steps": 1, "tiles": 3},
}
MOST_RANKS = 5000  # that a document is worked out for, so that many documents have their turn
LIMIT_S = 60
UNKNOWN = "failed inside"  # the library's word for an exception that it does not expect


def text(value: object) -> bytes:
    return json.dumps(value).encode()


def opened(data: bytes) -> capi.CData:
    return profile._handle("hs_open_profile", data)


def wrong_choice(random: Random) -> dict:
    choice = changed(random, random.choice(CHOICES))
    ranks = choice.get("ranks", 1) if isinstance(choice, dict) else 1
    return choice | {"ranks": ranks % MOST_RANKS} if isinstance(ranks, int) and ranks > MOST_RANKS else choice


def wrong_profile(random: Random) -> capi.CData:
    """A profile that is read, with some of its numbers moved."""
    for _ in range(20):
        try:
            return opened(text(changed(random, PROFILES[random.random() < 0.1])))
        except HaloscopeError:
            continue
    return profile.load(TOY).handle


def fuzz_choice(random: Random) -> None:
    choice = text(wrong_choice(random))
    for part in (b"fields", b"step", b"sweeps", b"options"):
        capi.answer("hs_examine", choice, part, 0)
    capi.answer("hs_expand", b'{"choice": ' + choice + b"}")
    nothing = capi.load()[0].NULL
    layout = capi.answer("hs_make_layout", choice, nothing, nothing)
    request = {"layout": layout, "rank": 0, "spec": capi.answer("hs_examine", choice, b"spec", 0)}
    capi.answer("hs_plan", request)
    capi.answer("hs_add_up", request, nothing)


def fuzz_plan(random: Random) -> None:
    request = changed(random, PLAN)
    capi.answer("hs_plan", request)  # refused for what has no layout
    if math.prod(request["layout"].get("ranks", ())) < MOST_RANKS:
        capi.answer("hs_add_up", request, capi.load()[0].NULL)


def fuzz_prediction(random: Random) -> None:
    choice = wrong_choice(random) if random.random() < 0.5 else random.choice(CHOICES)
    request = {"choices": [choice], "setting": {"reductions": random.choice((0, 3)), "repeats": random.choice((1, 5))}}
    request |= {"samples": random.choice((0, 20)), "singly": random.random() < 0.2}
    [found] = capi.answer("hs_predict", request, wrong_profile(random))
    assert found["time_s"] is not None, found


def fuzz_simulation(random: Random) -> None:
    choice = bridge.Choice.from_json(random.choice(CHOICES))
    machine = profile.Profile(PROFILES[0])
    vars(machine)["handle"] = wrong_profile(random)
    simulate.simulate(choice, machine, options=simulate.SimulationOptions(steps=2))


def fuzz_advice(random: Random) -> None:
    among = [{"depth": depth, "strategy": "ordered/p2p"} for depth in (1, 2, 4)]
    request = {"choice": random.choice(CHOICES[:3]), "among": among, "samples": random.choice((0, 10))}
    if random.random() < 0.7:
        request["among"] = changed(random, among)
    capi.answer("hs_advise", request, wrong_profile(random))


def fuzz_question(random: Random) -> None:
    question = {
        "choice": random.choice(CHOICES),
        "depths": [1, 2],
        "halo": 2,
        "samples": 10,
        "fused": False,
        "seconds_per_cell": 1e-9,
    }
    capi.answer("hs_best", text(changed(random, question)), wrong_profile(random))


def fuzz_app(random: Random) -> None:
    app = random.choice(capi.answer("hs_describe", b"apps"))
    capi.call("hs_declare_app", text(changed(random, app | {"name": f"app{random.random()}", "own_legality": False})))


def fuzz_pace(random: Random) -> None:
    pace = PACE | {"ranks": 2, "rounds": 5, "share": 0.01}
    profile._handle("hs_profile_at_pace", wrong_profile(random), text(changed(random, pace)))


def fuzz_validation(random: Random) -> None:
    found = [changed(random, record) for record in measured()]
    validate.validate(
        [r for r in found if not records.fault_of(r) and r["request"]["ranks"] < MOST_RANKS],
        profile.load(TOY),
        samples=2,
    )


def fuzz_profile(random: Random) -> None:
    opened(document_of(random, PROFILES[random.random() < 0.1]).replace(b"\0", b""))


class Exchanges:
    """Two ranks that exchange by `auto`, one exchange for each kept choice that they are given."""

    def __init__(self):
        self._cache = tempfile.TemporaryDirectory()
        program = RANK_PROGRAMS / "damaged_choices.py"
        words = [*launch.launcher_words(launch.mpiexec(), 2, 1), *build.python("-m", "mpi4py", str(program))]
        variables = os.environ | {"HALOSCOPE_CACHE": self._cache.name}
        self._ranks = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=variables)
        self.kept = bytes.fromhex(self._ranks.stdout.readline())
        assert self.take(self.kept) == "known"

    def take(self, choice: bytes) -> str:
        """Return whether the ranks took a file of a choice for one, "known" or "new"."""
        print(choice.hex(), file=self._ranks.stdin, flush=True)
        answer = self._ranks.stdout.readline().strip()
        assert answer in ("known", "new"), choice
        return answer

    def end(self) -> None:
        """Let the ranks end: those that wait for a choice spin."""
        self._ranks.stdin.close()
        self._ranks.wait()
        self._cache.cleanup()


@functools.cache
def exchanges() -> Exchanges:
    return Exchanges()


def end_exchanges() -> None:
    if exchanges.cache_info().currsize:
        exchanges().end()
        exchanges.cache_clear()


def fuzz_auto(random: Random) -> None:
    lines = exchanges().kept.split(b"\n")
    if random.random() < 0.5:
        lines[random.randrange(len(lines))] = random.choice((*lines, b"p2p", b"shared", b"carrier-pigeon"))
    choice = b"\n".join(lines)
    exchanges().take(damaged(random, choice) if random.random() < 0.7 else choice)


def of_file(name: str) -> Callable[[Random], None]:
    make, read = READERS[name]

    def fuzz(random: Random) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "file.json"
            file.write_bytes(make(random))
            file.chmod(0o600)
            read(file)

    return fuzz


TARGETS = {
    "choice": fuzz_choice,
    "plan": fuzz_plan,
    "prediction": fuzz_prediction,
    "simulation": fuzz_simulation,
    "advice": fuzz_advice,
    "question": fuzz_question,
    "app": fuzz_app,
    "pace": fuzz_pace,
    "auto": fuzz_auto,
    "validation": fuzz_validation,
    "library": fuzz_profile,
} | {name: of_file(name) for name in READERS}


def main(target: str, seed: int, count: int) -> int:
    """Feed `count` documents; returns how many were taken. A document that takes longer than LIMIT_S ends the
    process.
    """
    taken = 0
    for number in range(seed, seed + count):
        os.write(1, f"{number}\n".encode())
        signal.alarm(LIMIT_S)
        try:
            TARGETS[target](Random(number))
            taken += 1
        except HaloscopeError as error:
            if UNKNOWN in str(error):
                raise
    signal.alarm(0)
    end_exchanges()
    os.write(1, f"taken {taken}\n".encode())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
