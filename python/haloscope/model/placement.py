"""Placements of ranks: node and socket of each rank, ranks per socket, and neighbour pairs that cross nodes.

The functions work on arrays over all ranks, so a hundred thousand ranks take milliseconds. Source: Davis 2017,
eq. 5.17 and 5.22 to 5.30, tables 4.5 and 5.8.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from haloscope.bridge import capi
from haloscope.bridge.json_values import encoded
from haloscope.errors import UsageError


@dataclass(frozen=True)
class Placement:
    """Node and socket (numbered over all nodes) of each rank, as arrays in rank order."""

    node: np.ndarray
    socket: np.ndarray

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return len(self.node)

    @property
    def nodes(self) -> int:
        """Number of nodes that hold a rank."""
        return len(np.unique(self.node))

    def active(self) -> np.ndarray:
        """Return, per rank, the number of ranks on its socket (itself included). Source: eq. "5.23" (pcs)."""
        _, place, counts = np.unique(self.socket, return_inverse=True, return_counts=True)
        return counts[place]

    def sockets(self) -> list[int]:
        """Return the number of ranks of each socket in use, largest first."""
        return sorted(np.unique(self.socket, return_counts=True)[1].tolist(), reverse=True)


def place(
    rule: str,
    ranks: int,
    sockets_per_node: int,
    cores_per_socket: int,
    active: int | None = None,
    custom: Sequence[tuple[int, int]] = (),
) -> Placement:
    """Return the placement of the ranks.

    rule: `fill` (a node is filled before the next, its sockets sequentially), `balanced` (as few nodes as `fill`,
    equally many ranks on each, sockets filled sequentially), `by-socket` (the same nodes, ranks dealt to their sockets
    in turn), `round-robin` (ranks dealt to these nodes in turn, each node's sockets in turn), `custom` (a node and a
    socket of that node for each rank, in `custom`). ranks >= 1; sockets_per_node, cores_per_socket >= 1; active: most
    ranks on a socket, 1..cores_per_socket (default: all cores).
    Raises UsageError for an unknown rule, numbers out of range, and a custom list that does not fit.
    """
    machine = {"ranks": ranks, "sockets_per_node": sockets_per_node, "cores_per_socket": cores_per_socket}
    found = mapped(ranks, machine | {"setting": setting_of(rule, active, custom)})
    return Placement(found.node.astype(int), found.socket.astype(int))


def setting_of(rule: str, active: int | None, custom: Sequence[tuple[int, int]]) -> dict[str, object]:
    """Return a placement in the form of library requests."""
    setting: dict[str, object] = {"placement": rule, "custom": [[int(n) for n in place] for place in custom]}
    return setting | ({} if active is None else {"active": max(active, 0)})  # 0 is refused


def mapped(ranks: int, request: Mapping[str, object], profile: capi.CData = None) -> Placement:
    """Return the placement by the library. request: of hs_map_ranks."""
    (node, nodes), (socket, sockets) = (capi.numbers(max(ranks, 0)) for _ in range(2))
    capi.call("hs_map_ranks", encoded(request), profile or capi.load()[0].NULL, nodes, sockets)
    return Placement(node, socket)


def rules() -> tuple[str, ...]:
    """Return the rules that place ranks."""
    return capi.names("placements")


def coordinates(process_grid: Sequence[int]) -> np.ndarray:
    """Return the place of each rank in the process grid, shape (ranks, dimensions); ranks run x fastest. Eq. 5.17."""
    return np.stack(np.unravel_index(np.arange(math.prod(process_grid)), tuple(process_grid), order="F"), axis=1)


def neighbours(process_grid: Sequence[int], offset: Sequence[int], periodic: Sequence[bool] = ()) -> np.ndarray:
    """Return the rank at `offset` from each rank, -1 beyond an edge that does not wrap. Eq. 5.23 to 5.25.

    process_grid, offset, periodic: one entry per dimension; by default no dimension is periodic.
    """
    shape = np.array(process_grid)
    at = coordinates(process_grid) + np.array(offset)
    wraps = np.array(periodic or [False] * len(shape), bool)
    inside = (((at >= 0) & (at < shape)) | wraps).all(axis=1)
    found = np.ravel_multi_index(tuple((at % shape).T), tuple(process_grid), order="F")
    return np.where(inside, found, -1)


@dataclass(frozen=True)
class PairCounts:
    """Neighbour pairs per node (rows) and dimension (columns): intra: both ranks on the node; inter: one elsewhere."""

    intra: np.ndarray
    inter: np.ndarray

    def worst_node(self) -> int:
        """Return the node with the most pairs across its border; of several the node with the most pairs inside it."""
        return max(range(len(self.intra)), key=lambda n: (self.inter[n].sum(), self.intra[n].sum()))

    @property
    def worst(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Pairs inside and across the border of the worst node, per dimension."""
        node = self.worst_node()
        return tuple(self.intra[node].tolist()), tuple(self.inter[node].tolist())


def pair_counts(process_grid: Sequence[int], placement: Placement, periodic: Sequence[bool] = ()) -> PairCounts:
    """Count face-neighbour pairs per node and dimension for any placement.

    A pair is one link between two ranks, used in both directions; a rank that is its own neighbour has none. With a
    periodic dimension of extent 2 the same two ranks form two pairs. Cost O(ranks).
    Raises UsageError when the placement has another number of ranks. Source: Davis 2017, section 5.3.3, table 5.8.
    """
    ranks = math.prod(process_grid)
    if placement.ranks != ranks:
        raise UsageError(
            f"process grid {'x'.join(map(str, process_grid))} has {ranks} ranks, the placement {placement.ranks}"
        )
    _, node = np.unique(placement.node, return_inverse=True)
    nodes = int(node.max()) + 1
    intra, inter = (np.zeros((nodes, len(process_grid)), int) for _ in range(2))
    for d in range(len(process_grid)):
        other = neighbours(process_grid, [int(d == e) for e in range(len(process_grid))], periodic)
        rank = np.flatnonzero((other >= 0) & (other != np.arange(ranks)))
        here, there = node[rank], node[other[rank]]
        same = here == there
        intra[:, d] = np.bincount(here[same], minlength=nodes)
        inter[:, d] = np.bincount(here[~same], minlength=nodes) + np.bincount(there[~same], minlength=nodes)
    return PairCounts(intra, inter)
