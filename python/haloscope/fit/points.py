"""Points of a calibration: the requests that measure each section of a machine profile."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from haloscope import bridge
from haloscope.bridge.choice import Choice
from haloscope.bridge.choice_fields import Value
from haloscope.measure import microbench
from haloscope.measure.request import Request, name_of
from haloscope.records.curves import BASE as PLAIN

SECTIONS = ("network", "pack", "kernels", "steps", "transports", "reductions", "device")
NEEDS_PEERS = ("network", "steps", "transports", "reductions")  # nothing to measure on one rank
KIND = "calibration"


@dataclass(frozen=True)
class Effort:
    """Effort of a calibration: seconds and samples per point, launches, and the spacing of amounts."""

    seconds: float  # of a sample
    packing_s: float  # of packing in a sample, which lasts up to ten times as long: sweeps around it do not count
    steps_s: float  # of a repetition of whole steps
    warmup: int  # such repetitions before; finding the number of steps of a repetition warms up too
    repetitions: int
    launches: int
    message_bytes: tuple[int, ...]
    squares: tuple[int, ...]  # side of a 2D block
    cubes: tuple[int, ...]  # side of a 3D block
    fused: tuple[int, ...]  # sweeps that are fused in the cache
    packed: tuple[tuple[tuple[int, ...], int], ...]  # cells and depth of the blocks whose halos are packed
    blocks: tuple[tuple[str, int, str], ...]  # app, side and process grid of two blocks that exchange in every step
    large: tuple[tuple[str, int, str], ...]  # blocks that outgrow the caches, with every transport
    device_squares: tuple[int, ...]  # sides of blocks in the memory of a device
    device_cubes: tuple[int, ...]
    apps: tuple[str, ...] = ()  # measured kernels, with parameters that change them; () = all apps of few sweeps


def _message_sizes(steps: int) -> tuple[int, ...]:
    """Return 1 B to 4 MB, `steps` per power of two from 256 B to 1 MB, where message libraries switch protocols."""
    fine = {round(256 * 2 ** (k / steps)) // 8 * 8 for k in range(12 * steps + 1)}
    return tuple(sorted({1, 16, 64, 2 << 20, 4 << 20} | fine))


def _squares(*sides_and_depths: tuple[int, int]) -> tuple:
    return tuple(((side, side), depth) for side, depth in sides_and_depths)


def _cubes(*sides_and_depths: tuple[int, int]) -> tuple:
    return tuple(((side, side, side), depth) for side, depth in sides_and_depths)


_PACKED = (
    *_squares((64, 1), (256, 1), (1024, 1), (64, 8), (256, 8), (1024, 8)),
    *_cubes((16, 1), (32, 1), (64, 1), (128, 1), (32, 4), (64, 4), (64, 8)),
    ((1024, 32), 4),
    ((2048, 32), 8),  # long rows in small blocks
)
# Deep halos of 32, 128 and 512 squared are contiguous, and halos of 256 columns share no cache line with owned cells:
# sides that are all powers of two would not represent the others.
_BLOCKS = (
    *(("laplace2d", side, "1x2") for side in (32, 72, 128, 264, 512, 1096)),
    *(("laplace2d", side, "2x1") for side in (72, 256, 600)),
    *(("laplace3d", side, "1x1x2") for side in (16, 32, 48, 64, 96, 128)),
    *(("laplace3d", side, "2x1x1") for side in (16, 32, 64)),
)
_LARGE = (("laplace2d", 2048, "1x2"), ("laplace3d", 160, "1x1x2"))
QUICK = Effort(
    0.0005,
    0.00025,
    0.002,
    0,
    3,
    3,
    _message_sizes(1),
    (16, 32, 64, 128, 256, 512, 768, 1024, 2048),
    (8, 12, 16, 24, 32, 48, 64, 96, 128),
    (2, 8),
    _PACKED,
    _BLOCKS[::2],
    (),
    (64, 512, 2048, 8192),
    (16, 64, 128, 256),
)
FULL = Effort(
    0.002,
    0.002,
    0.003,
    1,
    5,
    5,
    _message_sizes(2),
    # 992 and 98 in f64, 1408 and 124 in f32: the largest sides at which sweeps do not store around the cache.
    (16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 896, 992, 1024, 1408, 1448, 2048, 2896, 4096),
    (8, 12, 16, 20, 24, 32, 40, 48, 64, 80, 88, 98, 116, 124, 128, 160, 208, 256),
    (2, 4, 8, 16),
    (
        *_PACKED,
        *_squares((32, 1), (128, 1), (512, 1), (640, 1), (768, 1), (2048, 1), (512, 4), (2048, 2)),
        *_cubes((24, 1), (48, 1), (72, 1), (84, 1), (96, 1), (192, 1), (32, 8), (128, 2), (128, 4)),
        ((768, 48), 4),
        ((4096, 24), 2),
    ),
    _BLOCKS,
    _LARGE,
    (32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384),
    (8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512),
)


@dataclass(frozen=True)
class Point:
    """One point: the measured `part` of a step of a choice, the number of fields, the seconds and the repetitions."""

    part: str
    choice: Choice
    fields: int = 1
    seconds: float = 0.001
    repetitions: int = 5

    ranks = property(lambda self: self.choice.ranks)
    threads = property(lambda self: self.choice.threads)
    strategies = property(lambda self: (self.choice.strategy,))

    @property
    def id(self) -> str:
        """A readable name, independent of the measuring time."""
        return f"calibrate,{self.part},{name_of(self.choice.to_json())}" + (
            f",fields={self.fields}" if self.fields > 1 else ""
        )

    def request(self) -> dict:
        """Return the request as its record holds it."""
        how = {"seconds": self.seconds, "repetitions": self.repetitions}
        return self.choice.to_json() | {"part": self.part, "fields": self.fields} | how

    def line(self) -> dict:
        """Return the line of a requests file that makes the ranks measure this."""
        return {"kind": KIND, "id": self.id, "request": self.request()}


def points(section: str, ranks: int, cores: int, effort: Effort, device: str = "", hosts: int = 1) -> list:
    """Return the points of one of SECTIONS; none if one rank is too few, or if the section lacks its device.

    ranks: max number to use, >= 1. cores: of all hosts, which have the same number each. effort: QUICK, FULL or
    another. device: back end, "" = none.
    """
    if (ranks < 2 and section in NEEDS_PEERS) or (section == "device" and not device):
        return []
    seconds = effort.packing_s if section == "pack" else effort.seconds
    how: dict[str, Any] = {"seconds": seconds, "repetitions": effort.repetitions}
    whole: dict[str, Any] = {"seconds": effort.steps_s, "repetitions": effort.repetitions, "warmup": effort.warmup}
    make: dict[str, Callable[[int, int, Effort], Iterable]] = {
        "network": _network,
        "pack": functools.partial(_pack, hosts),
        "transports": _transports,
        "kernels": functools.partial(_kernels, hosts),
        "steps": _steps,
        "reductions": _reductions,
        "device": functools.partial(_device, device),
    }
    found: list[Any] = []
    for point in make[section](ranks, cores, effort):
        if isinstance(point, Point):
            found.append(dataclasses.replace(point, **how))
        else:
            found.append(Request.of(point, **whole) if isinstance(point, Choice) else point)
    return found


def _powers(most: int) -> list[int]:
    """Return 1, 2, 4 ... and `most` itself."""
    return sorted({2**k for k in range(most.bit_length()) if 2**k <= most} | {most})


def _network(ranks: int, cores: int, effort: Effort) -> Iterator[microbench.Micro | Point]:
    for count in sorted({2, *(p for p in _powers(ranks) if p % 2 == 0)}):
        yield microbench.Micro(
            PLAIN,
            count,
            0,
            effort.message_bytes,
            effort.seconds,
            effort.repetitions,
            fresh=True,
            patterns=("pingpong", "pingping"),
        )
    for row in _ROWS:
        for fields in (1, 2, 8):
            yield _exchange("laplace2d", (row, 16), "y", 1, fields, strategies()[0])


_ROWS = (16, 256, 1024, 4096, 16384, 65536)  # cells, sent in place: 2 messages per field each way


def _pack(hosts: int, ranks: int, cores: int, effort: Effort) -> Iterator[Point]:
    """Yield points of packing. As in a step, all cores are busy: fewer threads per rank mean more ranks."""
    for threads in _powers(max(1, cores // hosts)):
        for cells, depth in effort.packed:
            yield Point(
                "pack",
                Choice(
                    f"laplace{len(cells)}d",
                    cells,
                    ranks=max(1, min(ranks, cores) // threads),
                    threads=threads,
                    depth=depth,
                ),
            )


def strategies() -> list[str]:
    """Return a strategy for every transport with every listed set of options, plain messages first."""
    names = sorted(microbench.transport_names(), key=lambda name: name != PLAIN)
    return [bridge.canonical_strategy(f"ordered:fields=none/{name}") for name in names]


def _exchange(app: str, cells: tuple[int, ...], axis: str, depth: int, fields: int, strategy: str) -> Point:
    letters = "xyz"[: len(cells)]
    grid = "x".join("2" if letter == axis else "1" for letter in letters)
    wraps = tuple(letter == axis for letter in letters)
    return Point(
        "exchange",
        Choice(app, cells, periodic=wraps, ranks=2, process_grid=grid, strategy=strategy, depth=depth),
        fields,
    )


def _steps(ranks: int, cores: int, effort: Effort) -> Iterator[Choice]:
    """Yield whole steps with plain messages; with halos of one and of several sweeps, and in pieces."""
    blocks = _stepped(effort)
    yield from (
        _step(*block, BASE, depth=depth) for depth in (1, DEEP) for block in (*blocks, *_of_apps(_LARGE, effort))
    )
    for block in blocks:
        several = ("direct/p2p", "direct:merged/p2p") if block[0] == "laplace3d" else ()
        yield from (
            _step(*block, strategy, depth=depth) for depth in (1, DEEP) for strategy in (*several, "ordered:merged/p2p")
        )
    for app, form, real in kernel_names(effort.apps):
        sides = _PIECES.get(app, {}).items()
        for side, grid in ((side, grid) for grid, lengths in sides for side in lengths):
            for schedule in ("bulk", "split"):
                yield _step(app, side, grid, BASE, form=form, real=real, schedule=schedule)


BASE = f"ordered/{PLAIN}"
# Blocks that are swept in pieces: sides by app and process grid.
_CUBES_IN_PIECES = {"1x1x2": (16, 32, 64, 128), "2x1x1": (32, 96)}
_PIECES = {
    "laplace2d": {"1x2": (64, 256, 1024), "2x1": (256,)},
    "laplace3d": _CUBES_IN_PIECES,
    "advection3d": _CUBES_IN_PIECES,
}


def _step(app: str, side: int, grid: str, strategy: str, **options: Any) -> Choice:
    options.setdefault("form", bridge.find_app(app).forms[0])
    return Choice(app, (side,) * len(grid.split("x")), ranks=2, process_grid=grid, strategy=strategy, **options)


def _transports(ranks: int, cores: int, effort: Effort) -> Iterator[Choice]:
    """Yield the same steps with every transport, including plain messages; a third of them with deep halos too."""
    blocks = _stepped(effort)
    for strategy in strategies():
        transport = strategy.partition("/")[2]
        for depth, chosen in ((1, [*blocks, *_of_apps(effort.large, effort)]), (DEEP, blocks[::3])):
            yield from (_step(*block, f"ordered/{transport}", depth=depth) for block in chosen)


def _stepped(effort: Effort) -> list[tuple[str, int, str]]:
    """Return the blocks whose steps are measured: of the requested apps, or all if none belongs to these apps."""
    return _of_apps(effort.blocks, effort) or list(effort.blocks)


def _of_apps(blocks: Sequence[tuple[str, int, str]], effort: Effort) -> list[tuple[str, int, str]]:
    """Return the blocks of the requested apps, or all blocks if no apps are requested."""
    return [block for block in blocks if not effort.apps or block[0] in effort.apps]


DEEP = 4  # sweeps between two exchanges of steps with deep halos
FEW_SWEEPS = 8  # in a step: apps with more are measured only on request


def kernel_names(wanted: tuple[str, ...] = ()) -> list[tuple[str, str, str]]:
    """Return app, form and real of every kernel of the requested apps; () = of all apps of few sweeps."""
    apps = (bridge.find_app(name) for name in bridge.app_names())
    measured = [app for app in apps if (app.name in wanted if wanted else _sweeps(app) <= FEW_SWEEPS)]
    return [(app.name, form, real) for app in measured for form in app.forms for real in app.reals]


def _sweeps(app: bridge.App) -> int:
    return max(sum(len(stage.sweeps) for stage in step.stages) for step in app.steps.values())


def variants(app: bridge.App, form: str) -> list[tuple[tuple[str, Value], ...]]:
    """Return the parameters of an app that change its sweeps: none, then every word that alone changes them."""
    words = [(p.name, word) for p in app.parameters for word in p.words]
    usual = Choice(app.name, (1,) * app.dims, form=form)
    changed = [
        (one,) for one in words if bridge.kernel_of(dataclasses.replace(usual, set=(one,))) != bridge.kernel_of(usual)
    ]
    return [(), *changed]


def _kernels(hosts: int, ranks: int, cores: int, effort: Effort) -> Iterator[Point]:
    """Yield kernels on 1, 2, 4 ... ranks of each host, on all hosts concurrently as in a step."""
    for active in (hosts * count for count in _powers(max(1, min(ranks, cores) // hosts))):
        for name, form, real in kernel_names(effort.apps):
            app = bridge.find_app(name)
            sides = effort.cubes if app.dims == 3 else effort.squares
            for side, settings in itertools.product(sides, variants(app, form) if effort.apps else [()]):
                if choice := _block(app, side, active, form, real, settings):
                    yield Point("kernel", choice)
            if form in app.fused_forms:
                yield from (
                    _fused(name, (side,) * app.dims, active, form, real, levels)
                    for side in sides[::3]
                    for levels in effort.fused
                    if side >= 4 * levels
                )


def _block(
    app: bridge.App, side: int, ranks: int, form: str, real: str, settings: tuple[tuple[str, Value], ...] = ()
) -> Choice | None:
    """Return a block for a rank to sweep alone, of about `side` cells per side (1D: their square); None without one."""
    step = bridge.step_of(Choice(app.name, (1,) * app.dims, form=form, real=real, set=settings))
    in_place = any(sweep.in_place for stage in step.stages for sweep in stage.sweeps)
    schedule = next(s.name for s in bridge.schedules() if s.in_place == in_place and s.on_host)
    borders = ((False,) * app.dims, (True,) * app.dims)
    for less, periodic in itertools.product(range(min(16, side)), borders):  # apps may accept only some of them
        cells = ((side - less) ** 2,) if app.dims == 1 else (side - less,) * app.dims
        choice = Choice(app.name, cells, periodic=periodic, form=form, real=real, schedule=schedule, set=settings)
        if not bridge.illegal(choice):
            return dataclasses.replace(choice, ranks=ranks, process_grid="slabs" if in_place else "")
    return None


def _fused(app: str, cells: tuple[int, ...], active: int, form: str, real: str, levels: int) -> Point:
    """Return the point of several fused sweeps of a block."""
    return Point("kernel", Choice(app, cells, ranks=active, form=form, real=real, depth=levels, substeps="blocked"))


def _reductions(ranks: int, cores: int, effort: Effort) -> Iterator[Point]:
    for count in _powers(ranks)[1:]:
        yield Point("allreduce", Choice("laplace2d", (64, 64), ranks=count))


# Max cells of a block in the memory of a device: three slots of all ranks that share it must fit. An imitated device
# is the CPU, for which larger blocks add no information.
CELLS, HOST_CELLS = 1 << 28, 1 << 20
# Shapes of a device's thread blocks (x, y and layers) that are tried for the largest sweeps, besides the kernel's
# default.
SHAPES = {2: ("64x1x64", "128x1x256", "256x1x64"), 3: ("32x4x32", "32x8x64", "64x8x64")}


def _device(device: str, ranks: int, cores: int, effort: Effort) -> Iterator[Point]:
    """Yield points of devices, on one rank and on all ranks concurrently, which then share devices."""
    for count in sorted({1, ranks}):
        for name, form, real in kernel_names(effort.apps):
            app = bridge.find_app(name)
            blocks = [
                Choice(
                    name,
                    (side,) * app.dims,
                    ranks=count,
                    form=form,
                    real=real,
                    device=device,
                    strategy=bridge.device_strategy_names()[0],
                )
                for side in (effort.device_squares if app.dims == 2 else effort.device_cubes)
                if side**app.dims <= (HOST_CELLS if device == "host" else CELLS)
            ]
            if app.dims not in SHAPES or bridge.illegal(blocks[0]):
                continue
            if not bridge.step_of(blocks[0]).single:
                yield from (Point("device-kernel", block) for block in blocks)
                continue
            for block in blocks:
                yield Point("device-kernel", block)
                if (form, real) == (app.forms[0], app.reals[0]):
                    yield Point("device-copy", block)
                fused = (dataclasses.replace(block, depth=levels, substeps="blocked") for levels in effort.fused)
                yield from (
                    Point("device-kernel", c) for c in fused if c.cells[0] >= 8 * c.depth and not bridge.illegal(c)
                )
            if count == 1:
                for kernel, shape in itertools.product(("stream", "shared"), SHAPES[app.dims]):
                    yield Point(
                        "device-kernel", dataclasses.replace(blocks[-1], device_kernel=kernel, device_block=shape)
                    )


def all_points(
    sections: Sequence[str], ranks: int, cores: int, effort: Effort, device: str = "", hosts: int = 1
) -> list:
    """Return the points of several sections, each once. Parameters: see `points`."""
    if effort.apps and {"steps", "transports"} & set(sections):  # costs of steps beyond their kernels
        effort = dataclasses.replace(effort, apps=tuple({*effort.apps, *(block[0] for block in _stepped(effort))}))
    return list(dict.fromkeys(p for section in sections for p in points(section, ranks, cores, effort, device, hosts)))
