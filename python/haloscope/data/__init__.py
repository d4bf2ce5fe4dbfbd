"""Files that ship with the package: schemas, machine profiles, and the published tables of every study."""

from pathlib import Path

DATA = Path(__file__).resolve().parent
