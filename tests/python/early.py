"""Builds that single tests need, made beside the tests before them, on what those leave of the cores.

A test says so by `@pytest.mark.built_early(NAME, *WORDS)`, where WORDS are the command that builds; what it calls then
waits for the build: `wait_for(NAME)`. A build that fails here is made again by the test, which reports it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOLS = {**os.environ, "PATH": os.pathsep.join([os.environ["PATH"], str(ROOT / ".venv" / "bin")])}

_ended: dict[str, threading.Event] = {}
_running: list[subprocess.Popen] = []
_stopped = threading.Event()


def start(commands: Mapping[str, Sequence[str]]) -> None:
    """Begin to run commands, one after the other, behind everything else that runs."""
    _ended.update({name: threading.Event() for name in commands})
    threading.Thread(target=_run, args=(dict(commands),), daemon=True).start()


def wait_for(name: str) -> None:
    """Wait until a build has ended; returns at once where none was begun."""
    if name in _ended:
        _ended[name].wait()


def stop() -> None:
    """End what still runs."""
    _stopped.set()
    for process in _running:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)


def _run(commands: Mapping[str, Sequence[str]]) -> None:
    for name, words in commands.items():
        if not _stopped.is_set():
            process = subprocess.Popen(["nice", "-n", "19", *words], cwd=ROOT, env=TOOLS, start_new_session=True,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
            _running.append(process)
            process.wait()
        _ended[name].set()
