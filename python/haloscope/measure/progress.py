"""One progress line on stderr with the time left; a few plain lines if stderr is not a terminal."""

from __future__ import annotations

import sys
import time
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from haloscope.terminal import shown

PLAIN_EVERY_S = 5.0
MOST_SHOWN = 48  # characters of the last measurement's name


def duration(seconds: float) -> str:
    """Format a time for people: `8 s`, `2 min 05 s`."""
    seconds = round(seconds)
    return f"{seconds} s" if seconds < 60 else f"{seconds // 60} min {seconds % 60:02d} s"


class Line:
    """Counts finished measurements out of `total`. Redraws only in `reach`, so that drawing disturbs no measurement."""

    def __init__(self, total: int, label: str):
        """Prepare a line for the operation `label`, done `total` times."""
        self._total, self._label, self._done = total, shown(label), 0
        self._begin = self._spoke = time.monotonic()
        self._console = Console(stderr=True, highlight=False)
        text, left = (TextColumn(f"{{task.{part}}}", markup=False) for part in ("description", "fields[left]"))
        columns = text, BarColumn(30), MofNCompleteColumn(), TimeElapsedColumn(), left
        self._bar = Progress(*columns, console=self._console, auto_refresh=False, transient=True)
        self._task = self._bar.add_task(self._label, total=total, left="")

    def __enter__(self) -> Self:
        """Begin to show the line."""
        if self._console.is_terminal:
            self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """Remove the line, or print the elapsed time."""
        if self._console.is_terminal:
            self._bar.stop()
        elif self._done:
            self._plain(f"took {duration(time.monotonic() - self._begin)}")

    def step(self, text: str = "") -> None:
        """Count one more as done; `text` names it."""
        self.reach(self._done + 1, text)

    def reach(self, done: float, text: str = "") -> None:
        """Set the number of finished measurements; `text` names the last."""
        self._done = round(done)
        if self._console.is_terminal:
            left = f"about {duration(self.left())} left" if self._done else ""
            shown_text = f"{self._label} {shown(text, MOST_SHOWN)}"
            self._bar.update(self._task, completed=self._done, description=shown_text, left=left, refresh=True)
        elif time.monotonic() - self._spoke > PLAIN_EVERY_S:
            self._spoke = time.monotonic()
            self._plain(f"{duration(self.left())} left")

    def left(self) -> float:
        """Estimate the seconds left from the mean time so far."""
        return (time.monotonic() - self._begin) / max(1, self._done) * (self._total - self._done)

    def _plain(self, text: str) -> None:
        print(f"haloscope: {self._label} {self._done}/{self._total}, {text}", file=sys.stderr, flush=True)
