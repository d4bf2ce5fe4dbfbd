"""Parts of an exchange, passed to its calls: some of its arrays, fewer layers, some sides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from haloscope import memory
from haloscope.arguments import flag, is_number, is_one, shown, whole
from haloscope.errors import UsageError
from haloscope.fields import Described, Field, can_be_added, several
from haloscope.grid import Grid, Halo, sides_of
from haloscope.ranks import library

_MOST = 256  # parts in the cache: programs may make new arrays for each call


class Parts:
    """The parts of an open exchange, as structs of C, cached by the arguments of calls.

    Fields are numbered within a block.
    """

    def __init__(self, grid: Grid, described: Sequence[Described], fields: int):
        """described: the arrays of all blocks, block by block. fields: arrays of each block."""
        self._grid, self._described, self._fields = grid, described, fields
        self._cached: dict[tuple, tuple] = {}
        self._not_added = [n for n, one in enumerate(described[:fields]) if not can_be_added(one.arrays[0].dtype)]
        self.whole = library()[0].NULL

    def forget(self) -> None:
        """Forget the arrays of earlier calls, after fields have got other arrays."""
        self._cached.clear()

    def find(self, only: Any, depth: Halo | None, ghost_rows: bool, slot: Any) -> Any:
        """Return the struct of a part.

        only: arrays of the slot, Fields or numbers of fields from 0, in a list or a tuple; anything else is one of
            them. None: all.
        depth, ghost_rows: as Exchange.start(). Raises UsageError for arrays that the exchange lacks, and depths that
        are not numbers of layers. Cost: a look-up, after the first call with these objects.
        """
        if only is None and depth is None and ghost_rows is False:
            return self.whole
        objects = [_plain(one) for one in several(only)]
        names = (one if type(one) is int else id(one) for one in objects)
        key = (*names, slot, depth if type(depth) is int else repr(depth), ghost_rows is True or repr(ghost_rows))
        if key not in self._cached:
            if len(self._cached) >= _MOST:
                self._cached.clear()
            numbers = [] if only is None else self._numbers(objects, slot)
            self._cached[key] = (
                self._make(numbers, depth, flag("ghost_rows", ghost_rows)),
                objects,
            )  # identities hold while the objects live
        part, *_ = self._cached[key][0]
        return part

    def not_added(self, part: Any) -> Described | None:
        """Return the first field of a part whose elements cannot be added; None: all can be."""
        chosen = part.only[0 : part.count] if part and part.only else range(self._fields)
        first = next((number for number in self._not_added if number in chosen), None)
        return None if first is None else self._described[first]

    def _make(self, only: list[int], depth: Halo | None, ghost_rows: int) -> tuple:
        """Return the struct, and the memory that it points to. only: numbers of fields; none: all of them."""
        ffi, lib = library()
        part = ffi.new("hs_part*")
        lib.hs_part_init_sized(part, ffi.sizeof("hs_part"))
        part.ghost_rows = ghost_rows
        numbers = ffi.new("int32_t[]", only)
        if only:
            part.only, part.count = numbers, len(only)
        if depth is not None and is_one(depth):
            part.depth = sides_of(depth, 1, "depth")[0][0]
        elif depth is not None:
            for axis, (low, high) in enumerate(sides_of(depth, self._grid._dims, "depth")):
                d = self._grid._dimension(axis)
                part.low[d], part.high[d] = low, high
        return part, numbers

    def _numbers(self, chosen: list[Any], slot: Any) -> list[int]:
        if not chosen:
            raise UsageError("only names no array; pass arrays of the exchange, or leave it out for all of them")
        if not self._grid._several:
            return [self._number(one, slot) for one in chosen]
        arrays = [one for one in chosen if type(one) is not int]
        fields = dict.fromkeys(self._number(one, slot) % self._fields for one in arrays)  # of any blocks
        return [*fields, *(self._number(one, slot) for one in chosen if type(one) is int)]

    def _number(self, one: Any, slot: Any) -> int:
        """Return the number of a field, from 0."""
        if type(one) is int:
            count = self._fields
            if not 0 <= one < count:
                raise UsageError(f"only names array {one}; the exchange has arrays 0 to {count - 1}")
            return one
        if isinstance(one, bool | np.bool_ | str):
            raise UsageError(f"only is {shown(one)}; pass arrays of the exchange or their numbers from 0, in a list")
        array = one.arrays if isinstance(one, Field) else one
        array = array[0] if isinstance(array, tuple) else array
        found = memory.described(array, "an array of only")
        for number, field in enumerate(self._described):
            places = [n for n, known in enumerate(field.arrays) if _is_same(found, known)]
            if places and not isinstance(one, Field) and slot not in places:
                raise UsageError(
                    f"only names the array of slot {places[0]} of {field.name}, and the call is for slot {slot}; pass "
                    f"slot={places[0]}, or the number of the field: {number}"
                )
            if places:
                return number
        raise UsageError(
            f"only names an array of shape {shown(found.shape)} that the exchange lacks; pass its arrays, or their "
            "numbers from 0 in a list"
        )


def _plain(one: Any) -> Any:
    """Return the number of a field as a plain int, since other numbers may change; other objects as they are."""
    if type(one) is int or isinstance(one, bool | np.bool_) or not is_number(one):
        return one
    return whole("only", one)


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two descriptions of arrays are of the same memory."""
    return bool(one.__array_interface__["data"][0] == other.__array_interface__["data"][0]) and (
        (one.shape, one.strides, one.dtype) == (other.shape, other.strides, other.dtype)
    )
