"""Fields of exchanges: a user's arrays with their halos, and their form in C."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from haloscope import memory
from haloscope.arguments import each, flag, flags, is_one, named, shown, text, whole
from haloscope.errors import UsageError
from haloscope.grid import Block, Centring, Grid, Halo, sides_of
from haloscope.ranks import library

# An array of NumPy, or an object that exposes its memory by __dlpack__, __array_interface__, __cuda_array_interface__
# or the buffer protocol.
Array = Any
EDGES = ("fixed", "even", "odd", "nearest")  # HS_EDGE_
Arrays = Array | Sequence[Array]  # a list or tuple: an array of each block of this rank


@dataclass(frozen=True)
class Field:
    """One field of an exchange.

    arrays: an array, or a tuple with one for each slot (buffers that take turns). Axes beyond the grid's are components
        of a point and must be contiguous in memory.
    halo: ghost layers on every side, or per axis a number or (low, high); None: the halo of the exchange.
    centring: "cell", "node", or "face-0", "face-1", "face-2" for faces that are normal to this axis. None: the one that
        the shape of the array has on a Grid, by one point more than cells and room in no axis, one axis, or all axes.
    outer: whether arrays have room for ghost layers beyond the edges of a grid that does not wrap around, where nothing
        is exchanged.
    name: the name of the field in messages.
    room: ghost layers that the arrays have, of which the exchange fills `halo`; None: the room of the exchange.
    edges: ghost points beyond an edge of a grid that does not wrap around: "fixed" ones keep their values; "even" ones
        have the values of the inner points mirrored at the edge, "odd" ones the negated values (a wall, whose normal
        velocity is odd), "nearest" ones the nearest inner value (an open boundary). For all edges, or per axis one for
        both or (low, high). "odd" needs reals of 4 or 8 bytes.
    high_faces: whether values of cells lie on the high faces of their cells, per axis or for all, as velocities of
        ocean models do in arrays of one shape. Only folds and seams of the grid depend on it.
    vector: the vector field that this is a component of, in directions of the grid: any name, equal for its components.
        Across a seam its x may be y, or opposite; across a fold it changes its sign. Reals of 4 or 8 bytes.
    along: the axis of the component.
    """

    arrays: Array | tuple[Array, ...]
    halo: Halo | None = None
    centring: Centring | None = None
    outer: bool = True
    name: str = ""
    room: Halo | None = None
    edges: Any = "fixed"
    high_faces: bool | Sequence[bool] = False
    vector: str = ""
    along: int = 0


def fields_of(arrays: Any) -> list[Field]:
    """Return the arrays as fields; one array alone is a list of one."""
    return [one if isinstance(one, Field) else Field(one) for one in several(arrays)]


def several(arrays: Any) -> list[Any]:
    """Return the arrays in a list or a tuple. Anything else is one array: arrays of many kinds are sequences too."""
    return list(arrays) if isinstance(arrays, list | tuple) else [arrays]


def by_block(grid: Grid, arrays: Arrays) -> list[tuple[Block, Array]]:
    """Return the blocks of this rank with an array of each. Raises UsageError for another number of arrays."""
    listed = several(arrays)
    if len(listed) != len(grid.blocks):
        raise UsageError(
            f"the call takes the array of each block; this rank passed {len(listed)} and has {len(grid.blocks)}: pass "
            "a list in the order of grid.blocks"
        )
    return list(zip(grid.blocks, listed, strict=True))


def refuse_other_types(fields: Sequence[Described], each: int) -> None:
    """Raise UsageError where a field of a later block, of `each` in every block, has another type than in the first."""
    for number, one in enumerate(fields):
        refuse_other(one, number // each, "elements of type", one.type, fields[number % each].type)


def refuse_other(one: Described, block: int, name: str, value: Any, first: Any) -> None:
    """Raise UsageError where a property of a field differs from that of the field of the first block in its place."""
    if value != first:
        raise UsageError(
            f"{one.name} of block {block} has {name} {value}, and the field of block 0 in its place {first}; pass the "
            "arrays of the first block, then the same ones of the next"
        )


def structs_of(grid: Block, fields: Sequence[Described]) -> Any:
    """Return the fields as an array of structs of C."""
    structs = library()[0].new("hs_field[]", len(fields))
    vectors = {"": 0}  # numbers by name
    for field, struct in zip(fields, structs, strict=True):
        field.fill(grid, struct)
        struct.vector = vectors.setdefault(field.vector, len(vectors))
    return structs


def name_of(field: Field, number: int) -> str:
    """Return the name of a field in messages."""
    return field.name or f"array {number}"


def slots_of(field: Field, name: str) -> tuple[Array, ...]:
    """Return the arrays of a field, one for each slot."""
    arrays = field.arrays if isinstance(field.arrays, tuple) else (field.arrays,)
    if not arrays:
        raise UsageError(f"{name} has no arrays; pass one, or one for each slot")
    return arrays


def edges_of(edges: Any, dims: int, name: str) -> list[tuple[str, str]]:
    """Return the edges of a field, (low, high) per axis. Raises UsageError, with its name, for other words."""
    wanted = "one of " + ", ".join(EDGES)

    def pair(side: Any) -> tuple[str, str]:
        found = [side, side] if is_one(side) else each("edges", side, f"(low, high) for an axis, each {wanted}")
        for edge in found:
            if not isinstance(edge, str) or edge not in EDGES:
                raise UsageError(f"edges of {name} has {shown(edge)}; each is {wanted}")
        if len(found) != 2:
            raise UsageError(f"edges of {name} has {shown(side)} for an axis; pass one word, or (low, high)")
        return found[0], found[1]

    with named("edges", edges):
        pairs = [pair(edges)] * dims if is_one(edges) else [pair(one) for one in each("edges", edges, wanted)]
    if len(pairs) != dims:
        raise UsageError(
            f"edges of {name} is {shown(edges)} for {dims} axes; pass one word, or for each axis a word or (low, high)"
        )
    return pairs


def layers_of(field: Field, halo: Halo, room: Halo | None, dims: int) -> tuple[list[tuple[int, int]], ...]:
    """Return the ghost layers that an exchange fills, and those that the arrays have, (low, high) per axis.

    halo, room: of the exchange, for fields without them. Raises UsageError where arrays have fewer.
    """
    sides = sides_of(halo if field.halo is None else field.halo, dims)
    chosen = room if field.room is None else field.room
    if chosen is None:
        return sides, sides
    found = sides_of(chosen, dims, "room")
    if any(has < fills for pair in zip(found, sides, strict=True) for has, fills in zip(*pair, strict=True)):
        raise UsageError(f"room is {found}, fewer layers than the halo {sides}; pass the layers that the arrays have")
    return sides, found


def _number_bytes(dtype: np.dtype) -> int:
    """Return the bytes of each number of an element; -1 where it is not made of native numbers."""
    if dtype.kind not in "iufc" or not dtype.isnative:
        return -1
    return dtype.itemsize // (2 if dtype.kind == "c" else 1)


def _type_of(array: np.ndarray, dims: int) -> str:
    """Return the parts of a point of an array: type, byte order, members of a struct, axes beyond the grid's."""
    dtype = array.dtype if array.dtype.names is None else np.dtype((np.void, array.dtype))  # records are structs
    components = f" with components {array.shape[dims:]}" if array.ndim > dims else ""
    return f"{dtype}{components}"


def can_be_added(dtype: np.dtype) -> bool:
    """Return whether C adds elements of a type: integers, reals and complex numbers of single or double precision."""
    return _number_bytes(dtype) in ((1, 2, 4, 8) if dtype.kind in "iu" else (4, 8))


class Described:
    """The C struct of one field, with the arrays that it points to."""

    def __init__(
        self,
        grid: Block,
        field: Field,
        number: int,
        layers: tuple[Halo, Halo | None],
        slots: int,
        only_read: bool = False,
    ):
        self.name = name_of(field, number)
        self.encoded = library()[0].new("char[]", text("name", self.name))
        arrays = slots_of(field, self.name)
        if len(arrays) != slots:
            raise UsageError(
                f"{self.name} has {len(arrays)} slots and array 0 has {slots}; pass the same number for all fields"
            )
        self.arrays = [memory.described(array, self.name, only_read) for array in arrays]
        self.sides, room = layers_of(field, *layers, grid._dims)
        self.room = room if flag("outer", field.outer) else grid._inner_sides(room)
        self.edges = edges_of(field.edges, grid._dims, self.name)
        if not field.outer and any(edge != "fixed" for side in self.edges for edge in side):
            raise UsageError(f"{self.name} has edges that the exchange fills, and no room beyond them; leave outer out")
        self.high_faces = flags(f"high_faces of {self.name}", field.high_faces, grid._dims)
        self.vector, self.along = field.vector, whole("along", field.along)
        if not isinstance(self.vector, str) or not 0 <= self.along < grid._dims:
            raise UsageError(
                f"{self.name} is component {self.along} of vector {shown(self.vector)}; pass the name of a vector and "
                f"an axis from 0 to {grid._dims - 1}"
            )
        self.centring = field.centring or self._centring_by_shape(grid)
        for array in self.arrays:
            self._check(grid, array)
        self.type = _type_of(self.arrays[0], grid._dims)
        self.first = library()[0].new("void*[]", [self.pointer(array) for array in self.arrays])

    def _centring_by_shape(self, grid: Block) -> Centring:
        """Return the centring for which the first array has the right shape; "cell" where none or several have."""
        shape = self.arrays[0].shape[: grid._dims]
        more = [n - cells - sum(room) for n, cells, room in zip(shape, grid.shape, self.room, strict=False)]
        if len(more) == grid._dims and set(more) == {1}:
            return "node"
        return f"face-{more.index(1)}" if sorted(more) == [0] * (grid._dims - 1) + [1] else "cell"

    def _check(self, grid: Block, array: np.ndarray) -> None:
        dims, one = grid._dims, self.arrays[0]
        points = grid.points(self.centring)
        wanted = tuple(n + low + high for n, (low, high) in zip(points, self.room, strict=True))
        if array.shape[:dims] != wanted:
            raise UsageError(
                f"{self.name} has shape {array.shape[:dims]}; {wanted} are this rank's {points} points and a halo of "
                f"{self.room}. Make it with grid.zeros(), or pass its halo, or as room the layers that it has"
            )
        if (array.strides, array.dtype, array.shape) != (one.strides, one.dtype, one.shape):
            raise UsageError(f"{self.name} has slots of different types, shapes or strides; make them alike")
        if array.dtype.hasobject:
            raise UsageError(
                f"{self.name} holds Python objects; halos are moved as bytes: pass numbers or structs of them"
            )
        step = array.itemsize
        for extent, stride in reversed(list(zip(array.shape[dims:], array.strides[dims:], strict=True))):
            if extent > 1 and stride != step and array.size:  # NumPy's strides are 0 in empty arrays
                raise UsageError(
                    f"{self.name} has axes beyond the grid's {dims} that are not contiguous; pass each component as a "
                    "separate array"
                )
            step *= extent
        self.element_bytes = step

    def replacement(self, slot: int, array: Array) -> np.ndarray:
        """Return the memory of another array for a slot. Raises UsageError for other types, shapes and strides."""
        if not 0 <= slot < len(self.arrays):
            raise UsageError(f"slot {slot} does not exist; {self.name} has {len(self.arrays)}")
        found, one = memory.described(array, self.name), self.arrays[slot]
        if (found.strides, found.dtype, found.shape) != (one.strides, one.dtype, one.shape):
            raise UsageError(
                f"{self.name} had shape {one.shape}, strides {one.strides} and type {one.dtype}, the new array has "
                f"{found.shape}, {found.strides} and {found.dtype}; open another exchange for it"
            )
        return found

    def replace(self, slot: int, found: np.ndarray) -> None:
        """Replace the memory of a slot."""
        self.arrays[slot] = found
        self.first[slot] = self.pointer(found)

    @property
    def before(self) -> int:
        """The bytes from the first point of an array to the first owned one."""
        return sum(low * stride for (low, _), stride in zip(self.room, self.arrays[0].strides, strict=False))

    def pointer(self, array: np.ndarray) -> Any:
        """Return a pointer to the first owned point."""
        start: int = array.__array_interface__["data"][0]
        return library()[0].cast("void*", start + self.before)

    def fill(self, grid: Block, into: Any) -> None:
        """Set the members of a C struct."""
        ffi, lib = library()
        into.struct_size = ffi.sizeof("hs_field")
        into.first, into.name, into.element_bytes = self.first, self.encoded, self.element_bytes
        into.centring = grid._centring(self.centring)
        dtype = self.arrays[0].dtype
        into.type = lib.HS_TYPE_INTEGER if dtype.kind in "iub" else lib.HS_TYPE_REAL
        into.number_bytes = _number_bytes(dtype)
        into.along = grid._dimension(self.along) if self.vector else 0
        for axis, (low, high) in enumerate(self.sides):
            d = grid._dimension(axis)
            into.low[d], into.high[d], into.stride[d] = low, high, self.arrays[0].strides[axis]
            into.on_high_face[d] = self.high_faces[axis]
            into.edges[d] = [EDGES.index(edge) for edge in self.edges[axis]]
