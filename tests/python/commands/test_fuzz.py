"""Wrong documents end no process, keep none for long, and make no answer that is no number.

The long form takes HALOSCOPE_FUZZ_S seconds in all (20 minutes by default), on a build with sanitizers.
"""

from __future__ import annotations

import os
import sys
import time

import pytest

import fuzz
import other_mpi
import test_sanitizers as sanitizers
from long_run import LONG
from paths import ROOT
from programs import ended, run

SECONDS = float(os.environ.get("HALOSCOPE_FUZZ_S", "1200"))
BATCH = 200
PARTS = (*other_mpi.NEEDED, "haloscope_exchange")  # that read documents


@pytest.fixture(scope="module")
def sanitized() -> dict[str, str]:
    """Variables of a child that uses the library with sanitizers, whose interceptors ask for the C++ library's
    functions.
    """
    runtimes = [run("c++", f"-print-file-name={name}").strip() for name in ("libasan.so", "libstdc++.so.6")]
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "HALOSCOPE_BUILD": str(sanitizers.build("asan", *PARTS)),
        "LD_PRELOAD": " ".join(runtimes),
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "halt_on_error=1",
    }


def feed(target: str, seed: int, count: int, variables: dict[str, str]) -> int:
    """Run a child over some seeds and return how many documents it took."""
    done = ended(sys.executable, fuzz.__file__, target, seed, count, env=variables, cwd=ROOT)
    last = (done.stdout.split() or ["none"])[-1]
    assert done.returncode == 0, f"fuzz.py {target} {last} 1: ended with {done.returncode}\n{done.stderr[-3000:]}"
    return int(last)


@pytest.mark.parametrize("target", fuzz.TARGETS)
def test_some_wrong_documents_are_answered(target, capfd):
    files = target in fuzz.READERS
    assert fuzz.main(target, 0, (5000 if LONG else 100) if files else 25) == 0


@pytest.mark.long
@pytest.mark.timeout(SECONDS + 900)
@pytest.mark.parametrize("target", fuzz.TARGETS)
def test_wrong_documents_are_answered_for_long(target, sanitized):
    begin, seed, taken = time.monotonic(), 10**6, 0
    while time.monotonic() - begin < SECONDS / len(fuzz.TARGETS):
        taken += feed(target, seed, BATCH, sanitized)
        seed += BATCH
    assert taken > 0
