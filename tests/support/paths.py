"""Folders of the checkout that tests read."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
CONSUMER = TESTS / "consumer"  # another project, which uses an installed Haloscope
RANK_PROGRAMS = TESTS / "bindings" / "ranks"  # programs for mpiexec
