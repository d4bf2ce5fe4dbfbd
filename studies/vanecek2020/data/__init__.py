"""Published numbers of Vanecek 2020."""

from pathlib import Path

DATA = Path(__file__).resolve().parent
