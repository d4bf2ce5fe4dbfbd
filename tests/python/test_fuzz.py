"""Wrong documents end no process, keep none for long, and make no answer that is no number.

The long form takes HALOSCOPE_FUZZ_S seconds in all (an hour by default), on the build with sanitizers where there is one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import fuzz
from haloscope.core import build

HERE = Path(__file__).resolve().parent
SANITIZED = HERE.parents[1] / "build" / "asan"
SECONDS = float(os.environ.get("HALOSCOPE_FUZZ_S", "3600"))
BATCH = 200


def environment() -> dict[str, str]:
    """Variables of a child that uses the library with sanitizers, where it is built; else that of the tests."""
    library = SANITIZED / build.library().name
    if not library.exists():
        return dict(os.environ)
    preload = subprocess.run(
        ["c++", "-print-file-name=libasan.so"], check=True, capture_output=True, text=True
    ).stdout.strip()
    return os.environ | {"HALOSCOPE_BUILD": str(SANITIZED), "LD_PRELOAD": preload, "ASAN_OPTIONS": "detect_leaks=0",
                         "UBSAN_OPTIONS": "halt_on_error=1"}  # fmt: skip


def feed(target: str, seed: int, count: int, variables: dict[str, str]) -> int:
    """Run a child over some seeds and return how many documents it took."""
    done = subprocess.run([sys.executable, HERE / "fuzz.py", target, str(seed), str(count)], env=variables, cwd=HERE.parents[1], check=False,
                          capture_output=True, text=True)  # fmt: skip
    last = (done.stdout.split() or ["none"])[-1]
    assert done.returncode == 0, f"fuzz.py {target} {last} 1: ended with {done.returncode}\n{done.stderr[-3000:]}"
    return int(last)


@pytest.mark.parametrize("target", fuzz.TARGETS)
def test_some_wrong_documents_are_answered(target, capfd):
    assert fuzz.main(target, 1, 25) == 0


@pytest.mark.long
@pytest.mark.timeout(SECONDS + 900)
@pytest.mark.parametrize("target", fuzz.TARGETS)
def test_wrong_documents_are_answered_for_long(target):
    variables, begin, seed, taken = environment(), time.monotonic(), 10**6, 0
    while time.monotonic() - begin < SECONDS / len(fuzz.TARGETS):
        taken += feed(target, seed, BATCH, variables)
        seed += BATCH
    assert taken > 0
