"""Predictions of exchanges in a table: each is predicted as a step whose only work is its exchange."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping

import numpy as np

from haloscope import bridge
from haloscope.errors import UnavailableError
from haloscope.fit.external_table import Measured
from haloscope.model import placement, predict
from haloscope.model.profile import Profile, checked

APP = "exchange"
_REALS = {4: "f32", 8: "f64"}
_forms: dict[str, dict] = {}  # steps by form, of all exchanges declared so far


def form_of(row: Measured) -> str:
    """Return the form of the app whose step is this exchange: fields, halo, dimensions."""
    return f"{row.fields}x{row.halo}x{len(row.cells)}d"


def declare(rows: Iterable[Measured]) -> None:
    """Declare the steps of some exchanges to the library: fields that a sweep of no cost reads and writes."""
    new = {form_of(row): row for row in rows}.keys() - _forms.keys()
    if not new:
        return
    for row in rows:
        _forms.setdefault(form_of(row), _step(row))
    for dims in (2, 3):
        forms = {name: step for name, step in _forms.items() if name.endswith(f"{dims}d")}
        if forms:
            bridge.declare_app(_description(f"{APP}{dims}d", dims, forms))


def choice_of(row: Measured) -> bridge.Choice:
    """Return the choice that makes this exchange; its step must have been declared."""
    grid = row.process_grid
    return bridge.Choice(
        app=f"{APP}{len(row.cells)}d",
        cells=tuple(c * p for c, p in zip(row.cells, grid, strict=True)),
        ranks=math.prod(grid),
        form=form_of(row),
        real=_REALS[row.element_bytes],
        strategy=row.strategy,
        process_grid="x".join(map(str, grid)),
    )


@functools.lru_cache(maxsize=64)
def setting_of(
    node_grid: tuple[int, ...], socket_grid: tuple[int, ...], core_grid: tuple[int, ...]
) -> predict.RunSettings:
    """Return the settings that map each block to the node and socket whose box of the process grid contains it."""
    inside = np.array(socket_grid) * np.array(core_grid)
    at = placement.coordinates(tuple(np.array(node_grid) * inside))
    node = np.ravel_multi_index(tuple((at // inside).T), node_grid, order="F")
    socket = np.ravel_multi_index(tuple((at % inside // np.array(core_grid)).T), socket_grid, order="F")
    return predict.RunSettings(placement="custom", custom=tuple(zip(node.tolist(), socket.tolist(), strict=True)))


def with_kernels(data: Mapping, rows: Iterable[Measured]) -> Profile:
    """Return a profile in which the sweeps of some exchanges cost nothing."""
    free = {"1": [{"from_cells": 0, "to_cells": None, "fixed_s": 0, "per_cell_s": 0}]}
    names = {f"{APP}{len(row.cells)}d/{form_of(row)}/{_REALS[row.element_bytes]}" for row in rows}
    return checked({**data, "kernels": {**data.get("kernels", {}), **dict.fromkeys(names, free)}})


def predict_row(row: Measured, profile: Profile) -> predict.Prediction:
    """Return the prediction of an exchange by a profile of `with_kernels`.

    Raises UsageError for a strategy that cannot make this exchange, UnavailableError if the profile lacks a cost of it.
    """
    if profile.machine["nodes"] < row.nodes:
        raise UnavailableError(
            f"the profile '{profile.name}' is of {profile.machine['nodes']} nodes, line {row.line} of {row.nodes}"
        )
    return predict.predict(
        choice_of(row), profile, setting_of(row.node_grid, row.socket_grid, row.core_grid), samples=0
    )


def _step(row: Measured) -> dict:
    every = range(row.fields)
    quantity = {"centring": "cell", "edges": [["fixed"] * 2] * 3, "element_bytes": 0, "slots": 2, "type": "real"}
    sweep = {
        "name": "sweep",
        "box_stencil": True,
        "in_place": False,
        "flops_per_point": 0.0,
        "writes": list(every),
        "reads": [{"layers": row.halo, "quantity": q} for q in every],
    }
    stage = {"name": "step", "least": 1, "repeats": 0, "reductions": [], "sweeps": [sweep]}
    return {"quantities": [quantity | {"name": f"u{q}"} for q in every], "stages": [stage]}


def _description(name: str, dims: int, forms: Mapping[str, dict]) -> dict:
    return {
        "name": name,
        "summary": "only an exchange; its form lists fields, layers and dimensions",
        "dims": dims,
        "forms": list(forms),
        "reals": list(_REALS.values()),
        "process_grid": "",
        "periodic": True,
        "initials": [],
        "starts_random": True,
        "fused_forms": [],
        "device_levels": 1,
        "own_legality": False,
        "parameters": [],
        "steps": dict(forms),
    }
