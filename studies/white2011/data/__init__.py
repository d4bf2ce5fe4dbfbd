"""Published numbers of White and Dongarra 2011."""

from pathlib import Path

DATA = Path(__file__).resolve().parent
