"""Heat backwards in time, by gradients in JAX: `mpiexec -n 2 python heat_jax.py`.

Heat spreads for 20 steps. Gradient descent finds initial heat that spreads to the same cells.
"""

import jax
import jax.numpy as jnp
import numpy as np
from mpi4py import MPI

import haloscope
import haloscope.jax

jax.config.update("jax_enable_x64", True)
comm = MPI.COMM_WORLD
grid = haloscope.Grid(comm, (48, 32), periodic=True)
halo = haloscope.jax.Exchange(grid, grid.zeros())
inside = grid.inner()


def step(u, _):
    """Return the heat after a step."""
    u = halo(u)
    around = (u[:-2, 1:-1] + u[2:, 1:-1]) + (u[1:-1, :-2] + u[1:-1, 2:])
    return u.at[inside].add(0.2 * (around - 4.0 * u[inside])), None


def spread(u):
    """Return this rank's heat after 20 steps."""
    return jax.lax.scan(step, jnp.pad(u, 1), None, length=20)[0][inside]


y, x = np.meshgrid(*(np.arange(part.start, part.stop) for part in grid.owned), indexing="ij")
measured = jax.jit(spread)(jnp.asarray((abs(y - 24) < 8) & (abs(x - 16) < 8), float))


@jax.jit
@jax.value_and_grad
def share_of_loss(u):
    """Return this rank's share of the loss. Gradients are of the sum over all ranks."""
    return 0.5 * jnp.sum((spread(u) - measured) ** 2)


guess = jnp.zeros(grid.shape)
for _ in range(60):
    share, slope = share_of_loss(guess)
    guess = guess - slope

loss = comm.allreduce(float(share))
halo.free()
if comm.rank == 0:
    print(f"after 60 steps of descent the loss is {loss:.9e}")
