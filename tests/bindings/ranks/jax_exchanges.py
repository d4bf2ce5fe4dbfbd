"""Exchanges inside programs of JAX: the matrix of an exchange, its transpose, gradients through stencils, refusals.

Run by ranks: `mpiexec -n N python jax_exchanges.py [whole]`, whole: all cases, not a sample. All ranks draw the same
numbers.
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mpi4py import MPI

import haloscope
import haloscope.jax
from haloscope.errors import UnavailableError, UsageError

jax.config.update("jax_enable_x64", True)

COMM = MPI.COMM_WORLD
CASES = (  # cells, periodic axes, halo, room
    ((4 * COMM.size, 5), (True, True), 1, None),
    ((4 * COMM.size, 5), (False, False), 1, None),
    ((5, 4 * COMM.size), (False, True), 2, None),
    ((6, 3 * COMM.size), (True, False), [(1, 2), 0], 2),
    ((3, 4, 3 * COMM.size), (True, True, True), 1, None),
    ((3 * COMM.size, 3, 4), (False, True, False), 2, None),
)


# ---- the matrix of an exchange, without the library ----------------------------------------------------------------


class Storage:
    """The points of all arrays of all ranks in one line, and the exchange as a matrix on them."""

    def __init__(self, grid: haloscope.Grid, halo: Any, room: Any):
        dims = len(grid.cells)
        self.halo, self.room = sides(halo, dims), sides(halo if room is None else room, dims)
        self.shape = tuple(n + low + high for n, (low, high) in zip(grid.shape, self.room, strict=True))
        blocks = COMM.allgather(grid.owned)
        shapes = COMM.allgather(self.shape)
        starts = np.concatenate([[0], np.cumsum([np.prod(shape) for shape in shapes])])
        self.mine = slice(int(starts[COMM.rank]), int(starts[COMM.rank + 1]))
        self.matrix = np.eye(starts[-1])
        owners = {}
        for rank, (block, shape) in enumerate(zip(blocks, shapes, strict=True)):
            for cell in itertools.product(*(range(part.start, part.stop) for part in block)):
                local = [c - part.start + low for c, part, (low, _) in zip(cell, block, self.room, strict=True)]
                owners[cell] = starts[rank] + np.ravel_multi_index(local, shape)
        for rank, (block, shape) in enumerate(zip(blocks, shapes, strict=True)):
            for row, point in enumerate(np.ndindex(*shape)):
                owner = owners.get(self.source(grid, block, point))
                if owner is not None:
                    self.matrix[starts[rank] + row] = 0
                    self.matrix[starts[rank] + row, owner] = 1

    def source(self, grid: haloscope.Grid, block: tuple, point: tuple) -> tuple | None:
        """Return the cell that a point gets its value from; None where nothing fills it."""
        cell = []
        for axis, at in enumerate(point):
            low, high = self.halo[axis]
            place = at - self.room[axis][0]
            if not -low <= place < block[axis].stop - block[axis].start + high:
                return None
            here = block[axis].start + place
            cell.append(here % grid.cells[axis] if grid.periodic[axis] else here)
        return tuple(cell)

    def gathered(self, array: Any) -> np.ndarray:
        return np.concatenate(COMM.allgather(np.asarray(array).reshape(-1)))

    def own(self, line: np.ndarray) -> np.ndarray:
        return line[self.mine].reshape(self.shape)


def sides(halo: Any, dims: int) -> list[tuple[int, int]]:
    widths = [halo] * dims if isinstance(halo, int) else halo
    return [(side, side) if isinstance(side, int) else side for side in widths]


def whole_numbers(draw: np.random.Generator, shape: tuple, dtype: str = "f8") -> Any:
    """Return numbers whose sums are exact in single precision."""
    return jnp.asarray(draw.integers(-99, 100, shape).astype(dtype))


def same(one: Any, other: Any) -> bool:
    return np.array_equal(np.asarray(one), np.asarray(other))


def pulled(f: Callable, x: Any, y: Any) -> Any:
    return jax.vjp(f, x)[1](y)[0]


def check_matrix(cells: tuple, periodic: tuple, halo: Any, room: Any, dtype: str) -> None:
    """Compare an exchange, its derivative and its transpose with the matrix and its transpose."""
    grid = haloscope.Grid(COMM, cells, periodic=periodic)
    storage, draw = Storage(grid, halo, room), np.random.default_rng(COMM.rank)
    x, y = (whole_numbers(draw, storage.shape, dtype) for _ in range(2))
    kept = np.array(x)
    forward = storage.own(storage.matrix @ storage.gathered(x))
    backward = storage.own(storage.matrix.T @ storage.gathered(y))
    with haloscope.jax.Exchange(grid, x, halo, room=room) as exchange:
        pull = functools.partial(pulled, exchange)
        for run in (lambda f: f, jax.jit):
            assert same(run(exchange)(x), forward) and same(x, kept)
            assert same(run(exchange.accumulate)(y), backward)
            assert same(run(pull)(x, y), backward), (cells, periodic, halo, dtype)
            assert same(run(functools.partial(pulled, exchange.accumulate))(y, x), forward)
            value, slope = run(lambda x, y: jax.jvp(exchange, (x,), (y,)))(x, y)
            assert same(value, forward) and same(slope, storage.own(storage.matrix @ storage.gathered(y)))
        assert value.dtype == slope.dtype == np.dtype(dtype)
        left, right = (COMM.allreduce(float((a * b).sum())) for a, b in ((value, y), (x, pull(x, y))))
        assert left == right, "<E x, y> is not <x, E^T y>"


def check_each_row() -> None:
    """Compare the transpose with the matrix entry by entry."""
    grid = haloscope.Grid(COMM, (3 * COMM.size, 4), periodic=(True, False))
    storage = Storage(grid, 1, None)
    x = jnp.zeros(storage.shape)
    with haloscope.jax.Exchange(grid, x) as exchange:
        pull = jax.jit(functools.partial(pulled, exchange))
        for row, entries in enumerate(storage.matrix):
            unit = np.zeros(len(storage.matrix))
            unit[row] = 1
            assert same(pull(x, storage.own(unit)), storage.own(entries)), f"row {row}"


# ---- gradients through steps of a stencil ---------------------------------------------------------------------------


def step(exchange: Callable, u: Any) -> Any:
    """Return one step of a nonlinear stencil that reads all ghost layers of a halo of 1, corners too."""
    u = exchange(u)
    dims = u.ndim
    around = u
    for axis in range(dims):
        around = around + jnp.roll(around, 1, axis) + jnp.roll(around, -1, axis)
    inside = tuple(slice(1, -1) for _ in range(dims))
    return u.at[inside].set(jnp.sin((0.3 * u + 0.2 * around + 0.1 * u * u)[inside]))


def by_scan(exchange: Callable, u: Any) -> Any:
    return jax.lax.scan(lambda u, _: (step(exchange, u), None), u, None, length=3)[0]


def by_loop(exchange: Callable, u: Any) -> Any:
    for _ in range(3):
        u = step(exchange, u)
    return u


def by_checkpoints(exchange: Callable, u: Any) -> Any:
    return jax.lax.scan(lambda u, _: (jax.checkpoint(functools.partial(step, exchange))(u), None), u, None, length=3)[0]


def by_nested_functions(exchange: Callable, u: Any) -> Any:
    one = jax.jit(functools.partial(step, exchange))
    return jax.lax.cond(True, lambda u: one(one(u)), lambda u: u, one(u))


def loss_of(advance: Callable, exchange: Callable, inside: tuple, weight: Any) -> Callable:
    """Return this rank's share of the loss: the sum over ranks is differentiated."""
    return lambda u: (weight * advance(exchange, u)[inside] ** 2).sum()


def check_gradient(cells: tuple, periodic: tuple, first: Callable, *others: Callable) -> None:
    """Compare gradients of a loss of all ranks with finite differences, in points of all ranks.

    first, others: programs of the same steps. The others have the gradient of the first one.
    """
    grid = haloscope.Grid(COMM, cells, periodic=periodic)
    draw, inside = np.random.default_rng(COMM.rank), grid.inner()
    u = jnp.asarray(draw.random(grid.zeros().shape))
    weight = jnp.asarray(draw.random(grid.shape))
    with haloscope.jax.Exchange(grid, u) as exchange:
        loss = loss_of(first, exchange, inside, weight)
        gradient = jax.jit(jax.grad(loss))(u)
        for advance, run in itertools.product(others, (lambda f: f, jax.jit)):
            found = run(jax.grad(loss_of(advance, exchange, inside, weight)))(u)
            np.testing.assert_allclose(found, gradient, rtol=1e-12, atol=1e-13)
        everywhere = jax.jit(loss)
        common = np.random.default_rng(7)
        for rank, _ in itertools.product(range(COMM.size), range(4)):
            direction = np.zeros(u.shape)
            if rank == COMM.rank:
                direction[tuple(common.integers(0, n) for n in u.shape)] = 1
            else:
                common.integers(0, 2, u.ndim)
            check_slope(everywhere, u, gradient, direction)
        direction = draw.standard_normal(u.shape)
        check_slope(everywhere, u, gradient, direction)
        check_curvature(jax.jit(jax.grad(loss)), u, direction)
    with haloscope.jax.Exchange(grid, u.astype("f4")) as exchange:
        single = jax.jit(jax.grad(loss_of(by_scan, exchange, inside, weight.astype("f4"))))(u.astype("f4"))
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, gradient, rtol=2e-3, atol=1e-4)


def check_slope(loss: Callable, u: Any, gradient: Any, direction: np.ndarray) -> None:
    """Compare a directional derivative, of central differences, with the gradient."""
    size = 1e-5
    ahead, behind = (COMM.allreduce(float(loss(u + sign * size * direction))) for sign in (1, -1))
    slope = COMM.allreduce(float((gradient * direction).sum()))
    assert abs((ahead - behind) / (2 * size) - slope) < 1e-6 * max(1.0, abs(slope)), (ahead, behind, slope)


def check_curvature(gradient: Callable, u: Any, direction: np.ndarray) -> None:
    """Compare a derivative of the gradient, by exchanges of tangents, with central differences."""
    size = 1e-5
    found = jax.jit(lambda u, along: jax.jvp(gradient, (u,), (along,))[1])(u, direction)
    wanted = (gradient(u + size * direction) - gradient(u - size * direction)) / (2 * size)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-7)


# ---- order, memory, types -------------------------------------------------------------------------------------------


def busy(u: Any, rounds: int) -> Any:
    """Return the same whole numbers after some time."""
    return jnp.round(jax.lax.fori_loop(0, rounds, lambda _, u: jnp.arctan(jnp.tan(u / 200)) * 200, u))


def check_order() -> None:
    """Exchanges that do not depend on each other run in one order, though their arrays are ready in another one.

    Other orders would mix halos of the ranks, and concurrent calls are refused by the library.
    """
    grid = haloscope.Grid(COMM, (20 * COMM.size, 40), periodic=True)
    draw = np.random.default_rng(COMM.rank)
    arrays = [whole_numbers(draw, grid.zeros().shape) for _ in range(8)]
    rounds = [40 * (n if COMM.rank % 2 else 7 - n) for n in range(8)]
    with haloscope.jax.Exchange(grid, arrays[0]) as one, haloscope.jax.Exchange(grid, arrays[0]) as other:
        inner = jax.jit(lambda u: one(u + 1))

        def independent(arrays: list) -> list:
            late = [busy(u, times) for u, times in zip(arrays, rounds, strict=True)]
            found = [(one, other)[n % 2](u + 1) if n < 4 else inner(u) for n, u in enumerate(late)]
            return [*found, jax.lax.scan(lambda _, u: (0, one(u + 1)), 0, jnp.stack(arrays))[1]]

        def weighted(arrays: list) -> Any:
            late = [busy(u, times) for u, times in zip(weights, reversed(rounds), strict=True)]
            return sum((u * weight).sum() for u, weight in zip(map(inner, arrays), late, strict=True))

        weights = [whole_numbers(draw, grid.zeros().shape) for _ in range(8)]
        compiled, reverse = jax.jit(independent), jax.jit(jax.grad(weighted))
        wanted, back = [other(u + 1) for u in arrays], [other.accumulate(weight) for weight in weights]
        for _ in range(5):
            *found, stacked = compiled(arrays)
            assert all(map(same, found, wanted)) and all(map(same, stacked, wanted))
            assert all(map(same, reverse(arrays), back))
        several = [jax.jit(functools.partial(lambda exchange, u: exchange(u + 1), e)) for e in (one, other)]
        found = [several[n % 2](u) for n, u in enumerate(arrays)]  # not awaited in between
        assert all(map(same, found, wanted))


def check_memory() -> None:
    """An array that is donated is exchanged in place, and another one keeps its values."""
    grid = haloscope.Grid(COMM, (6 * COMM.size, 40), periodic=True)
    u = jnp.ones(grid.zeros().shape)
    with haloscope.jax.Exchange(grid, u) as exchange:
        address = u.unsafe_buffer_pointer()
        v = jax.jit(exchange)(u)
        assert v.unsafe_buffer_pointer() != address
        w = jax.jit(exchange, donate_argnums=0)(u)
        assert w.unsafe_buffer_pointer() == address and u.is_deleted()


def check_types() -> None:
    """Arrays of several types are exchanged together; integers have no derivative."""
    grid = haloscope.Grid(COMM, (4 * COMM.size, 6), periodic=True)
    draw = np.random.default_rng(COMM.rank)
    shape = grid.zeros().shape
    u, z, k = whole_numbers(draw, shape), whole_numbers(draw, shape, "c16"), whole_numbers(draw, (*shape, 3), "i4")
    half = whole_numbers(draw, shape, "f2")
    arrays = [u, z, k, half]
    plain = [np.array(one) for one in arrays]
    with haloscope.Exchange(grid, plain) as halo:
        halo()
    kinds = [jax.ShapeDtypeStruct(one.shape, one.dtype) for one in arrays]
    with haloscope.jax.Exchange(grid, kinds) as exchange:
        assert all(map(same, jax.jit(exchange)(*arrays), plain))
        pushed = jax.jvp(lambda u: exchange(u, z, k, half)[0], (u,), (2 * u,))[1]
        assert same(pushed, 2 * plain[0])
        refused("array 3 has elements of type float16", jax.grad(lambda u: exchange(u, z, k, half)[0].sum()), u)
        refused("array 3 has elements of type float16", exchange.accumulate, *arrays)
    with haloscope.jax.Exchange(grid, kinds[:3]) as exchange:
        found = jax.jit(jax.grad(lambda u, k: (k[..., 0] * exchange(u, z, k)[0]).sum()))(u, k)
        weight = np.array(k[..., 0], "f8")
        with haloscope.Exchange(grid, weight) as halo:
            halo.accumulate()
        assert same(found, weight)
        assert same(jax.linear_transpose(lambda z: exchange(u, z, k)[1], z)(z)[0], exchange.accumulate(u, z, k)[1])


def check_single_precision() -> None:
    """Programs of JAX without double precision, as JAX has them by default."""
    grid = haloscope.Grid(COMM, (4 * COMM.size, 6), periodic=True)
    with jax.enable_x64(False):
        u = jnp.ones(grid.zeros().shape)
        with haloscope.jax.Exchange(grid, u) as exchange:
            found = jax.jit(jax.grad(lambda u: (u * exchange(2 * u)).sum()))(u)
            assert found.dtype == np.float32 and found.sum() == 4 * u.size
            assert same(jax.jit(exchange)(u), u)


# ---- refusals -------------------------------------------------------------------------------------------------------


def refused(part: str, call: Callable, *arguments: Any, kind: type = UsageError, **options: Any) -> None:
    with pytest.raises(kind) as caught:
        jax.block_until_ready(call(*arguments, **options))
    assert part in str(caught.value), str(caught.value)


def check_refusals() -> None:
    grid = haloscope.Grid(COMM, (4 * COMM.size, 6), periodic=True)
    u = jnp.zeros(grid.zeros().shape)
    make = haloscope.jax.Exchange
    refused("pass a haloscope.Grid", make, COMM, u)
    refused("order C", make, haloscope.Grid(COMM, (4 * COMM.size, 6), order="F"), u)
    refused("no arrays", make, grid, [])
    refused("has no shape and type", make, grid, 3.0)
    refused("array 0", make, grid, u if COMM.rank else "wrong on rank 0")
    refused("has shape", make, grid, jnp.zeros((3, 3)))
    exchange = make(grid, u)
    compiled = jax.jit(exchange)
    compiled(u)
    refused("type float32; open another", compiled, u.astype("f4"))
    refused("passes shape (2,)", exchange, jnp.zeros(2))
    refused("array 0", exchange, None)
    refused("got 2 arrays for 1 fields", exchange, u, u)
    with pytest.raises(UnavailableError, match="run on the CPU"):
        compiled.trace(u).lower(lowering_platforms=("cuda",))
    refused("vmap", jax.vmap(exchange), jnp.stack([u, u]))
    with jax.enable_x64(False):
        refused("'jax_enable_x64', True", exchange, np.zeros(u.shape))
    with make(grid, haloscope.Field(jnp.zeros(grid.points("node")), halo=0, centring="node")) as nodes:
        at = jnp.zeros(grid.points("node"))
        nodes(at), nodes.accumulate(at)
        refused("several ranks hold", jax.grad(lambda at: nodes(at).sum()), at)
    assert same(compiled(u), u)
    assert exchange.report()
    exchange.free()
    refused("was freed; open another", exchange, u)
    refused("was freed before", compiled, u, kind=jax.errors.JaxRuntimeError)


def check_handler() -> None:
    """Calls of the library by programs of XLA that the package has not made."""
    grid = haloscope.Grid(COMM, (4 * COMM.size, 6), periodic=True)
    u = jnp.zeros(grid.zeros().shape)
    with haloscope.jax.Exchange(grid, u) as exchange:
        number, before = np.int64(exchange._opened.number), np.array([88], np.int64)

        def call(*arrays: Any, **attributes: Any) -> Any:
            return jax.ffi.ffi_call("hs_exchange_xla", arrays)(*arrays, **attributes)

        refuse = functools.partial(refused, kind=jax.errors.JaxRuntimeError)
        refuse("other attributes", call, u, exchange=number)
        refuse("other attributes", call, u, u, exchange=np.int32(1), before=before)
        refuse("other attributes", call, u, u, exchange=number, before=before.astype("i4"))
        refuse("1 arguments", call, u, exchange=number, before=before)
        refuse("alias the two", call, u, u, exchange=number, before=before)
        exchange(u)


if __name__ == "__main__":
    whole = "whole" in sys.argv[1:]
    for number, (case, dtype) in enumerate(itertools.product(CASES, ("f4", "f8"))):
        if whole or number % 5 == 0:
            check_matrix(*case, dtype)
    check_each_row()
    programs = (by_scan, by_loop, by_checkpoints, by_nested_functions)
    check_gradient((4 * COMM.size, 5), (True, True), *(programs if whole else programs[::2]))
    if whole:
        check_gradient((3, 3 * COMM.size, 4), (False, True, False), by_scan)
    check_order()
    check_memory()
    check_types()
    check_single_precision()
    check_refusals()
    check_handler()
    if COMM.rank == 0:
        print("right")
