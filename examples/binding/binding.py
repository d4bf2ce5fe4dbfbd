"""A binding of exchange.h for a language that has only foreign functions: structs and calls, by ctypes.

It makes the calls of docs/extend/language.md and no others. For Python, use the package haloscope.
"""

import ctypes
from ctypes import POINTER, byref, c_char_p, c_int, c_int32, c_int64, c_uint64, c_void_p, sizeof

ABI = 10  # HS_ABI of the header from which the structs below were copied
Triple, Triple64 = c_int32 * 3, c_int64 * 3


class Box(ctypes.Structure):
    """hs_box: global cells, half-open."""

    _fields_ = [("lo", Triple64), ("hi", Triple64)]


class GridOptions(ctypes.Structure):
    """hs_grid_options; hs_grid_init_sized() writes the defaults."""

    _fields_ = [
        ("struct_size", c_uint64),
        ("cells", Triple64),
        ("dims", c_int32),
        ("split", c_int32),
        ("periodic", Triple),
        ("rank_order", Triple),
        ("axes", Triple),
        ("holes", c_int32),
        ("owned", Box),
        ("process_grid", c_char_p),
        ("nodes", POINTER(c_int32)),
        ("reorder", c_int32),
        ("node_count", c_int32),
        ("problem", c_char_p),
        ("problem_status", c_int32),
        ("active_ranks", c_int32),
        ("block_count", c_int32),
        ("blocks", POINTER(Box)),
        ("fold", c_int32),
        ("panel_count", c_int32),
        ("panels", POINTER(Box)),
        ("seams", c_void_p),
        ("seam_count", c_int32),
        ("reserved", c_int32),
    ]


class Field(ctypes.Structure):
    """hs_field: one array; hs_field_init_sized() writes the defaults."""

    _fields_ = [
        ("struct_size", c_uint64),
        ("first", POINTER(c_void_p)),
        ("stride", Triple64),
        ("element_bytes", c_int32),
        ("type", c_int32),
        ("centring", c_int32),
        ("low", Triple),
        ("high", Triple),
        ("number_bytes", c_int32),
        ("name", c_char_p),
        ("edges", c_int32 * 2 * 3),
        ("on_high_face", Triple),
        ("vector", c_int32),
        ("along", c_int32),
        ("reserved", c_int32),
    ]


class ExchangeOptions(ctypes.Structure):
    """hs_exchange_options; hs_exchange_init_sized() writes the defaults."""

    _fields_ = [
        ("struct_size", c_uint64),
        ("strategy", c_char_p),
        ("corners", c_int32),
        ("slots", c_int32),
        ("guard", c_int32),
        ("reserved", c_int32),
    ]


class Library:
    """The loaded library; each failing call raises the text of its error."""

    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        self.c.hs_last_error.restype = c_char_p
        if self.c.hs_abi() != ABI:
            raise RuntimeError(f"{path} has interface {self.c.hs_abi()}; this binding is for {ABI}")

    def call(self, function, *arguments):
        """Make a call that returns hs_status; raise RuntimeError if it fails."""
        if getattr(self.c, function)(*arguments):
            raise RuntimeError(self.c.hs_last_error().decode())


class Grid:
    """A grid split over the ranks of a communicator of Fortran. Collective."""

    def __init__(self, library, comm, cells, periodic):
        self.library, self.handle = library, c_void_p()
        options = GridOptions()
        library.c.hs_grid_init_sized(byref(options), c_uint64(sizeof(options)))
        options.dims = len(cells)
        options.cells[: len(cells)] = cells
        options.periodic[: len(cells)] = [periodic] * len(cells)
        library.call("hs_grid_create_f", c_int(comm), byref(options), byref(self.handle))

    def owned(self):
        """Return the cells of this rank. Local."""
        box = Box()
        self.library.call("hs_grid_owned", self.handle, byref(box))
        return box

    def free(self):
        """Free the grid; exchanges on it stay valid. Local."""
        self.library.call("hs_grid_free", self.handle)


class Exchange:
    """An exchange of one array of doubles with a halo of one layer. Collective.

    slots: addresses of the first owned point, one for each buffer, which must stay valid as long as the exchange.
    strides: bytes between points in x, y, z.
    """

    def __init__(self, grid, slots, strides, name):
        self.library, self.handle = grid.library, c_void_p()
        self.first = (c_void_p * len(slots))(*slots)
        dims = len(strides)
        field = Field()
        self.library.c.hs_field_init_sized(byref(field), c_uint64(sizeof(field)))
        field.first, field.stride, field.name = self.first, Triple64(*strides), name
        field.low = field.high = Triple(*([1] * dims))
        options = ExchangeOptions()
        self.library.c.hs_exchange_init_sized(byref(options), c_uint64(sizeof(options)))
        options.slots = len(slots)
        self.library.call("hs_exchange_create", grid.handle, byref(field), 1, byref(options), byref(self.handle))

    def run(self, slot):
        """Fill the halo of one buffer. Collective."""
        self.library.call("hs_exchange_run", self.handle, slot)

    def free(self):
        """End the exchange. Collective; before the memory of its arrays is freed, and before MPI ends."""
        self.library.call("hs_exchange_free", self.handle)
