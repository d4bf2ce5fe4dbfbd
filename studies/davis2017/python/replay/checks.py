"""The model rows C1 to C8 of the 2017 study's checklist, recomputed from printed data alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

import numpy as np

from haloscope import bridge
from haloscope.model import fit, placement, profile
from haloscope.studies import checks
from haloscope.studies import published as table
from haloscope.studies.checks import Check
from haloscope_studies.davis2017 import network
from haloscope_studies.davis2017.replay import hydra_kernels, hydra_runs, observations, terms
from haloscope_studies.davis2017.replay import profiles as published
from haloscope_studies.davis2017.replay.contention import batch_time
from haloscope_studies.davis2017.replay.walltime import predict

# Eq. 5.3 to 5.14 expanded by hand: occurrences of a term in an iteration with n inner loops, as (per loop, constant).
EXPANSION = {
    "kernel": {
        **dict.fromkeys(("MDT1", "MDT2", "Mlagh_Init", "Mlagh7", "Mvolflx", "Madv1", "Madv2", "Purge"), (0, 1)),
        **dict.fromkeys((f"Madv{d}{i}" for d in ("x", "y", "z") for i in (1, 2)), (0, 1)),
        **dict.fromkeys((f"Madvm{d}1" for d in "xyz"), (0, 1)),
        **dict.fromkeys((*(f"Mlagh{i}" for i in range(1, 7)), "UpdVel", "MBFlux", "Lartvis1"), (1, 0)),
        **dict.fromkeys(("Mdivu", "Leosdrv1"), (2, 0)),
        "ShortPrint1": (0, 1),
    },
    "exchange": {"Lartvis": (1, 0), "Mlagh1": (0, 1), "Mlagh2": (1, 0), "Madv": (0, 3), "Madvm": (0, 3)},
    "boundary": {
        "Lartvis": (1, 0),
        "Mlagh1": (0, 1),
        "Mlagh2": (1, 0),
        "Mlagh3": (1, 0),
        "Madv": (0, 3),
        "Madvm": (0, 3),
    },
    "gather": {"MDT": (0, 1), "Mlagh1": (1, 0), "Mlagh2": (1, 0), "ShortPrint_Ag1": (0, 1), "ShortPrint_Agv1": (0, 1)},
    "allocate": dict.fromkeys(("MDT", "Mlagh", "Madv"), (0, 1)),
    "free": dict.fromkeys(("MDT", "Mlagh", "Madv"), (0, 1)),
}


def all_checks() -> list[Check]:
    """Return every check of this module, in order of the rows."""
    return [
        *terms_of_an_iteration(),
        *layout(),
        *message_sizes(),
        *pair_counts(),
        *kernel_fits(),
        *message_regimes(),
        *contention(),
        *recovered_exchange(),
        *collectives(),
    ]


def terms_of_an_iteration() -> list[Check]:
    """C1: the tree of terms against eq. 5.2 to 5.14 expanded by hand, for 1 to 4 inner loops."""
    app = terms.load("hydra")
    wrong = []
    for n in range(1, 5):
        expected = {
            terms.Term(kind, name): a * n + b for kind, names in EXPANSION.items() for name, (a, b) in names.items()
        }
        wrong += [(n, term) for term in expected.keys() | app.counts(n).keys() if app.counts(n)[term] != expected[term]]
    counts = app.run_counts(hydra_runs.iterations(100))
    stages = sum(times for term, times in counts.items() if term.kind == "exchange")
    return [
        Check(
            "C1",
            "terms per iteration, n = 1..4",
            f"{4 * sum(map(len, EXPANSION.values()))} by hand",
            f"{len(wrong)} differ",
            "none",
            checks.state(not wrong),
        ),
        Check(
            "C1",
            "exchange stages of the 100^3 run",
            str(2 * 351 + 7 * 217),
            str(stages),
            "equal",
            checks.state(stages == 2 * 351 + 7 * 217),
        ),
    ]


OTHER_ORDER = 2048  # ranks whose process grid in table 4.2 contradicts the order of dimensions in table 5.8


def layout() -> list[Check]:
    """C2: local cells, socket loads and neighbours."""
    split = bridge.Layout((53, 1, 1), (3, 1, 1), (False,) * 3)
    cells = [split.owned(rank).shape[0] for rank in range(3)]
    eight, sixteen = (placement.place("fill", p, 2, 6).active().tolist() for p in (8, 16))
    grid = (3, 4, 5)
    wanted = bridge.Layout((60,) * 3, grid, (False,) * 3)
    same = all(
        placement.neighbours(grid, offset)[rank] == wanted.neighbour(rank, offset)
        for offset in np.vstack((np.eye(3, dtype=int), -np.eye(3, dtype=int))).tolist()
        for rank in range(60)
    )
    grids = [(printed, ours) for ranks, printed, ours in observations.decompositions() if ranks != OTHER_ORDER]
    theirs, ours = (", ".join(each) for each in zip(*grids, strict=True))
    return [
        Check(
            "C2",
            "process grids of table 4.2",
            theirs,
            ours,
            "equal",
            checks.state(all(printed == ours for printed, ours in grids)),
        ),
        Check(
            "C2", "53 cells on 3 ranks", "18, 18, 17", ", ".join(map(str, cells)), "equal", _same(cells, [18, 18, 17])
        ),
        Check(
            "C2",
            "ranks on each rank's socket, 8 ranks",
            "6 x 6, 2 x 2",
            _runs(eight),
            "equal",
            _same(eight, [6] * 6 + [2] * 2),
        ),
        Check("C2", "the same, 16 ranks", "12 x 6, 4 x 4", _runs(sixteen), "equal", _same(sixteen, [6] * 12 + [4] * 4)),
        Check(
            "C2",
            "neighbours of 3x4x5 ranks (arrays against core)",
            "equal",
            "equal" if same else "differ",
            "equal",
            checks.state(same),
        ),
    ]


def _same(a: Iterable, b: Iterable) -> str:
    return checks.state(list(a) == list(b))


def _runs(loads: list[int]) -> str:
    return ", ".join(f"{count} x {load}" for load, count in sorted(Counter(loads).items(), reverse=True))


def message_sizes() -> list[Check]:
    """C3: every printed size against the plan of the same rank."""
    app, rows, wrong = terms.load("hydra"), table("davis2017", "message_sizes"), 0
    for row in rows:
        d = "XYZ".index(row["direction"])
        plan = bridge.make_plan(*_case(row["case"], d), app.exchange(row["stage"]))
        sizes = {m.bytes for m in plan.sent() if m.round == d and _type(plan, m) == row["data_type"]}
        wrong += sizes != {int(row["message_bytes"])}
    title = "bytes per message, five stages"
    made = [Check("C3", title, f"{len(rows)} sizes", f"{wrong} differ", "byte-exact", checks.state(not wrong))]
    stages = table("davis2017", "exchange_stages")
    wrong = sum(not _has_quantities(app.data["exchanges"][row["stage"]], row) for row in stages)
    return [
        *made,
        Check(
            "C3",
            "quantities and halos of the stages, table 5.6",
            f"{len(stages)} rows",
            f"{wrong} differ",
            "equal",
            checks.state(not wrong),
        ),
    ]


CENTRINGS = {"cell": "cell_centred", "node": "nodal", "face_x": "face_x", "face_y": "face_y", "face_z": "face_z"}


def _has_quantities(stage: dict, row: dict[str, str]) -> bool:
    """Return whether a stage of the description has the quantities of a row of table 5.6, and its halo."""
    of_type = [q for q in stage["quantities"] if q["type"] == row["data_type"]]
    counts = {name: sum(q["count"] for q in of_type if q["centring"] == name) for name in CENTRINGS}
    return stage["halo"] == int(row["halo"]) and counts == {
        name: int(row[column]) for name, column in CENTRINGS.items()
    }


def _case(name: str, direction: int) -> tuple[bridge.Layout, int]:
    """Return layout and rank; a size printed for 1x1x2 along x or y, without a neighbour, is for two ranks there."""
    shapes = {"centre_of_3x3x3": ((3, 3, 3), 13), "pe0_of_2x2x2": ((2, 2, 2), 0)}
    grid, rank = shapes.get(name, (tuple(2 if d == direction else 1 for d in range(3)), 0))
    return bridge.Layout(tuple(100 * p for p in grid), grid, (False,) * 3), rank


def _type(plan: bridge.Plan, message: bridge.Message) -> str:
    return plan.spec.quantities[message.regions[0].quantity].type


def pair_counts() -> list[Check]:
    """C4: pairs on the worst node, node-fill with 12 ranks per node."""
    wanted: dict = defaultdict(lambda: np.zeros((2, 3), int))
    nodes = {}
    for row in table("davis2017", "pair_counts"):
        ranks = int(row["pes"])
        wanted[ranks][("intra", "inter").index(row["placement"]), "XYZ".index(row["dimension"])] = int(row["pairs"])
        nodes[ranks] = {int(n) for n in row["worst_node"].split("/")}
    made = []
    for ranks, pairs in wanted.items():
        counts = placement.pair_counts(hydra_runs.run("weak", ranks).process_grid, placement.place("fill", ranks, 2, 6))
        ours = np.array(counts.worst)
        good = (ours == pairs).all() and counts.worst_node() in nodes[ranks]
        printed, counted = (f"{a.tolist()} {b.tolist()}" for a, b in (pairs, ours))
        made.append(Check("C4", f"pairs in node, across; {ranks} ranks", printed, counted, "equal", checks.state(good)))
    return made


def kernel_fits() -> list[Check]:
    """C5: the 30 % rule on the twelve printed kernels, with least relative and with plain least squares."""
    split, worst = {}, 0.0
    for name, (cells, times) in hydra_kernels.printed().items():
        breaks = fit.breaks_by_rule(cells, times, positive=False)
        split[name] = breaks
        errors = fit.relative_errors(fit.pieces(cells, times, breaks, positive=False), cells, times)
        worst = max(worst, float(np.abs(errors).max()))
    ours = {name: breaks for name, breaks in split.items() if breaks}
    made = [
        Check(
            "C5",
            "kernels with two ranges (30 % rule)",
            "Madvmz1 from 120^3",
            ", ".join(f"{n} from {round(b[0] ** (1 / 3))}^3" for n, b in ours.items()),
            "equal",
            checks.state(ours == {"Madvmz1": [120.0**3]}),
        ),
        Check(
            "C5", "largest error, least relative error", "8.4 %", f"{worst:.1%}", "< 9 %", checks.state(worst < 0.09)
        ),
    ]
    for name, published_error in (("Madvx2", 0.34), ("Madvmx1", 0.38), ("Madvy2", -2.14), ("Madvmz1", -14.55)):
        cells, times = hydra_kernels.printed()[name]
        error = fit.relative_errors(fit.pieces(cells, times, relative=False, positive=False), cells, times)[0]
        good = abs(error - published_error) < 0.01
        title = f"{name} at 30^3, plain least squares, one line"
        made.append(Check("C5", title, f"{published_error:.0%}", f"{error:.0%}", "1 point", checks.state(good)))
    return made


def message_regimes() -> list[Check]:
    """C6: slopes and intercepts of table 5.9 from the PingPong times of table A.6."""
    rows = table("davis2017", "message_regimes")
    made = []
    for place in ("intra", "inter"):
        mine = [r for r in rows if r["placement"] == place]
        sizes, times = published.pingpong("minerva", place)
        breaks = [float(r["bytes_from"]) for r in mine[1:]]
        ours = fit.pieces(sizes, times * 1e6, breaks, relative=False, positive=False)
        for row, found in zip(mine, ours, strict=True):
            slope, fixed = float(row["slope_us_per_byte"]), float(row["intercept_us"])
            off = max(abs(found.slope / slope - 1), abs(found.fixed / fixed - 1))
            theirs, fitted = (f"{s:.3e} us/B, {f:.3g} us" for s, f in ((slope, fixed), (found.slope, found.fixed)))
            title = f"{place}-node, from {row['bytes_from']} B"
            made.append(Check("C6", title, theirs, fitted, "1 %", checks.state(off < 0.01)))
    return made


def contention() -> list[Check]:
    """C7: messages at the same time by one rule, set by PingPing alone and tried on Exchange and on DawnDev's pairs."""
    made = []
    for where, ping_ping, exchange in (("node", (2.0,), (4.0,)), ("network", (1.0, 1.15), (2.0, 2.3))):
        ours = [_exchange_by(where, duplex) for duplex in ping_ping]
        good = all(abs(o / e - 1) < 0.02 for o, e in zip(ours, exchange, strict=True))
        title = f"Exchange over PingPong {'in a node' if where == 'node' else 'between nodes'}, from PingPing"
        texts = [" to ".join(f"{value:.2f}" for value in found) for found in (exchange, ours)]
        made.append(Check("C7", title, texts[0], texts[1], "2 %", checks.state(good), "messages of 4 MiB"))
    for place, pairs, sharing in PAIRS:
        errors = pair_errors(place, pairs, sharing)
        large = {size: error for size, error in errors.items() if size >= LARGE}
        most = max(large.values(), key=abs)
        where = "in a node" if place == "intra" else f"on a link, {pairs} in all"
        title = f"DawnDev, {sharing} pairs {where}, {len(large)} sizes"
        note = f"from {LARGE} B; nothing fitted to runs with several pairs"
        made.append(
            Check("C7", title, "table A.12", f"at most {most:+.1%} off", "10 %", checks.state(abs(most) < 0.1), note)
        )
    p = profile.load("dawndev")
    factor = batch_time(p, "network", [16384] * 4) / network.message_time(p, "network", 16384)
    title = "DawnDev, four pairs on one link over one, 16384 B"
    return [*made, Check("C7", title, "3.5 to 3.9", f"{factor:.2f}", "3.5 to 3.9", checks.state(3.5 <= factor <= 3.9))]


# Runs with several pairs on DawnDev: where, pairs in all, pairs that share a link or a node's memory. Source: table
# A.12.
PAIRS = (("intra", 2, 2), ("inter", 64, 4), ("inter", 128, 4), ("inter", 256, 4))
LARGE = 4096  # bytes, from which a message is mostly its bytes


def _exchange_by(where: str, duplex: float) -> float:
    """Return the ratio of Exchange to PingPong on Minerva if PingPing takes `duplex` times PingPong."""
    size, classes = 2**22, profile.load("minerva").data["network"]["classes"]
    contended = {name: {**c, "contention": {"duplex": duplex}} for name, c in classes.items()}
    p = profile.Profile({"name": "minerva", "network": {"classes": contended}})
    return batch_time(p, where, [size] * 2, [size] * 2) / network.message_time(p, where, size)


def pair_errors(place: str, pairs: int, sharing: int) -> dict[int, float]:
    """Return the relative error of DawnDev's time with several concurrent pairs, by message size."""
    p, where = profile.load("dawndev"), published.WHERE[place]
    sizes, times = published.pingpong("dawndev", place, pairs)
    return {int(s): batch_time(p, where, [s] * sharing) / t - 1 for s, t in zip(sizes, times, strict=True)}


def recovered_exchange() -> list[Check]:
    """C7: the model's own point-to-point column on one node, each run by a factor fitted to the five others."""
    (wanted, alone), made = modelled_exchange(), []
    for (scaling, ranks), printed in wanted.items():
        others = [case for case in wanted if case != (scaling, ranks)]
        factor = hydra_runs.stage_factor([alone[case] for case in others], [wanted[case] for case in others])
        ours = alone[scaling, ranks] * factor
        note = "one factor, fitted to the five others"
        note += "; printed 16.98, its total needs 8.34" if (scaling, ranks) == ("weak", 4) else ""
        texts = (f"{printed:.2f} s", f"{ours:.2f} s ({ours / printed - 1:+.1%})", "7 %")
        good = abs(ours / printed - 1) < 0.07
        made.append(Check("C7", f"model's exchange, {scaling}, {ranks} ranks", *texts, checks.state(good), note))
    return made


def modelled_exchange() -> tuple[dict, dict]:
    """Return the study model's point-to-point seconds on one node, and the seconds of its messages alone, by scaling
    and ranks.
    """
    wanted = {c: hydra_runs.model_column(*c, "point_to_point") for c in hydra_runs.ON_ONE_NODE if c[1] <= 8}
    classes = _without_factor(profile.load("minerva").data["network"]["classes"])
    return wanted, {case: hydra_runs.messages_alone(classes, *case) for case in wanted}


def _without_factor(classes: dict) -> dict:
    """Return network classes without their stage factors."""
    return {
        name: {**c, "contention": {k: v for k, v in c["contention"].items() if k != "stage_factor"}}
        for name, c in classes.items()
    }


def collectives() -> list[Check]:
    """C8: eq. 5.42 with both roundings upwards, without ShortPrint's gathers."""
    app, p = hydra_runs.validated(), profile.load("minerva")
    derived = {
        "weak": (0.003, 0.006, 0.009, 0.012, 0.025, 0.038, 0.051, 0.066),
        "strong": (0.004, None, None, None, None, None, None, 0.082),
    }
    made = []
    for scaling, column in derived.items():
        for ranks, value in zip(hydra_runs.PROCESSES[1:], column, strict=True):
            ours = predict(app, p, hydra_runs.run(scaling, ranks)).components["collectives"]
            printed = hydra_runs.model_column(scaling, ranks, "collectives")
            # The model column has two digits after the point.
            good = abs(ours - value) <= 0.0005 if value else abs(ours - printed) <= 0.01
            texts = (f"{value:.3f} s" if value else f"{printed:.2f} s (column)", f"{ours:.4f} s")
            title = f"all-gathers, {scaling}, {ranks} ranks"
            made.append(Check("C8", title, *texts, "last digit", checks.state(good)))
    return made
