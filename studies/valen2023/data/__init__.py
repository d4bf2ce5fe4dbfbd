"""Published numbers of Valen 2023."""

from pathlib import Path

DATA = Path(__file__).resolve().parent
