"""Output for the user; text from files of others cannot control the terminal."""

from __future__ import annotations

import json
import re
import sys

import click

MOST_SHOWN = 200  # characters of a text of others
MOST_IN_MESSAGE = 4000  # of a whole message
# Control characters except tabs and line ends, characters that change the direction of writing, halves of characters.
_STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def printable(text: str) -> str:
    r"""Return a text with characters that control a terminal written as \x1b or \u202e; lines and tabs stay."""
    return _STEERS.sub(_code, text)


def shown(text: object, most: int = MOST_SHOWN) -> str:
    """Return a text of others on one line, cut after `most` characters."""
    whole = str(text)
    cut = f"{whole[:most]}..." if len(whole) > most else whole
    return re.sub("[\t\n]", _code, printable(cut))


def _code(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def json_text(value: object) -> str:
    """Return JSON that is printable as it is."""
    return json.dumps(value, indent=1).replace("\x7f", r"\u007f")


def echo(text: str = "", err: bool = False) -> None:
    """Print lines of text on standard output, or on standard error."""
    click.echo(printable(text), err=err)


def say(message: str) -> None:
    """Print one message for the user on standard error, on one line."""
    print(f"haloscope: {shown(message, MOST_IN_MESSAGE)}", file=sys.stderr)
