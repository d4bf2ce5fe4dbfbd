"""Sweeps: lists and ranges on the command line become configurations, illegal ones filtered out with their reason."""

from __future__ import annotations

import fnmatch
import itertools
import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace

from haloscope import absent, core
from haloscope.errors import NotAvailable, UsageProblem, unknown_name

MOST_VALUES = 1000  # of one range: a longer one is a slip of the finger

_RANGE = re.compile(r"^(?P<first>[^.]+)\.\.(?P<last>[^.*+]+)(?P<step>[*+]\d+)?$")


@dataclass(frozen=True)
class Configuration:
    """One thing to measure. Fields are the options of `haloscope-rank`; "" or 0 leaves its default."""

    app: str
    cells: tuple[int, ...]
    periodic: str = ""
    ranks: int = 1
    process_grid: str = ""
    threads: int = 1
    form: str = ""
    real: str = "f64"
    schedule: str = "bulk"
    strategy: str = "ordered/p2p"
    depth: int = 1
    region: str = "full"
    sharing: str = ""
    tiles: int = 0
    isa: str = ""
    barrier: bool = False
    nodes: int = 0
    placement: str = ""
    memory: str = ""
    device: str = ""
    device_kernel: str = ""
    device_block: str = ""
    pack: str = ""
    box: int = 0
    graph: bool = False
    settings: tuple[tuple[str, str], ...] = ()  # how to measure: steps, seconds, repetitions, ... in rank's own words

    @property
    def shape(self) -> str:
        """The cells as text, `128x128x64`."""
        return "x".join(map(str, self.cells))

    @property
    def id(self) -> str:
        """A readable name that is the same for the same work in any launch; how long it is measured has no part in it."""
        parts = [
            self.app,
            self.shape,
            f"r{self.ranks}",
            f"t{self.threads}",
            self.schedule,
            self.strategy,
            f"d{self.depth}",
        ]
        if self.depth > 1:
            parts.append(self.region)
        parts += [self.real, self.form, self.process_grid, self.sharing, self.isa]
        parts += [f"periodic={self.periodic}"] if self.periodic else []
        parts += [f"tiles={self.tiles}"] if self.tiles else []
        parts += ["barrier"] if self.barrier else []
        parts += [f"nodes={self.nodes}", self.placement] if self.nodes else []
        parts += [f"memory={self.memory}"] if self.memory else []
        parts += [f"device={self.device}"] if self.device else []
        parts += [f"kernel={self.device_kernel}"] if self.device_kernel else []
        parts += [f"block={self.device_block}"] if self.device_block else []
        parts += [f"pack={self.pack}"] if self.pack else []
        parts += [f"box={self.box}"] if self.box else []
        parts += ["graph"] if self.graph else []
        parts += [f"{name}={value}" for name, value in self.settings if name in WORK_SETTINGS]
        return ",".join(filter(None, parts))

    def line(self) -> str:
        """The line of a configurations file that makes `haloscope-rank` measure this."""
        words = [self.app, "--id", self.id, "--cells", self.shape]
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name in ("app", "cells", "ranks", "settings") or value in ("", 0, False):
                continue
            words.append("--" + f.name.replace("_", "-"))
            words += [] if value is True else [str(value)]
        for name, value in self.settings:
            words += [f"--{name}", value]
        return " ".join(words)

    def request(self) -> dict:
        """What a `skipped` or `failed` record says of the request."""
        plain = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "settings"}
        plain["cells"] = list(self.cells)
        return {name: value for name, value in plain.items() if value not in ("", 0)}


# settings that change what is computed
WORK_SETTINGS = ("velocity", "nu", "weights", "initial", "seed", "function", "precision", "residuum", "ftz")
BOXES = ("box", "box-overlap")  # schedules of a device whose messages are between cells of the host
AXES = tuple(f.name for f in fields(Configuration) if f.name not in ("app", "settings"))


@dataclass
class Sweep:
    """What to measure, and what cannot be, each with its reason."""

    configurations: list[Configuration] = field(default_factory=list)
    refused: list[tuple[Configuration, str]] = field(default_factory=list)
    lacking: list[tuple[Configuration, str]] = field(default_factory=list)  # legal, but not on this MPI

    def __add__(self, other: Sweep) -> Sweep:
        """Return both together."""
        return Sweep(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def by_ranks(self) -> dict[int, list[Configuration]]:
        """Configurations grouped by rank count: each group is one start of mpiexec."""
        ordered = sorted(self.configurations, key=lambda c: c.ranks)
        return {ranks: list(group) for ranks, group in itertools.groupby(ordered, key=lambda c: c.ranks)}


def numbers(text: str, option: str) -> list[int]:
    """Parse a list of integers: `1,2,4`, `1..8`, `64..512*2` (factor), `64..256+64` (step), mixed by commas."""
    return [value[0] for value in _values(text, option, widths=(1,))]


def shapes(text: str, dims: int, option: str = "--cells") -> list[tuple[int, ...]]:
    """Parse grid sizes: `128x128x64`, or one number for a cube, with the lists and ranges that `numbers` takes."""
    return [v * dims if len(v) == 1 else v for v in _values(text, option, widths=(1, 1, 2, 3))]


def _values(text: str, option: str, widths: Sequence[int]) -> list[tuple[int, ...]]:
    values = [v for item in text.split(",") for v in _range(item.strip(), option)]
    if any(len(v) not in widths for v in values):
        raise UsageProblem(
            f"{option} '{text}': write {'up to three numbers as 64x64x32' if 3 in widths else 'plain integers'}"
        )
    return list(dict.fromkeys(values))


def _integers(word: str, option: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in word.split("x"))
    except ValueError:
        raise UsageProblem(
            f"{option} '{word}' is no number; write a list (1,2,4) or a range (1..8, 64..512*2, 64..256+64)"
        ) from None


def _range(item: str, option: str) -> Iterable[tuple[int, ...]]:
    match = _RANGE.match(item)
    if not match:
        return [_integers(item, option)]
    first, last = _integers(match["first"], option), _integers(match["last"], option)
    step = match["step"] or "+1"
    by, factor = int(step[1:]), step[0] == "*"
    grows = by > 0 if not factor else by > 1 and min(first) > 0
    if not grows or len(first) != len(last) or any(a > b for a, b in zip(first, last, strict=False)):
        raise UsageProblem(
            f"{option} '{item}' goes nowhere; write FIRST..LAST*FACTOR or FIRST..LAST+STEP, FIRST <= LAST"
        )
    values, value = [], first
    while all(v <= end for v, end in zip(value, last, strict=True)):
        values.append(value)
        if len(values) > MOST_VALUES:
            raise UsageProblem(f"{option} '{item}' has more than {MOST_VALUES} values; use a larger step")
        value = tuple(v * by if factor else v + by for v in value)
    return values


def names(text: str, valid: Sequence[str], kind: str) -> list[str]:
    """Parse a comma list of names and globs (`*`, `s*`) against the valid names, in the order written."""
    return list(dict.fromkeys(name for item in text.split(",") for name in _matching(item.strip(), valid, kind)))


def _is_glob(text: str) -> bool:
    return any(c in text for c in "*?[")


def _matching(item: str, valid: Sequence[str], kind: str) -> list[str]:
    found = fnmatch.filter(valid, item) if _is_glob(item) else [item] * (item in valid)
    if not found:
        raise UsageProblem(unknown_name(kind, item, valid))
    return found


def strategies(text: str, device: str = "") -> list[str]:
    """Parse a comma list of strategies and globs (`ordered/*`); commas between a strategy's own options are kept.

    device: where the fields live; globs are matched against the strategies for that, device memory or the host's.
    """
    valid = core.device_strategy_names() if device else core.strategy_names()
    found = []
    for item in _strategy_items(text):
        found += _matching(item, valid, "strategy") if _is_glob(item) else [_canonical(item)]
    return list(dict.fromkeys(found))


def _canonical(strategy: str) -> str:
    """Check one strategy. One that is known but not built is not available here, which is another thing than unknown."""
    transport = strategy.partition("/")[2].partition(":")[0]
    names = core.strategy_names() + core.device_strategy_names()
    built = {name.partition("/")[2].partition(":")[0] for name in names} | {"reference"}
    if transport in absent.TRANSPORTS and transport not in built:
        raise NotAvailable(
            f"strategy '{strategy}': transport '{transport}' {absent.TRANSPORTS[transport]}; here are "
            f"{', '.join(sorted(built - {''}))} ('haloscope info' says more)"
        )
    return core.canonical_strategy(strategy)


def named_strategies(text: str) -> list[str]:
    """Return those strategies of a comma list that are written out, not matched by a glob."""
    return [_canonical(item) for item in _strategy_items(text) if not _is_glob(item)]


def _strategy_items(text: str) -> list[str]:
    """Cut at the commas that separate strategies: an option word belongs to the strategy before it."""
    items: list[str] = []
    for piece in text.split(","):
        head = re.split("[:/]", piece)[0]
        complete = items and ("/" in items[-1] or items[-1] == "reference" or _is_glob(items[-1]))
        starts = head in ("ordered", "direct", "reference") or _is_glob(head) or (complete and "/" in piece)
        if items and not starts:
            items[-1] += "," + piece
        else:
            items.append(piece)
    return items


def _normal(c: Configuration) -> Configuration:
    """Drop choices without effect, so that a cross product holds each piece of work once."""
    on_streams, boxed = c.device and c.schedule == "streams", c.device and c.schedule in BOXES
    return replace(
        c,
        region=c.region if c.depth > 1 else "full",
        sharing=c.sharing if c.schedule == "comm-thread" else "",
        tiles=c.tiles if c.schedule == "split" else 0,
        placement=c.placement if c.nodes else "",
        isa="" if c.device and not boxed else c.isa,
        device_kernel=c.device_kernel if c.device else "",
        device_block=c.device_block if c.device else "",
        pack=c.pack if on_streams and c.pack != "first" else "",
        box=c.box if boxed else 0,
        graph=c.graph and bool(c.device),
    )


def expand(app: str, axes: dict[str, Sequence], settings: dict[str, str] | None = None) -> Sweep:
    """Cross product of all axes for one app, each piece of work once, illegal ones set aside with their reason.

    axes maps fields of Configuration to the values to try; settings are options of `haloscope-rank` passed through.
    """
    fixed = tuple((settings or {}).items())
    sweep = Sweep()
    seen = set()
    for values in itertools.product(*axes.values()):
        configuration = _normal(Configuration(app=app, settings=fixed, **dict(zip(axes, values, strict=True))))
        if configuration in seen:
            continue
        seen.add(configuration)
        reason = why_illegal(configuration)
        if reason:
            sweep.refused.append((configuration, reason))
        else:
            sweep.configurations.append(configuration)
    return sweep


def with_verification(sweep: Sweep, steps: int | None) -> Sweep:
    """Have every configuration compared with `reference` after `steps` steps (0: not at all).

    None: 2 x depth + 1 steps, which hold two whole exchanges and a last, shorter round.
    """
    for index, c in enumerate(sweep.configurations):
        checked = 2 * c.depth + 1 if steps is None else steps
        sweep.configurations[index] = replace(c, settings=(*c.settings, ("verify", str(checked))))
    return sweep


def periodic_flags(c: Configuration) -> tuple[bool, ...]:
    """Whether each dimension wraps; without a word on it, all do."""
    usual = "" if c.app == "poisson2d" else "xyz"  # its borders are fixed
    letters = {"": usual, "none": ""}.get(c.periodic, c.periodic)
    if set(letters) - set("xyz"):
        raise UsageProblem(f"--periodic '{c.periodic}': name the periodic dimensions as xyz, xy, x, ... or none")
    return tuple(letter in letters for letter in "xyz"[: len(c.cells)])


def choice(c: Configuration) -> core.Choice:
    """Return what a configuration picks, as the core knows it; the rest of it is how the choice is run."""
    return core.Choice(
        app=c.app,
        form=c.form,
        real=c.real,
        cells=c.cells,
        periodic=periodic_flags(c),
        ranks=c.ranks,
        process_grid=c.process_grid,
        threads=c.threads,
        strategy=c.strategy,
        schedule=c.schedule,
        depth=c.depth,
        region=c.region,
        sharing=c.sharing or "guided",
        nodes=c.nodes,
        placement=c.placement or "block",
        device=c.device,
        box=c.box or 1,
        graph=c.graph,
    )


def why_illegal(c: Configuration) -> str:
    """Return the reason why a configuration cannot run, from the one legality function; empty when it can."""
    if c.graph and c.barrier:
        return "--graph leaves no moment for a --barrier; drop one of them"
    return core.illegal(choice(c))


def shuffled(configurations: Sequence[Configuration], seed: int, launch: int) -> list[Configuration]:
    """Return the configurations in a random order that only `seed` and the launch's number decide."""
    order = list(configurations)
    random.Random(f"{seed}/{launch}").shuffle(order)
    return order
