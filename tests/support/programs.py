"""Programs of tests: those on PATH or in the environment of the tests, and shell scripts in place of others."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import psutil

TOOLS = os.pathsep.join([os.environ["PATH"], str(Path(sys.executable).parent)])


def executable(path: Path, script: str) -> Path:
    """Make a program of a shell script."""
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def ended(*words, **more) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; more: arguments of subprocess.run(), where `env` replaces the environment of tests."""
    environment = more.setdefault("env", os.environ | {"PATH": TOOLS})
    command = [shutil.which(str(words[0]), path=environment.get("PATH")) or str(words[0]), *map(str, words[1:])]
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)


def run(*words, code: int = 0, **more) -> str:
    """Run a command to its end, which must have this exit code; return its output, or its error for a code above 0."""
    done = ended(*words, **more)
    assert done.returncode == code, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stderr if code else done.stdout


def has_ended(pid: int, limit_s: float) -> bool:
    """Return whether a process ends within some seconds: the system may take a moment to forget one that was killed."""
    try:
        process = psutil.Process(pid)
        end = time.monotonic() + limit_s
        while process.status() != psutil.STATUS_ZOMBIE and time.monotonic() < end:
            time.sleep(0.01)
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
