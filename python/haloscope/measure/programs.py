"""Programs with their own apps: `--program PATH`, linked with Haloscope's `rank_main`.

Such a program describes its apps, which can then be planned and priced like any other, and replaces `haloscope-rank`
when ranks are started.
"""

from __future__ import annotations

import functools
import json
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from haloscope import bridge, files
from haloscope.bridge import build
from haloscope.errors import HaloscopeError, UnavailableError, UsageError

LIMIT_S = 20.0  # for a description, which computes nothing
REMEDY = "its main() should call haloscope::rank_main"


def use(path: Path, app: str, parameters: Mapping[str, str]) -> bridge.App:
    """Have ranks run `path` from now on, and declare its app.

    parameters: by name, as a command line writes them; the stages of a step may depend on them. Raises UsageError
    if the program does not describe the app, UnavailableError if it cannot be started.
    """
    words = [word for name, value in parameters.items() for word in ("--set", f"{name}={value}")]
    description = _describe(path.absolute(), app, words)
    build.use_rank_program(path.absolute())
    if bridge.is_declared(app) or app not in bridge.app_names():
        bridge.declare_app(description, _Legality(path.absolute()).reason if description["own_legality"] else None)
        _programs[app] = path
    return bridge.find_app(app)


def use_for(measured: Iterable[dict], path: Path | None) -> None:
    """Have ranks run `path`, and declare the apps of records that the library lacks; None changes nothing.

    Raises as `use` does.
    """
    if path is None:
        return
    for app in {r["request"]["app"] for r in measured if "app" in r["request"]} - set(bridge.app_names()):
        use(path, app, {})


_programs: dict[str, Path] = {}  # by app


def program_of(app: str) -> Path | None:
    """Return the program that provides an app, None for an app of the library."""
    return _programs.get(app)


def _describe(path: Path, app: str, words: list[str]) -> dict:
    command = [str(path), "--describe", app, *words]
    try:
        ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=LIMIT_S)
    except OSError as error:
        fault = f"--program {path} cannot be started: {error.strerror}"
        raise UnavailableError(f"{fault}; build it, or give its path") from None
    except subprocess.TimeoutExpired:
        raise HaloscopeError(f"'{' '.join(command)}' gave no answer within {LIMIT_S:g} s; {REMEDY}") from None
    if ended.returncode:
        reason = ended.stderr.strip().removeprefix("haloscope: ") or f"it ended with code {ended.returncode}"
        raise UsageError(f"--program {path}: {reason}")
    try:
        found: dict = files.json_of(ended.stdout)
        return found | {"own_legality": bool(found["own_legality"])}
    except (ValueError, KeyError, TypeError):
        raise UsageError(f"--program {path} does not describe its app; {REMEDY}") from None


class _Legality:
    """Queries a program for the reason that a choice of its app cannot run.

    One process answers all queries; it ends with this process.
    """

    def __init__(self, path: Path):
        self._path = path

    @functools.cached_property
    def _process(self) -> subprocess.Popen:
        words, pipe = [str(self._path), "--check", "-"], subprocess.PIPE
        return subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)

    def reason(self, choice: bridge.Choice) -> str:
        """Return the reason that a choice cannot run, "" if it can."""
        try:
            assert self._process.stdin and self._process.stdout
            self._process.stdin.write(json.dumps({"request": choice.to_json()}) + "\n")
            self._process.stdin.flush()
            reason: str = files.json_of(self._process.stdout.readline())
            return reason
        except (OSError, ValueError):
            raise HaloscopeError(f"{self._path} --check ended early; {REMEDY}") from None
