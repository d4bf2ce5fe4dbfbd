"""Cases of this study for the general tests."""

from __future__ import annotations

from random import Random

from mutate import lines_of


def of_records(random: Random) -> bytes:
    """Records of two depths, changed by chance."""
    from test_any_file import measured

    return lines_of(random, measured())


FILES_OF_COMMANDS = {"study": (of_records, lambda file: ("study", "valen2023", "--from", file))}
APPENDING = {"study": ("study", "valen2023", "--quick")}
READING = {"study": ("valen2023", "--from")}
