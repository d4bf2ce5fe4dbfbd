"""Cases that installed studies add to general tests: tables in studies/NAME/tests/cases.py."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from haloscope import guests
from paths import ROOT

STUDIES = ROOT / "studies"


def guest_cases(table: str) -> dict:
    """Return the cases that all studies add to a table."""
    files = STUDIES.glob("*/tests/cases.py") if guests.find_guests(guests.STUDIES) else ()
    return {name: case for file in sorted(files) for name, case in getattr(_load(file), table, {}).items()}


def _load(file: Path) -> ModuleType:
    name = f"cases_of_{file.parts[-3]}"
    if name not in sys.modules:
        sys.path.append(str(file.parent))  # its helpers are the tests of the study
        spec = importlib.util.spec_from_file_location(name, file)
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]
