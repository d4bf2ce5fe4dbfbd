"""Local measurements in the panels of the study's figures: only runs with equal cells, processing elements and
iterations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from haloscope.records import stats
from haloscope.records.rows import Row
from haloscope.report import components
from haloscope_studies.davis2017.measured import cg, scaling
from haloscope_studies.davis2017.measured.experiments import APP, VARIANTS
from haloscope_studies.davis2017.measured.scaling import Measured
from haloscope_studies.davis2017.replay import panels
from haloscope_studies.davis2017.replay.components import NAMES, SCALINGS
from haloscope_studies.davis2017.replay.panels import MACHINES, MODEL, Panel, Series, pair
from haloscope_studies.davis2017.replay.variants import PREDECESSOR

MS, US = 1e3, 1e6
OF_CG = MACHINES["hector"]  # whose tables of conjugate gradients have all processing elements


def lines(measured: Measured, solves: Sequence[Mapping]) -> dict[str, list[Series]]:
    """Return the lines of each panel that has a local run. solves: the records of `cg.run`."""
    known = {name: panel for sheet in panels.sheets().values() for name, panel in sheet.items()}
    found = {kind: _components(known[kind], runs(measured, kind)) for kind in SCALINGS}
    found["spread"] = _spread(known["spread"], runs(measured, "weak"))
    found["barriers"] = _barriers(known["barriers"], measured)
    found |= _errors(known, measured)
    found["serial"] = _serial(known["serial"], measured)
    found |= {f"{kind} variants": _variants(known[f"{kind} variants"], measured, kind) for kind in SCALINGS}
    found |= _solver(known, solves)
    return {name: kept for name, series in found.items() if (kept := [s for s in series if s.points])}


# ---- the same runs ---------------------------------------------------------------------------------------------------


def side_of(kind: str) -> int:
    """Return the cells per side of the study's weak scaling, a processing element's, or of its strong scaling."""
    return int(panels.rows("scaling_components", machine="minerva", scaling=kind)[0]["cells_per_side"])


def is_whole(row: Row, side: int) -> bool:
    """Return whether a run makes the iterations that the study prints for its size."""
    return bool(row.request["steps"] == panels.iterations(side))


def runs(measured: Measured, kind: str, letter: str = "A", barrier: bool = False) -> dict[float, Row]:
    """Return, by processing elements, the runs of a variant with the cells and iterations of the study's weak or strong
    scaling, from any experiment."""
    side = side_of(kind)
    return {
        float(p.pes): row
        for p, row in measured.items()
        if (p.app, p.letter, p.barrier, p.kept, p.piece) == (APP, letter, barrier, False, 0)
        and math.prod(row.request["cells"]) == side**3 * (p.pes if kind == "weak" else 1)
        and is_whole(row, side)
    }


def serial_runs(measured: Measured, letter: str, panel: Panel) -> dict[float, Row]:
    """Return, by cells per side, the serial runs of a variant that a panel has a point for."""
    return {
        float(p.side): row
        for p, row in measured.items()
        if (p.app, p.letter, p.pes, p.barrier, p.kept) == (APP, letter, 1, False, False)
        and p.side in panel.find(letter).points
        and is_whole(row, p.side)
    }


def shared_letters() -> list[str]:
    """Return the variants with the same change as in the study: A, and the variants made from the same variant."""
    return ["A", *(v.letter for v in VARIANTS if v.baseline and PREDECESSOR.get(v.letter) == v.baseline)]


# ---- hydro3d ---------------------------------------------------------------------------------------------------------


def _components(panel: Panel, found: Mapping[float, Row]) -> list[Series]:
    """Return walltime and components, seconds of a run, each by the statistic that counts."""
    series = [pair(panel, "walltime", {pes: scaling.walltime(row) for pes, row in found.items()})]
    for name in panels.COMPONENTS[1:]:
        seconds = {pes: components.counting(row.records)[NAMES.get(name, name)] for pes, row in found.items()}
        series.append(
            pair(panel, panels.words(name), {pes: s * found[pes].request["steps"] for pes, s in seconds.items()})
        )
    return series


def _spread(panel: Panel, found: Mapping[float, Row]) -> list[Series]:
    series = []
    for name in panels.COMPONENTS[1:]:
        least, mean, most = (
            {
                pes: row.request["steps"] * components.component(row.records, NAMES.get(name, name), statistic)
                for pes, row in found.items()
            }
            for statistic in ("min", "mean", "max")
        )
        series.append(pair(panel, panels.words(name), mean, ends={pes: (least[pes], most[pes]) for pes in found}))
    return series


def _barriers(panel: Panel, measured: Measured) -> list[Series]:
    seconds = [
        {pes: scaling.walltime(row) for pes, row in runs(measured, "weak", barrier=b).items()} for b in (False, True)
    ]
    return [pair(panel, label, found) for label, found in zip(("as studied", "with barriers"), seconds, strict=True)]


def _errors(known: Mapping[str, Panel], measured: Measured) -> dict[str, list[Series]]:
    """Return errors of the model fitted here, at sizes that no cost was fitted to, in per cent."""
    off = {row.id: 100 * (m.total / components.step_time(row.records) - 1) for _, row, m in scaling.errors(measured)}
    serial = serial_runs(measured, "A", known["serial"])
    found = {
        kind: {pes: off[row.id] for pes, row in runs(measured, kind).items() if row.id in off} for kind in SCALINGS
    }
    return {
        "serial errors": [
            pair(
                known["serial errors"], "serial", {n: off[row.id] for n, row in serial.items() if row.id in off}, MODEL
            )
        ],
        "errors": [pair(known["errors"], kind, points, MODEL) for kind, points in found.items()],
    }


def _serial(panel: Panel, measured: Measured) -> list[Series]:
    return [
        pair(panel, letter, {n: 1e9 * row.step.value / n**3 for n, row in serial_runs(measured, letter, panel).items()})
        for letter in shared_letters()
    ]


def _variants(panel: Panel, measured: Measured, kind: str) -> list[Series]:
    """Return the speed over A of the variants that the study has too."""
    base, series = runs(measured, kind), []
    for letter in shared_letters()[1:]:
        found = runs(measured, kind, letter)
        ratios = {pes: scaling.times_as_fast(row, base[pes]) for pes, row in found.items() if pes in base}
        gains = {pes: ratio for pes, ratio in ratios.items() if ratio}
        series.append(pair(panel, letter, {pes: g.value for pes, g in gains.items()}, ends=_ends(gains)))
    return series


def _ends(found: Mapping[float, stats.Estimate], factor: float = 1.0) -> dict[float, tuple[float, float]]:
    """Return the ends of intervals; the value itself where one launch has no interval."""
    return {
        x: (factor * e.low, factor * e.high) if math.isfinite(e.high) else (factor * e.value,) * 2
        for x, e in found.items()
    }


# ---- conjugate gradients ---------------------------------------------------------------------------------------------


def _solver(known: Mapping[str, Panel], solves: Sequence[Mapping]) -> dict[str, list[Series]]:
    """Return PETSc's local times on blocks of the study's size."""
    logs = [log for log in cg.typical(cg.logs(solves)) if (log.side, log.method) == (cg.SIDE, "standard")]
    return {
        "iteration": [_iteration(known["iteration"], solves, method) for method in cg.PUBLISHED],
        "shares": _shares(known["shares"], logs),
        "product": _product(known["product"], logs),
        "dots": _dots(known["dots"], logs),
        "all-reduce": _all_reduce(known["all-reduce"], solves),
    }


def _iteration(panel: Panel, solves: Sequence[Mapping], method: str) -> Series:
    here = {}
    for ranks in sorted({r["ranks"] for r in solves if r["kind"] == cg.SOLVE}):
        found = cg.iteration_s(solves, ranks=ranks, side=cg.SIDE, code="petsc", method=method)
        if found:
            here[float(ranks)] = stats.mean_over_launches(found)
    points = {ranks: MS * time.value for ranks, time in here.items()}
    return pair(panel, f"{OF_CG} {cg.PUBLISHED[method]}", points, ends=_ends(here, MS))


def _shares(panel: Panel, logs: Sequence[cg.Log]) -> list[Series]:
    functions = {name: which for name, which in cg.COMPOSITION.items() if any(s.label == name for s in panel.series)}
    return [
        pair(
            panel,
            name,
            {float(log.ranks): 100 * log.seconds[name][which] / log.composed for log in logs if name in log.seconds},
        )
        for name, which in functions.items()
    ]


def _product(panel: Panel, logs: Sequence[cg.Log]) -> list[Series]:
    """Return the two ends of the exchange: PETSc logs no parts of the multiplication."""
    return [
        pair(
            panel,
            name,
            {float(log.ranks): MS * log.seconds[name]["mean"] / log.calls[name] for log in logs if name in log.seconds},
        )
        for name in cg.EXCHANGE
    ]


def _dots(panel: Panel, logs: Sequence[cg.Log]) -> list[Series]:
    series = []
    for name in ("VecNorm", "VecTDot"):
        found = {float(log.ranks): cg.dot_parts(log, name) for log in logs if name in log.reducing}
        series.append(pair(panel, f"{name} compute", {ranks: US * work for ranks, (work, _) in found.items()}))
        ends = {ranks: (US * waits["min"], US * waits["max"]) for ranks, (_, waits) in found.items()}
        mean = {ranks: US * waits["mean"] for ranks, (_, waits) in found.items()}
        series.append(pair(panel, f"{name} allreduce", mean, ends=ends))
    return series


def _all_reduce(panel: Panel, solves: Sequence[Mapping]) -> list[Series]:
    points = {float(ranks): US * seconds for ranks, seconds in cg.alone(solves).items()}
    sizes = {r["bytes"] for r in solves if r["kind"] == cg.ALLREDUCE}
    return [
        pair(panel, s.label, points) for s in panel.series if any(s.label.endswith(f", {size} bytes") for size in sizes)
    ]
