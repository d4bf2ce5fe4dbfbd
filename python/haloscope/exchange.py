"""Halo exchange of your own arrays: NumPy, CuPy, or any object that exposes its memory in the same way.

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

The axes of a grid are the axes of its arrays. All ranks make the same calls in the same order; only reads of a grid are
local. Errors are `haloscope.errors.UsageError` and `UnavailableError`, raised on all ranks; but an argument of start()
or a call of an exchange that is wrong on one rank raises there alone, and the others wait for it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn, overload

import numpy as np

from haloscope import memory
from haloscope.arguments import as_problem, flag, text, whole
from haloscope.array_grid import grid_of_arrays
from haloscope.bridge import capi
from haloscope.errors import HaloscopeError, UsageError
from haloscope.fields import (
    Array,
    Described,
    Field,
    fields_of,
    name_of,
    refuse_other,
    refuse_other_types,
    several,
    slots_of,
    structs_of,
)
from haloscope.grid import Grid, Halo
from haloscope.lifetimes import Dropped, Opened
from haloscope.parts import Parts
from haloscope.ranks import agree, call, gather, library, mark, member, refuse_unlike_types

if TYPE_CHECKING:
    from mpi4py import MPI

__all__ = ["Exchange", "Field", "Grid"]

Stream = Any  # a stream of CuPy or PyTorch, or its address


class Exchange(Opened):
    """A halo exchange of arrays, opened once and run in each step: call it, or use start() and finish()."""

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
        room: Halo | None = None,
    ):
        """Open an exchange of `arrays`, of any mixture of types. Collective. The arrays must stay in place.

        grid: a Grid, or a communicator with a Cartesian topology; the shapes of arrays then define each rank's cells.
        arrays: arrays with their halos, in a list or a tuple; anything else is one array. Where ranks have several
            blocks: the arrays of the first block, then the same ones of the next. A Field describes an array in
            more detail. Either all arrays or none are in device memory (CuPy, PyTorch), if the library was built for
            the device. There, `auto` is "direct:merged/auto-device".
        halo: ghost layers on every side, or per axis a number or (low, high); they may be wider than a rank's block.
        room: ghost layers that the arrays have, where they have more than the exchange fills. None: `halo`.
        strategy: a strategy such as "ordered/p2p"; `haloscope advise` recommends one. None: "auto", which tries several
            while it runs. HALOSCOPE_STRATEGY in the environment of rank 0 overrides it.
        corners: whether edges and corners are filled too; a star stencil does not read them.
        guard: whether the exchange tracks the fresh layers of each halo and poisons the others, see changed().
            HALOSCOPE_GUARD=1 or 0 in the environment of rank 0 overrides it.
        axes: for a communicator with a Cartesian topology, the axis of arrays that each of its dimensions splits, such
            as (1, 2) for arrays [z, y, x] in columns. Axis 0 of these does not wrap around (with a Grid it can), and
            has a halo if `halo` specifies one. Axes after the last named one are components of a point. Default: the
            first axes.

        Raises UsageError on all ranks for arrays that do not fit the grid, cannot be written to, share memory with
        each other, carry more than memory (masks, units), or have different types on different ranks; UnavailableError
        for a strategy that this MPI does not support. Cost: some small collective calls and the opening of the
        transport.
        """
        if isinstance(grid, Grid):
            self.grid = grid
        else:
            self.grid = grid_of_arrays(grid, arrays, (halo, room), axes)
            axes = None
        comm = self.grid.comm
        member(comm)
        described, options, structs, types, dropped = agree(
            comm,
            "an exchange",
            lambda: self._prepare(arrays, (halo, room), strategy, corners, guard, axes),
            lambda: self.grid.order,
        )
        waiting = dropped.waiting()
        found = gather(comm, "an exchange", [len(waiting), types])
        refuse_unlike_types(comm, [f"{one.name}: {one.type}" for one in described[: self._each]], found[:, 1])
        ffi, _ = library()
        handle = ffi.new("hs_exchange**")
        dropped.free(comm, waiting, found[:, 0])
        call("hs_exchange_create", self.grid._handle, structs, len(described), options, handle)
        self._described = described
        self._begin(handle[0], dropped, self.grid._size, described)
        _, lib = library()
        self._start, self._start_on = lib.hs_exchange_start_part, lib.hs_exchange_start_part_on
        self._start_accumulate = lib.hs_exchange_start_accumulate_part
        self._start_accumulate_on = lib.hs_exchange_start_accumulate_part_on
        self._run, self._accumulate = lib.hs_exchange_run_part, lib.hs_exchange_accumulate_part
        self._finish, self._finish_on, self._progress = (
            lib.hs_exchange_finish,
            lib.hs_exchange_finish_on,
            lib.hs_exchange_progress,
        )
        self._parts = Parts(self.grid, described, self._each)
        self._done = ffi.new("int32_t*")

    def _prepare(
        self, arrays: Any, layers: tuple[Halo, Halo | None], strategy: Any, corners: Any, guard: Any, axes: Any
    ) -> tuple:
        """Return the fields, the options, the fields as structs of C, a mark of their types, and dropped exchanges."""
        ffi, lib = library()
        fields = fields_of(arrays)
        if not fields:
            raise UsageError("an exchange of no arrays; pass at least one")
        if axes is not None:
            raise UsageError("axes splits arrays over a communicator; a Grid has a split: leave axes out")
        slots = len(slots_of(fields[0], name_of(fields[0], 0)))
        blocks = self.grid.blocks
        if len(fields) % len(blocks):
            raise UsageError(
                f"an exchange got {len(fields)} arrays for {len(blocks)} blocks of this rank; pass the arrays of the "
                "first block, then the same ones of the next"
            )
        self._each = len(fields) // len(blocks)
        described = [
            Described(blocks[number // self._each], field, number, layers, slots) for number, field in enumerate(fields)
        ]
        refuse_other_types(described, self._each)
        for number, one in enumerate(described[self._each :], start=self._each):
            first, block, name = described[number % self._each], number // self._each, fields[number].name
            refuse_other(one, block, "a halo of", one.sides, first.sides)
            refuse_other(one, block, "the name", name, name and first.name)
        structs = structs_of(self.grid, described)
        options = ffi.new("hs_exchange_options*")
        lib.hs_exchange_init_sized(options, ffi.sizeof("hs_exchange_options"))
        options.corners, options.slots, options.guard = flag("corners", corners), slots, flag("guard", guard)
        if strategy is not None:
            self._strategy = ffi.new("char[]", text("strategy", strategy))
            options.strategy = self._strategy
        types = mark([one.type for one in described[: self._each]])
        return described, options, structs, types, Dropped.on(self.grid.comm)

    def start(
        self,
        slot: int = 0,
        stream: Stream | None = None,
        *,
        only: Any = None,
        depth: Halo | None = None,
        ghost_rows: bool = False,
    ) -> None:
        """Send all messages that are ready. The outermost owned points must not change before finish().

        stream: for arrays on a device, a stream of CuPy or PyTorch, or its address. Packing runs after the work already
            enqueued on it. Default: the default stream of the device.
        only: the arrays to exchange, or their numbers from 0, in a list or a tuple; or one of them. Default: all.
        depth: layers on every side that the exchange fills, or per axis a number or (low, high), at most the halo.
            Default: the halo.
        ghost_rows: messages also carry the ghost layers of axes where the call fills none, for callers that have
            computed these layers.
        Raises UsageError while an exchange is in flight, for a slot that does not exist, for a stream with arrays in
        host memory, for arrays that the exchange lacks, and for more layers than the halo. Cost: the messages of the
        chosen arrays and layers. The first call with other arrays or layers is collective, like the opening; later
        calls use its links again.
        """
        if type(slot) is not int or slot >> 31:  # inlined, because it runs in each step
            slot = whole("slot", slot)
        part = self._parts.find(only, depth, ghost_rows, slot)
        if stream is None:
            status = self._start(self._open(), part, slot)
        else:
            status = self._start_on(self._open(), part, slot, self._stream(stream))
        if status:
            capi.check(library(), status)

    def progress(self) -> bool:
        """Advance messages; return whether everything has arrived.

        Does not wait, with one exception: reference, neighbor:blocking, rma-fence, rma-pscw:get and shared:fence
        complete only in a call of MPI that waits. With these, the 1000th call of an exchange makes that MPI call, so
        that a loop ends.
        """
        capi.check(library(), self._progress(self._open(), self._done))
        return bool(self._done[0])

    def finish(self, stream: Stream | None = None) -> None:
        """Wait until all halos of the started slot are filled.

        stream: for arrays on a device. The host does not wait for the device; work enqueued later on this stream finds
            the halos filled.
        """
        if stream is None:
            capi.check(library(), self._finish(self._open()))
        else:
            capi.check(library(), self._finish_on(self._open(), self._stream(stream)))

    @overload
    def __call__(
        self,
        slot: int = 0,
        stream: Stream | None = None,
        *,
        only: Any = None,
        depth: Halo | None = None,
        ghost_rows: bool = False,
    ) -> None: ...

    @overload
    def __call__(self, *arrays: Array, slot: int = 0) -> None: ...

    def __call__(
        self,
        *first: Any,
        slot: int = 0,
        stream: Stream | None = None,
        only: Any = None,
        depth: Halo | None = None,
        ghost_rows: bool = False,
    ) -> None:
        """Fill the halos of a slot: start() and finish().

        only, depth, ghost_rows: some arrays, layers and sides, as in start().
        arrays: other arrays of the same types, shapes and strides, one for each field, which the slot keeps:
            `halo(u2, v2)` is rebind(), where they lie elsewhere than in the last call, then halo(). Cost: microseconds
            for each array; with strategies that rebind() opens again, also a reduction.
        """
        if first and memory.is_array(first[0]):
            if stream is not None or only is not None or depth is not None or ghost_rows:
                problem = "a call with arrays takes no stream and no part; pass the arrays to rebind() first"
                self._refuse("RUN_AT", UsageError(problem))
            return self._move("hs_exchange_run_at", list(first), slot)
        if len(first) > 2:
            raise UsageError(f"a call got {len(first)} numbers; pass a slot and a stream, or arrays")
        if first:
            slot, stream = first if len(first) == 2 else (first[0], stream)
        if stream is not None:
            self.start(slot, stream, only=only, depth=depth, ghost_rows=ghost_rows)
            return self.finish(stream)
        if type(slot) is not int or slot >> 31:
            slot = whole("slot", slot)
        status = self._run(self._open(), self._parts.find(only, depth, ghost_rows, slot), slot)
        if status:
            capi.check(library(), status)
        return None

    @staticmethod
    def _stream(stream: Stream) -> Any:
        return library()[0].cast("void*", memory.stream_address(stream))

    def start_accumulate(
        self,
        slot: int = 0,
        stream: Stream | None = None,
        *,
        only: Any = None,
        depth: Halo | None = None,
        ghost_rows: bool = False,
    ) -> None:
        """Start to add values in the halos to the owned points that they are copies of: the transpose of an exchange.

        finish() ends it and clears the halos. Until then the outermost owned points and the halos must not be accessed.
        Every strategy gives the same bits. Nodes and faces that several ranks hold get the sum of all holders, even
        with halos of 0 layers, as the assembly of finite elements requires.

        stream: for arrays on a device, as in start().
        only, depth, ghost_rows: as in start(); other halos stay as they are.
        Raises UsageError as start() does, and for arrays of types other than integers, f4, f8, c8 and c16. Cost: the
        messages of an exchange, and one pass over the arrived data. The first call is collective and opens another
        link.
        """
        slot, on, part = self._agreed("ACCUMULATE", slot, stream, only, depth, ghost_rows)
        self._require_addends(part)
        if on is None:
            status = self._start_accumulate(self._open(), part, slot)
        else:
            status = self._start_accumulate_on(self._open(), part, slot, on)
        if status:
            capi.check(library(), status)

    def accumulate(
        self,
        slot: int = 0,
        stream: Stream | None = None,
        *,
        only: Any = None,
        depth: Halo | None = None,
        ghost_rows: bool = False,
    ) -> None:
        """Add the halos of a slot to the owned points and clear them: start_accumulate() and finish()."""
        if stream is not None:
            self.start_accumulate(slot, stream, only=only, depth=depth, ghost_rows=ghost_rows)
            return self.finish(stream)
        slot, _, part = self._agreed("ACCUMULATE", slot, None, only, depth, ghost_rows)
        self._require_addends(part)
        status = self._accumulate(self._open(), part, slot)
        if status:
            capi.check(library(), status)
        return None

    def start_share(self, slot: int = 0, stream: Stream | None = None, *, only: Any = None) -> None:
        """Start to copy points that several ranks hold (nodes and faces between blocks) from owners to other holders.

        The owner is the rank whose cell begins at the point, along each axis; where the grid ends there, or has a hole,
        the next block around the point, the same for all holders. Both ends of a periodic axis are one point. Halos
        keep their contents. finish() ends it; until then these points must not be accessed.

        stream, only: as in start(). Raises UsageError as start() does. Cost: a message to each rank that holds points
        of this rank's. The first call is collective, like the opening.
        """
        slot, on, part = self._agreed("SHARE", slot, stream, only)
        if on is None:
            call("hs_exchange_start_share", self._open(), part, slot)
        else:
            call("hs_exchange_start_share_on", self._open(), part, slot, on)

    def share(self, slot: int = 0, stream: Stream | None = None, *, only: Any = None) -> None:
        """Give all holders of nodes and faces the owner's values: start_share() and finish()."""
        self.start_share(slot, stream, only=only)
        self.finish(stream)

    def _require_addends(self, part: Any) -> None:
        if one := self._parts.not_added(part):
            problem = UsageError(
                f"{one.name} has elements of type {one.arrays[0].dtype}, which cannot be added: pass integers, or "
                "real or complex numbers of single or double precision, in this machine's order of bytes, and the "
                "others to another exchange"
            )
            self._refuse("ACCUMULATE", problem)

    def changed(self, slot: int = 0, fresh: int = 0, stream: Stream | None = None) -> None:
        """Declare that owned points of a slot have changed. A guarded exchange then poisons its halos. Local.

        Poisoned reals of 4 and 8 bytes are NaNs that encode their side; all other data are bytes DB. Without guard the
        call has no effect. Cost with guard: one store for each number in the halos.

        fresh: layers that stay fresh, because the sweep has computed them too.
        stream: for arrays on a device. The poison follows the work already enqueued on this stream and precedes work
            enqueued later. Default: it follows the work on the default stream, and the host waits for it.
        Raises UsageError for a slot that does not exist, a negative number, and while an exchange is in flight.
        """
        slot, fresh = whole("slot", slot), whole("fresh", fresh)
        self._call("changed", slot, fresh, on=None if stream is None else self._stream(stream))

    def require_fresh(self, depth: int, slot: int = 0) -> None:
        """Raise UsageError, on all ranks, where fewer than `depth` layers of a guarded halo are fresh. Local.

        The text names the field, the side, the layers and the number of the last exchange. Sides that the exchange does
        not fill are not checked.
        """
        call("hs_exchange_require_fresh", self._open(), whole("depth", depth), whole("slot", slot))

    def check_clean(self, slot: int = 0, stream: Stream | None = None) -> None:
        """Raise UsageError, on all ranks, where an owned point was computed from a stale guarded halo. Collective.

        The text names the first such point of a rank and the side. The check finds reals of 4 and 8 bytes, complex
        numbers of two of these, and copies of integers of 4 or 8 bytes. It does not find half, long double, or numbers
        in another byte order. Cost: a reduction and one load for each number.

        stream: for arrays on a device. The check follows the work already enqueued on this stream. Default: the default
            stream of the device.
        """
        slot, on, _ = self._agreed("CHECK_CLEAN", slot, stream)
        self._call("check_clean", slot, on=on)

    def _call(self, function: str, *arguments: int, on: Any) -> None:
        """Call a function of the library, or its version for the stream `on`."""
        if on is None:
            call(f"hs_exchange_{function}", self._open(), *arguments)
        else:
            call(f"hs_exchange_{function}_on", self._open(), *arguments, on)

    def _agreed(
        self,
        call: str,
        slot: Any,
        stream: Stream | None = None,
        only: Any = None,
        depth: Halo | None = None,
        ghost_rows: bool = False,
    ) -> tuple[int, Any, Any]:
        """Return a slot, a stream and a part as C values. Errors in them are raised as by _refuse()."""
        try:
            slot = whole("slot", slot)
            on = None if stream is None else self._stream(stream)
            return slot, on, self._parts.find(only, depth, ghost_rows, slot)
        except Exception as error:
            self._refuse(call, as_problem(error))

    def rebind(self, arrays: Array | Sequence[Array], slot: int = 0) -> None:
        """Use other arrays of the same types, shapes and strides from now on, in codes that make new ones in each step.

        Local and cheap, except for strategies whose neighbours hold the addresses of the arrays (shared except
        shared:packed, one-sided ones, neighbor, partitioned): these are opened again, which is collective.

        arrays: one for each field, in their order, in a list or a tuple; anything else is one array.
        Raises UsageError for arrays of other types, shapes or strides, and while an exchange is in flight. Only the
        next start() raises it for arrays that share memory.
        """
        self._move("hs_exchange_rebind", arrays, slot)

    def _move(self, function: str, arrays: Any, slot: Any) -> None:
        """Call a function of C that moves a slot to other arrays: hs_exchange_rebind or hs_exchange_run_at."""
        try:
            slot, found = whole("slot", slot), self._replacements(slot, arrays)
        except Exception as error:
            self._refuse(function.removeprefix("hs_exchange_").upper(), as_problem(error, "arrays"))
        passed = [one.pointer(array) for one, array in zip(self._described, found, strict=True)]
        ffi, _ = library()
        try:
            call(function, self._open(), slot, ffi.new("void*[]", passed))
        finally:  # the library may have moved to the arrays, and then refused to exchange them
            held = ffi.new("void*[]", len(passed))
            with contextlib.suppress(HaloscopeError):
                call("hs_exchange_first", self._open(), slot, held)
            for one, array, address, now in zip(self._described, found, passed, held, strict=True):
                if address == now:
                    one.replace(slot, array)
            self._parts.forget()

    def _replacements(self, slot: int, arrays: Sequence[Array]) -> list[np.ndarray]:
        passed = several(arrays)
        if len(passed) != len(self._described):
            raise UsageError(f"got {len(passed)} arrays for {len(self._described)} fields; pass one for each")
        return [one.replacement(slot, array) for one, array in zip(self._described, passed, strict=True)]

    def _refuse(self, call: str, problem: HaloscopeError) -> NoReturn:
        """Raise an error of this rank; where the call is collective, also on the other ranks."""
        ffi, lib = library()
        message = ffi.new("char[]", str(problem).encode("utf-8", "backslashreplace"))
        lib.hs_exchange_refuse(self._open(), getattr(lib, f"HS_CALL_{call}"), problem.exit_code, message)
        raise problem
