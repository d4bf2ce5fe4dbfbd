"""Exchanges inside programs that JAX compiles, with derivatives.

>>> from mpi4py import MPI
>>> import haloscope, haloscope.jax
>>> import jax, jax.numpy as jnp
>>> grid = haloscope.Grid(MPI.COMM_WORLD, (8, 8), periodic=True)
>>> u = jnp.zeros(grid.zeros().shape).at[grid.inner()].set(1.0)
>>> halo = haloscope.jax.Exchange(grid, u)
>>> float(jax.jit(halo)(u).min())
1.0
>>> halo.free()

A call is a pure function of JAX's arrays. It may be a part of `jit`, `grad`, `jvp`, `scan`, `cond`, `checkpoint`; the
derivative of an exchange is the exchange of the derivatives, and its transpose is `accumulate`.

All ranks make the same calls in the same order. For that, each call has an ordered effect: JAX runs the calls of a
process in the order in which its program makes them, in compiled programs too, and omits none. Without the effect, XLA
runs calls that do not depend on each other concurrently, in any order.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from haloscope import exchange
from haloscope.arguments import named, shown
from haloscope.errors import UnavailableError, UsageError
from haloscope.fields import Field, can_be_added, fields_of, name_of
from haloscope.grid import Grid, Halo, require_grid
from haloscope.lifetimes import Freeable
from haloscope.ranks import address, agree

try:
    import jax
    from jax._src.core import abstract_token
    from jax._src.effects import (  # the only way to register an effect
        control_flow_allowed_effects,
        custom_derivatives_allowed_effects,
        lowerable_effects,
        ordered_effects,
        remat_allowed_effects,
    )
    from jax.extend.core import Effect, Primitive
    from jax.ffi import build_ffi_lowering_function, pycapsule, register_ffi_target
    from jax.interpreters import ad, batching, mlir
except ImportError as missing:
    raise UnavailableError(
        f"JAX cannot be used ({missing}); install version 0.10 or newer with: pip install 'jax>=0.10'"
    ) from None


@dataclass(frozen=True)
class _Array:
    """An array of an exchange: its type, and the bytes before its first owned point."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    before: int
    is_cell: bool


@dataclass(frozen=True)
class _Opened:
    """An open exchange in compiled programs, which keep the number of its handle, not the object."""

    number: int
    arrays: tuple[_Array, ...]


class Exchange(Freeable):
    """A halo exchange of JAX's arrays, opened once and called in each step of a compiled program."""

    def __init__(
        self,
        grid: Grid,
        arrays: Any,
        halo: Halo = 1,
        *,
        strategy: str | None = None,
        corners: bool = True,
        room: Halo | None = None,
    ):
        """Open an exchange. Collective.

        grid: a Grid of order "C", as JAX's arrays are.
        arrays: for each array of the calls one of the same shape and type, in a list or a tuple; anything else is one
            array. Only shapes and types count, so it may be an array of JAX or NumPy or a jax.ShapeDtypeStruct. A Field
            describes one in more detail.
        halo, corners, room: as for haloscope.Exchange.
        strategy: as for haloscope.Exchange. Each call has arrays at other addresses, and strategies whose neighbours
            hold the addresses (one-sided ones, neighbor, partitioned) are opened again in each one.

        The exchange must stay open as long as programs call it. Raises UsageError on all ranks as haloscope.Exchange
        does. Cost: some small collective calls, and memory for one more set of the arrays.
        """
        require_grid(grid, "an exchange")
        self.grid = grid
        templates = agree(grid.comm, "an exchange", lambda: _templates(grid, arrays))
        self._exchange = exchange.Exchange(grid, templates, halo, strategy=strategy, corners=corners, room=room)
        described = self._exchange._described
        self._opened = _Opened(
            self._exchange._number(),
            tuple(
                _Array(one.name, one.arrays[0].shape, one.arrays[0].dtype, one.before, one.centring == "cell")
                for one in described
            ),
        )

    def __call__(self, *arrays: Any) -> Any:
        """Return the arrays with their halos filled: a tuple; of one array on a grid of one block a rank, the array.

        arrays: of the shapes and types of the opening, in its order. XLA copies arrays that the program uses later, and
            exchanges others in place.
        Raises UsageError for other shapes and types, and after free(); JAX raises jax.errors.JaxRuntimeError with the
        library's text, where the exchange fails. Cost: the messages of the exchange.
        """
        return self._bind(arrays, reverse=False)

    def accumulate(self, *arrays: Any) -> Any:
        """Return the arrays with halos added to the owned points and cleared: the transpose of a call.

        Raises as a call does, and for types that Exchange.accumulate() of haloscope refuses. The first one is
        collective and opens another link.
        """
        return self._bind(arrays, reverse=True)

    def report(self) -> str:
        """Return one line: the strategy, the messages of this rank, and the choice of `auto`."""
        jax.effects_barrier()
        return self._exchange.report()

    def free(self) -> None:
        """Wait for the calls that JAX has begun, then release the exchange. Collective."""
        jax.effects_barrier()
        self._exchange.free()

    def _bind(self, arrays: Sequence[Any], reverse: bool) -> Any:
        self._exchange._open()
        if reverse:
            self._exchange._require_addends(self._exchange._parts.whole)
        wanted = self._opened.arrays
        if len(arrays) != len(wanted):
            raise UsageError(f"a call got {len(arrays)} arrays for {len(wanted)} fields; pass one for each")
        values = [_value(array, one) for array, one in zip(arrays, wanted, strict=True)]
        found = _exchange_p.bind(*values, opened=self._opened, reverse=reverse)
        return found[0] if len(found) == 1 and not self._exchange.grid._several else tuple(found)


def _templates(grid: Grid, arrays: Any) -> list[Field]:
    """Return fields of NumPy arrays with the shapes and types of the arguments."""
    if grid.order != "C":
        raise UsageError("the grid has order F, and the last axis of JAX's arrays is contiguous; make it with order C")
    return [_template(field, name_of(field, number)) for number, field in enumerate(fields_of(arrays))]


def _template(field: Field, name: str) -> Field:
    one = field.arrays
    if not hasattr(one, "shape") or not hasattr(one, "dtype"):
        raise UsageError(
            f"{name} is {shown(one)}, which has no shape and type; pass one array, or a jax.ShapeDtypeStruct"
        )
    with named(name, one):
        array = np.zeros(one.shape, one.dtype)
    return replace(field, arrays=array)


def _value(array: Any, wanted: _Array) -> Any:
    """Return an argument as an array of JAX. Raises UsageError for another shape or type than the opening's."""
    with named(wanted.name, array):
        value = jax.numpy.asarray(array)
    if value.shape == wanted.shape and value.dtype == wanted.dtype:
        return value
    remedy = "open another exchange for it"
    if wanted.dtype.itemsize >= 8 and not jax.config.jax_enable_x64:
        remedy += ", or let JAX compute in double precision: jax.config.update('jax_enable_x64', True)"
    raise UsageError(
        f"{wanted.name} has shape {wanted.shape} and type {wanted.dtype} in the exchange, and a call passes shape "
        f"{value.shape} and type {value.dtype}; {remedy}"
    )


class _Order(Effect):
    """The effect of exchanges: all calls of a program have one order."""

    def __str__(self) -> str:
        return "haloscope"

    def __eq__(self, other: object) -> bool:
        return type(other) is _Order

    def __hash__(self) -> int:
        return hash(_Order)


_order = _Order()
for _allowed in (
    ordered_effects,
    lowerable_effects,
    control_flow_allowed_effects,
    custom_derivatives_allowed_effects,
    remat_allowed_effects,
):
    _allowed.add_type(_Order)

_exchange_p = Primitive("haloscope_exchange")
_exchange_p.multiple_results = True
_TARGETS = {False: "hs_exchange_xla", True: "hs_exchange_accumulate_xla"}  # by `reverse`


@_exchange_p.def_effectful_abstract_eval
def _same_types(*arrays: Any, opened: _Opened, reverse: bool) -> tuple:
    del opened, reverse
    return list(arrays), {_order}


@_exchange_p.def_impl
@functools.partial(jax.jit, static_argnames=("opened", "reverse"))
def _run(*arrays: Any, opened: _Opened, reverse: bool) -> Any:
    return _exchange_p.bind(*arrays, opened=opened, reverse=reverse)


def _is_differentiable(array: _Array) -> bool:
    return bool(jax.numpy.issubdtype(array.dtype, jax.numpy.inexact))


def _values(one: Any, array: _Array) -> Any:
    """Return a derivative as an array to exchange. Integers have none; the exchange gets zeros in their place."""
    if not _is_differentiable(array):
        return jax.numpy.zeros(array.shape, array.dtype)
    return ad.instantiate_zeros(one)


def _differentiate(primals: Sequence[Any], tangents: Sequence[Any], *, opened: _Opened, reverse: bool) -> tuple:
    """Exchange values and derivatives: an exchange is linear."""
    filled = _exchange_p.bind(*primals, opened=opened, reverse=reverse)
    if all(type(one) is ad.Zero for one in tangents):
        return filled, list(tangents)
    values = [_values(one, array) for one, array in zip(tangents, opened.arrays, strict=True)]
    found = _exchange_p.bind(*values, opened=opened, reverse=reverse)
    return filled, [
        new if _is_differentiable(array) else old
        for new, old, array in zip(found, tangents, opened.arrays, strict=True)
    ]


def _transpose(cotangents: Sequence[Any], *arrays: Any, opened: _Opened, reverse: bool) -> list:
    """Run the transpose. A field depends on no other one, so arguments that are constant do not matter."""
    for one in opened.arrays:
        _require_transpose(one)
    values = [_values(one, array) for one, array in zip(cotangents, opened.arrays, strict=True)]
    found = _exchange_p.bind(*values, opened=opened, reverse=not reverse)
    return [one if ad.is_undefined_primal(argument) else None for one, argument in zip(found, arrays, strict=True)]


def _require_transpose(array: _Array) -> None:
    if not can_be_added(array.dtype):
        raise UsageError(
            f"{array.name} has elements of type {array.dtype}, which cannot be added, as the derivative of an exchange "
            "requires: pass integers, or real or complex numbers of single or double precision, and others to another "
            "exchange"
        )
    if not array.is_cell:
        raise UsageError(
            f"{array.name} has points that several ranks hold, as nodes and faces between blocks are, and the "
            "derivative of an exchange by one of them is not defined; pass arrays of cells"
        )


def _refuse_batch(*_: Any, **__: Any) -> NoReturn:
    raise UsageError(
        "an exchange cannot be a part of vmap; pass the batch as axes after the axes of the grid, which are components "
        "of a point, or call it in jax.lax.map"
    )


def _refuse_platform(*_: Any, **__: Any) -> NoReturn:
    raise UnavailableError("exchanges in JAX run on the CPU; set JAX_PLATFORMS=cpu, or jit(..., backend='cpu')")


def _lower(context: Any, *arrays: Any, opened: _Opened, reverse: bool) -> list:
    """Return the results of a call of the library that takes and returns the token of the order."""
    token, types = context.tokens_in.get(_order), [abstract_token]
    with_token = context.replace(avals_in=types + list(context.avals_in), avals_out=types + list(context.avals_out))
    lower = build_ffi_lowering_function(
        _TARGETS[reverse],
        has_side_effect=True,
        operand_output_aliases={number: number for number in range(1, len(arrays) + 1)},
    )
    before = np.array([one.before for one in opened.arrays], np.int64)
    found: list
    token, *found = lower(with_token, token, *arrays, exchange=np.int64(opened.number), before=before).results
    context.set_tokens_out(context.tokens_in.update_tokens(mlir.TokenSet({_order: token})))
    return found


for _name in _TARGETS.values():
    register_ffi_target(_name, pycapsule(address(_name)), platform="cpu")
mlir.register_lowering(_exchange_p, _refuse_platform)
mlir.register_lowering(_exchange_p, _lower, platform="cpu")
ad.primitive_jvps[_exchange_p] = _differentiate
ad.primitive_transposes[_exchange_p] = _transpose
batching.primitive_batchers[_exchange_p] = _refuse_batch
