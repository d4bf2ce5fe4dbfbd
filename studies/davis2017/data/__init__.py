"""Published numbers of Davis 2017."""

from pathlib import Path

DATA = Path(__file__).resolve().parent
