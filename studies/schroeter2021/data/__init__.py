"""Published numbers of Schroeter 2021."""

from pathlib import Path

DATA = Path(__file__).resolve().parent
