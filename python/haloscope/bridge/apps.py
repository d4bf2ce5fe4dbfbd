"""Apps as the library describes them: forms, parameters, and the quantities and stages of a time step."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from haloscope.bridge import capi
from haloscope.bridge import choice as choices
from haloscope.bridge import layout as layouts
from haloscope.bridge.choice import Choice
from haloscope.bridge.choice_fields import Value
from haloscope.bridge.json_values import decoded, encoded
from haloscope.bridge.values import Quantity
from haloscope.errors import UsageError, unknown_name


@dataclass(frozen=True)
class Parameter:
    """A parameter: its default `value`, help, range of numbers (None = no end), and valid words if any."""

    name: str
    value: Value
    help: str
    words: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None

    @property
    def kind(self) -> str:
        """The kind of values, in words of help texts."""
        if self.words:
            return ", ".join(word or "''" for word in self.words)
        kinds = {bool: "on or off", int: "a whole number", float: "a number", str: "text"}
        return kinds.get(type(self.value), "numbers, comma-separated")


@dataclass(frozen=True)
class Access:
    """A sweep reads a quantity (its number) in `layers` further layers around the points that touch a written one.

    of: only for written points of this centring; None = for all.
    """

    quantity: int
    layers: int
    of: str | None = None


@dataclass(frozen=True)
class SweepSpec:
    """One pass over the points of a box; `writes` are numbers of quantities."""

    name: str
    reads: tuple[Access, ...]
    writes: tuple[int, ...]
    box_stencil: bool = False
    in_place: bool = False
    flops_per_point: float = 0.0


# Bytes of a gathered number, by type.
NUMBER_BYTES = {"real": 8, "integer": 4, "character": 1}


@dataclass(frozen=True)
class Reduction:
    """Numbers that sweep number `sweep` of a stage gathers over all ranks.

    op: sum, max, min. mode: blocking, nonblocking, deferred. collectives: calls that the numbers are divided among. by:
    reduce, gather, lists. type: type of gathered numbers in messages, real, integer, character. until: the later stage
    at whose end a nonblocking one is awaited, "" = the same stage. last_only: only in the last step of a run.
    """

    name: str
    op: str = "sum"
    numbers: int = 1
    mode: str = "blocking"
    sweep: int = -1
    collectives: int = 1
    by: str = "reduce"
    type: str = "real"
    until: str = ""
    last_only: bool = False
    scheme: str = ""

    @property
    def gathers(self) -> tuple[int, ...]:
        """Bytes that each rank contributes to each gather, call by call; empty where the MPI library reduces."""
        if self.by == "reduce":
            return ()
        numbers = NUMBER_BYTES[self.type] * (self.numbers // self.collectives)
        lengths = (NUMBER_BYTES["integer"],) if self.by == "lists" else ()
        return (*lengths, numbers) * self.collectives


@dataclass(frozen=True)
class Stage:
    """An exchange, the sweeps that need it, the reductions that end them.

    repeats: stages, from this one on, that run `least` times a step and then until the app has finished; 0 = no loop.
    """

    name: str
    sweeps: tuple[SweepSpec, ...]
    reductions: tuple[Reduction, ...] = ()
    repeats: int = 0
    least: int = 1
    exchange: tuple[Access, ...] | None = None


@dataclass(frozen=True)
class Step:
    """All quantities of an app and the stages of one time step. Made by `step_of`."""

    quantities: tuple[Quantity, ...]
    stages: tuple[Stage, ...]

    @property
    def groups(self) -> tuple[range, ...]:
        """Numbers of the stages that run together, once a step or, in a loop, several times."""
        found: list[range] = []
        while not found or found[-1].stop < len(self.stages):
            first = found[-1].stop if found else 0
            found.append(range(first, first + max(1, self.stages[first].repeats)))
        return tuple(found)

    @property
    def loops(self) -> tuple[range, ...]:
        """Numbers of the stages of each loop."""
        return tuple(group for group in self.groups if self.stages[group[0]].repeats)

    @property
    def single(self) -> bool:
        """True if the step is one sweep, as in a plain stencil code."""
        return len(self.stages) == 1 and len(self.stages[0].sweeps) == 1


@dataclass(frozen=True)
class App:
    """The traits of an app that plans, prices and help texts need; `steps` by form."""

    name: str
    summary: str
    dims: int
    forms: tuple[str, ...]
    reals: tuple[str, ...]
    process_grid: str
    periodic: bool
    fused_forms: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    steps: Mapping[str, Step]


@functools.cache
def _apps() -> dict[str, App]:
    return {found["name"]: decoded(App, found) for found in capi.answer("hs_describe", b"apps")}


def app_names() -> list[str]:
    """Return the names of all apps."""
    return list(_apps())


def find_app(name: str) -> App:
    """Return an app. Raises UsageError with the nearest valid names."""
    if name not in _apps():
        raise UsageError(unknown_name("app", name, _apps()))
    return _apps()[name]


_declared: dict[str, Callable[[Choice], str] | None] = {}  # apps of other programs, and their own refusals


def is_declared(name: str) -> bool:
    """Return whether an app belongs to another program."""
    return name in _declared


def refuses_itself(name: str) -> bool:
    """Return whether an app of another program refuses choices itself."""
    return _declared.get(name) is not None


def own_refusal(choice: Choice) -> str:
    """Return the reason why an app of another program refuses an otherwise legal choice, "" where it does not."""
    refusal = _declared.get(choice.app)
    return refusal(choice) if refusal else ""


def declare_app(description: dict, refusal: Callable[[Choice], str] | None = None) -> App:
    """Declare an app of another program; from then on it can be planned and priced like any other.

    description: output of the program with --describe. refusal: returns the reason why the app itself refuses a choice,
    "" where it does not; None = it never does. Raises UsageError for an invalid description, and for a name of the
    library.
    """
    capi.call("hs_declare_app", encoded(description))
    _declared[description["name"]] = refusal
    _apps.cache_clear()
    for known in (choices.point_of, layouts.layout_of, step_of):
        known.cache_clear()
    return find_app(description["name"])


@functools.lru_cache(maxsize=1024)
def step_of(choice: Choice) -> Step:
    """Return the step of a choice. Raises UsageError for values that its app does not support."""
    return decoded(Step, capi.answer("hs_examine", choices.text_of(choice), b"step", 0))


def sweep_names(choice: Choice) -> tuple[tuple[str, ...], ...]:
    """Return the names in profiles of a choice's sweeps, by stage: APP/FORM/REAL, then ,NAME=VALUE of parameters with
    other sweeps, then :STAGE/SWEEP where a step has several.

    Raises UsageError as `step_of` does.
    """
    return tuple(map(tuple, capi.answer("hs_examine", choices.text_of(choice), b"sweeps", 0)))


def kernel_of(choice: Choice) -> str:
    """Return the name of a choice's kernels in profiles, with which the names of its sweeps begin."""
    if choice.form and not choice.set:  # also for a program's app that is not declared here
        return f"{choice.app}/{choice.form}/{choice.real}"
    return sweep_names(choice)[0][0].partition(":")[0]
