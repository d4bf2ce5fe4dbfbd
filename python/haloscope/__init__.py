"""Halo exchange for structured grids: run, measured, predicted, and provided to programs.

`haloscope.best(app, cells, ranks, profile)` returns the fastest choice. `haloscope.Grid`, `haloscope.Field` and
`haloscope.Exchange` fill the halos of your own arrays (module `haloscope.exchange`). `haloscope.redistribute` moves
arrays to another split of their grid (module `haloscope.redistribution`), `haloscope.write` and `haloscope.read` to and
from files (module `haloscope.field_files`). `haloscope.sum`, `haloscope.dot` and `haloscope.norm` have the same bits on
any number of ranks (module `haloscope.sums`). The modules `haloscope.jax` and `haloscope.numba` have exchanges for
compiled programs. Every error is a `HaloscopeError`: `UsageError` for a request that cannot work, `UnavailableError`
for one that this machine, build or MPI cannot serve.
"""

from typing import Any

_PUBLIC = {
    "best": "haloscope.advice.best",
    "Grid": "haloscope.exchange",
    "Field": "haloscope.exchange",
    "Exchange": "haloscope.exchange",
    "Panels": "haloscope.panels",
    "Seam": "haloscope.panels",
    "cubed_sphere": "haloscope.panels",
    "Redistribution": "haloscope.redistribution",
    "redistribute": "haloscope.redistribution",
    "write": "haloscope.field_files",
    "read": "haloscope.field_files",
    "sum": "haloscope.sums",
    "dot": "haloscope.sums",
    "norm": "haloscope.sums",
    "HaloscopeError": "haloscope.errors",
    "UsageError": "haloscope.errors",
    "UnavailableError": "haloscope.errors",
}


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:  # on first use: their imports take a while
        import importlib

        return getattr(importlib.import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'haloscope' has no attribute '{name}'")
