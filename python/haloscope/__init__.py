"""Haloscope: runs, measures, predicts and hands over halo exchange for structured grids.

`haloscope.best(app, cells, ranks, profile)` is the library call; everything else is in the modules of this package.
"""


def __getattr__(name: str):
    if name == "best":  # on first use: its imports take a while
        from haloscope.advice.best import best

        return best
    raise AttributeError(f"module 'haloscope' has no attribute '{name}'")
