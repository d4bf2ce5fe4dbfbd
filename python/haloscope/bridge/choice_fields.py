"""The fields of a choice. Made from choice.def by scripts/schema.py."""

from __future__ import annotations

from dataclasses import dataclass

Value = bool | int | float | str | tuple[float, ...]  # of an app's parameter


@dataclass(frozen=True)
class ChoiceFields:
    """Everything that a user chooses for one run; `fields()` has the meanings."""

    app: str = "advection3d"
    cells: tuple[int, ...] = (1, 1, 1)
    ranks: int = 1
    threads: int = 1
    form: str = ""
    real: str = "f64"
    schedule: str = "bulk"
    strategy: str = "ordered/p2p"
    stage_strategies: tuple[tuple[str, str], ...] = ()
    depth: int = 1
    substeps: str = "full"
    process_grid: str = ""
    periodic: tuple[bool, ...] = ()
    sharing: str = "guided"
    piece: int = 0
    tiles: int = 8
    barrier: bool = False
    isa: str = ""
    stores: str = "auto"
    temporaries: str = "kept"
    ftz: bool = False
    nodes: int = 0
    placement: str = "block"
    reorder: str = "none"
    memory: str = "own"
    device: str = ""
    device_kernel: str = ""
    device_block: str = ""
    pack: str = "first"
    walls: int = 1
    capture: bool = False
    set: tuple[tuple[str, Value], ...] = ()
