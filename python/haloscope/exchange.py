"""Halo exchange of your own arrays: NumPy's, CuPy's, or anything that shows its memory in the same way.

>>> from mpi4py import MPI
>>> import haloscope
>>> grid = haloscope.Grid(MPI.COMM_WORLD, (512, 512), periodic=True)
>>> u = grid.zeros(halo=1)
>>> halo = haloscope.Exchange(grid, [u], strategy="ordered/p2p")
>>> u[grid.inner()] = 1.0
>>> halo()
>>> float(u.min())
1.0
>>> halo.free()

Axes of grids are those of the arrays. All calls but properties of a grid are made by all ranks in the same order.
Errors are `haloscope.errors.UsageError` and `UnavailableError`, raised on all ranks alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from haloscope import lifetimes, memory
from haloscope.arguments import as_problem, flag, text, whole
from haloscope.array_grid import grid_of_arrays
from haloscope.bridge import capi
from haloscope.errors import HaloscopeError, UsageError
from haloscope.fields import Array, Described, Field, can_be_added, fields_of, name_of, several, slots_of
from haloscope.grid import Grid, Halo, Unique
from haloscope.ranks import agree, call, gather, library, mark, member, refuse_unlike_types

if TYPE_CHECKING:
    from mpi4py import MPI

__all__ = ["Exchange", "Field", "Grid"]

Stream = Any  # CuPy's, PyTorch's, or the address of one


class Exchange(Unique):
    """An exchange of some arrays, opened once, then run in each step: call it, or start() and finish()."""

    def __init__(
        self,
        grid: Grid | MPI.Comm,
        arrays: Array | Field | Sequence[Array | Field],
        halo: Halo = 1,
        *,
        strategy: str | None = None,
        corners: bool = True,
        guard: bool = False,
        axes: Sequence[int | None] | None = None,
    ):
        """Open an exchange of `arrays`, of any mixture of types. Collective; they must stay where they are.

        grid: or a communicator with a Cartesian topology, where the arrays say how many cells each rank owns.
        arrays: with their halos, in a list or a tuple; anything else is one array. A Field says more about one of them.
            They may be in the memory of a device, all of them then (CuPy, PyTorch; where the library was built for it):
            `auto` is "direct:merged/auto-device" there.
        halo: ghost layers on every side, or per axis a number or (low, high).
        strategy: as "ordered/p2p"; `haloscope advise` names good ones. None: "auto", which tries them while it runs.
            HALOSCOPE_STRATEGY in the environment of rank 0 overrides it.
        corners: also fill edges and corners; a star does not read them.
        guard: track how many layers of each halo are fresh and poison the others, see changed(). HALOSCOPE_GUARD=1 or 0
            in the environment of rank 0 overrides it.
        axes: of a communicator with a Cartesian topology, the axis of arrays that each of its dimensions splits: (1, 2)
            for arrays [z, y, x] in columns, whose axis 0 has a halo too where `halo` says so, and does not wrap around
            (a Grid can). Axes after the last one named are components of a point. Default: the first axes.

        Raises UsageError on all ranks for arrays that do not fit the grid, cannot be written to, share memory with
        each other, are more than memory (masks, units), or are of other types on other ranks; UnavailableError for a
        strategy that this MPI cannot serve. Cost: some small collective calls and what the transport opens.
        """
        if isinstance(grid, Grid):
            self.grid = grid
        else:
            self.grid = grid_of_arrays(grid, arrays, halo, axes)
            axes = None
        comm = self.grid.comm
        member(comm)
        described, options, structs, types, dropped = agree(
            comm,
            "an exchange",
            lambda: self._prepare(arrays, halo, strategy, corners, guard, axes),
            lambda: self.grid.order,
        )
        waiting = dropped.waiting()
        found = gather(comm, "an exchange", [len(waiting), types])
        refuse_unlike_types(comm, [f"{one.name}: {one.type}" for one in described], found[:, 1])
        ffi, _ = library()
        handle = ffi.new("hs_exchange**")
        dropped.free(comm, waiting, found[:, 0], lambda other: call("hs_exchange_free", other))
        call("hs_exchange_create", self.grid._handle, structs, len(described), options, handle)
        self._handle, self._described = handle[0], described
        self._forget = dropped.watch(self, self._handle, described)
        lifetimes.end_job_where_a_rank_fails(self)
        self._start, self._finish, self._run, self._progress, self._start_accumulate, self._accumulate = (
            getattr(library()[1], f"hs_exchange_{name}")
            for name in ("start", "finish", "run", "progress", "start_accumulate", "accumulate")
        )
        self._start_on, self._finish_on, self._start_accumulate_on = (
            getattr(library()[1], f"hs_exchange_{name}_on") for name in ("start", "finish", "start_accumulate")
        )
        self._done = ffi.new("int32_t*")
        self._not_added = next((one for one in described if not can_be_added(one.arrays[0].dtype)), None)

    def _prepare(self, arrays: Any, halo: Halo, strategy: Any, corners: Any, guard: Any, axes: Any) -> tuple:
        """Return the fields, the options, the fields as structs of C, a mark of their types, and dropped exchanges."""
        ffi, lib = library()
        fields = fields_of(arrays)
        if not fields:
            raise UsageError("an exchange of no arrays; pass at least one")
        if axes is not None:
            raise UsageError("axes splits arrays over a communicator; a Grid has a split: leave axes out")
        slots = len(slots_of(fields[0], name_of(fields[0], 0)))
        described = [Described(self.grid, field, number, halo, slots) for number, field in enumerate(fields)]
        structs = ffi.new("hs_field[]", len(described))
        for field, one, struct in zip(fields, described, structs, strict=True):
            one.fill(self.grid, field, struct)
        options = ffi.new("hs_exchange_options*")
        lib.hs_exchange_init(options)
        options.corners, options.slots, options.guard = flag("corners", corners), slots, flag("guard", guard)
        if strategy is not None:
            self._strategy = ffi.new("char[]", text("strategy", strategy))
            options.strategy = self._strategy
        types = mark([one.type for one in described])
        return described, options, structs, types, lifetimes.Dropped.on(self.grid.comm)

    def start(self, slot: int = 0, stream: Stream | None = None) -> None:
        """Send what can be sent. The outermost owned points must not change before finish().

        stream: arrays on a device: packing comes after what this stream has been given (CuPy's or PyTorch's, or its
            address).
            None: after what the default stream has been given.
        Raises UsageError while another slot is in flight, for a slot that there is not, and a stream for arrays of
        the host.
        """
        if type(slot) is not int or slot >> 31:  # in place, since it is called in each step
            slot = whole("slot", slot)
        if stream is None:
            status = self._start(self._open(), slot)
        else:
            status = self._start_on(self._open(), slot, self._stream(stream))
        if status:
            capi.check(library(), status)

    def progress(self) -> bool:
        """Let messages move on; return whether everything has arrived.

        Does not wait; but with reference, neighbor:blocking, rma-fence, rma-pscw:get and shared:fence, which complete
        only in a call of MPI that waits, the 1000th call of an exchange makes that call, so that a loop ends.
        """
        capi.check(library(), self._progress(self._open(), self._done))
        return bool(self._done[0])

    def finish(self, stream: Stream | None = None) -> None:
        """Wait until all halos of the started slot are filled.

        stream: arrays on a device: the host does not wait for the device; what this stream is given later finds the
        halos filled.
        """
        if stream is None:
            capi.check(library(), self._finish(self._open()))
        else:
            capi.check(library(), self._finish_on(self._open(), self._stream(stream)))

    def __call__(self, slot: int = 0, stream: Stream | None = None) -> None:
        """Fill the halos of a slot: start() and finish()."""
        if stream is not None:
            self.start(slot, stream)
            return self.finish(stream)
        if type(slot) is not int or slot >> 31:
            slot = whole("slot", slot)
        status = self._run(self._open(), slot)
        if status:
            capi.check(library(), status)
        return None

    @staticmethod
    def _stream(stream: Stream) -> Any:
        return library()[0].cast("void*", memory.stream_address(stream))

    def start_accumulate(self, slot: int = 0, stream: Stream | None = None) -> None:
        """Begin to add what lies in the halos to the points that own it: the transpose of an exchange.

        finish() ends it, and has cleared the halos then. The outermost owned points and the halos must not be touched
        before. Results have the same bits by every strategy. Points of nodes and faces that several ranks
        hold get the sum of all of them, in halos of no layers too, as the assembly of finite elements needs it.

        stream: arrays on a device: see start().
        Raises UsageError as start() does, and for arrays of other types than integers, f4, f8, c8 and c16. Cost: the
        messages of an exchange, and one pass over what arrives. The first call is collective and opens another link.
        """
        self._require_addends()
        slot, on = self._agreed("ACCUMULATE", slot, stream)
        if on is None:
            status = self._start_accumulate(self._open(), slot)
        else:
            status = self._start_accumulate_on(self._open(), slot, on)
        if status:
            capi.check(library(), status)

    def accumulate(self, slot: int = 0, stream: Stream | None = None) -> None:
        """Add the halos of a slot to the points that own them and clear them: start_accumulate() and finish()."""
        if stream is not None:
            self.start_accumulate(slot, stream)
            return self.finish(stream)
        self._require_addends()
        slot, _ = self._agreed("ACCUMULATE", slot)
        status = self._accumulate(self._open(), slot)
        if status:
            capi.check(library(), status)
        return None

    def _require_addends(self) -> None:
        if one := self._not_added:
            problem = UsageError(
                f"{one.name} has elements of type {one.arrays[0].dtype}, which cannot be added: pass integers, or "
                "real or complex numbers of single or double precision, in this machine's order of bytes, and the "
                "others to another exchange"
            )
            self._refuse("ACCUMULATE", problem)

    def changed(self, slot: int = 0, fresh: int = 0, stream: Stream | None = None) -> None:
        """Say that own points of a slot have changed: in a guarded exchange its halos are poisoned. Local.

        fresh: layers that stay fresh, since the sweep has computed them too. Reals of 4 and 8
            bytes become NaNs that carry their side on, anything else bytes DB. Without guard nothing happens; with it
            one store for each number in the halos.
        stream: arrays on a device: after what it has been given, and the poison before what it is given next. None:
            after what the default stream has been given, and the host waits.
        Raises UsageError for a slot that there is not, a negative number, and while an exchange is in flight.
        """
        slot, fresh = whole("slot", slot), whole("fresh", fresh)
        self._call("changed", slot, fresh, on=None if stream is None else self._stream(stream))

    def require_fresh(self, depth: int, slot: int = 0) -> None:
        """Raise UsageError, on all ranks, where fewer than `depth` layers of a guarded halo are fresh. Local.

        The text names the field, the side, the layers and the number of the last exchange. Sides that the exchange does
        not fill are not looked at.
        """
        call("hs_exchange_require_fresh", self._open(), whole("depth", depth), whole("slot", slot))

    def check_clean(self, slot: int = 0, stream: Stream | None = None) -> None:
        """Raise UsageError, on all ranks, where an own point was computed from a guarded halo that was stale.
        Collective.

        The text names the first such point of a rank and the side. Finds reals of 4 and 8 bytes, complex numbers of two
        of them, and copies of integers of 4 or 8 bytes; no half, no long double, and no number in another byte
        order. Cost: a reduction and one load for each number.

        stream: arrays on a device: after what it has been given. None: after what the default stream has been given.
        """
        slot, on = self._agreed("CHECK_CLEAN", slot, stream)
        self._call("check_clean", slot, on=on)

    def _call(self, function: str, *arguments: int, on: Any) -> None:
        """Call a function of the library, or its version for the stream `on`."""
        if on is None:
            call(f"hs_exchange_{function}", self._open(), *arguments)
        else:
            call(f"hs_exchange_{function}_on", self._open(), *arguments, on)

    def _agreed(self, call: str, slot: Any, stream: Stream | None = None) -> tuple[int, Any]:
        """Return a slot and a stream as C takes them. What is wrong with them is raised as by _refuse()."""
        try:
            return whole("slot", slot), None if stream is None else self._stream(stream)
        except HaloscopeError as problem:
            self._refuse(call, problem)

    def rebind(self, arrays: Array | Sequence[Array], slot: int = 0) -> None:
        """Use other arrays of the same types, shapes and strides from now on: for codes that make new ones in each
        step.

        arrays: one for each field, in their order, in a list or a tuple; anything else is one array. Raises
        UsageError for arrays that are not alike, and while an exchange is in flight; the next start() for arrays that
        share memory. Local and cheap, but for strategies whose neighbours know the arrays' addresses, which are opened
        again.
        """
        try:
            slot, found = whole("slot", slot), self._replacements(slot, arrays)
        except Exception as error:
            self._refuse("REBIND", as_problem(error, "arrays"))
        addresses = [one.pointer(array) for one, array in zip(self._described, found, strict=True)]
        call("hs_exchange_rebind", self._open(), slot, library()[0].new("void*[]", addresses))
        for one, array in zip(self._described, found, strict=True):
            one.replace(slot, array)

    def _replacements(self, slot: int, arrays: Sequence[Array]) -> list[np.ndarray]:
        given = several(arrays)
        if len(given) != len(self._described):
            raise UsageError(f"rebind() got {len(given)} arrays for {len(self._described)} fields; pass one for each")
        return [one.replacement(slot, array) for one, array in zip(self._described, given, strict=True)]

    def _refuse(self, call: str, problem: HaloscopeError) -> NoReturn:
        """Raise what is wrong on this rank, and where the others' call is collective, on them too."""
        ffi, lib = library()
        told = ffi.new("char[]", str(problem).encode("utf-8", "backslashreplace"))
        lib.hs_exchange_refuse(self._open(), getattr(lib, f"HS_CALL_{call}"), problem.exit_code, told)
        raise problem

    def report(self) -> str:
        """Return in one line which strategy moves the halos, what this rank sends, and what `auto` has chosen."""
        ffi, _ = library()
        result = ffi.new("const char**")
        call("hs_exchange_report", self._open(), result)
        return str(ffi.string(result[0]).decode())

    def free(self) -> None:
        """Give back what the exchange holds. Collective: ranks may wait for each other, and free in the same order.

        An exchange that is only dropped is freed by the next one on its communicator. Where the call is refused, as on
        a thread that may not call MPI, it stays open and can be freed later.
        """
        if self._handle is not None:
            call("hs_exchange_free", self._handle)
            self._handle = None
            self._forget()
            lifetimes.is_closed(self)

    def __enter__(self) -> Exchange:
        """Return itself; it is freed at the end of the block."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Free it; where an exception leaves the block, other ranks may not come, so it stays as a dropped one does."""
        if kind is None:
            self.free()

    def _open(self) -> Any:
        if self._handle is None:
            raise UsageError("the exchange was freed; open another one")
        return self._handle
