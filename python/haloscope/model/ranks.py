"""Ranks in classes: equal plans, equal nearness of all peers, equal load of what they share. One of each class is priced.

Arrays over all ranks, so that a hundred thousand of them take a second; one plan per class of equal plans, from the core.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from haloscope import core
from haloscope.model import network
from haloscope.model.placement import Placement
from haloscope.model.profile import CLASSES, Profile

SELF, SOCKET, NODE, NETWORK = range(len(CLASSES))
MOST_APART = 32  # classes that are told apart by their peers' classes alone


@dataclass(frozen=True)
class Kind:
    """Ranks with equal plans: those of the first rank by stage, all their messages as of one `plan` with their traffic, the
    ranks, and their peers (ranks x messages). Rounds of a later stage come after those of the ones before."""

    plans: tuple[core.Plan, ...]
    plan: core.Plan
    traffic: tuple[core.Traffic, ...]
    members: np.ndarray
    peers: np.ndarray

    def messages_of(self, stage: int) -> slice:
        """Return which messages belong to a stage."""
        first = sum(len(plan.messages) for plan in self.plans[:stage])
        return slice(first, first + len(self.plans[stage].messages))


@dataclass(frozen=True)
class RankClass:
    """Ranks that one track represents.

    kind: number of their plan's kind. rank: the first of them. near: locality class of each message's peer. far: whether the
    peer is on another node. flights: seconds that each message travels. sources: per incoming message, the (class number,
    outgoing message) that it comes from, for every class that has such a peer.
    """

    kind: int
    rank: int
    count: int
    ranks_on_socket: int
    near: tuple[str, ...]
    far: tuple[bool, ...]
    flights: tuple[float, ...]
    sources: Mapping[int, tuple[tuple[int, int], ...]]


def kinds_of(choice: core.Choice, layout: core.Layout) -> tuple[Kind, ...]:
    """Return the kinds of ranks of a choice on its layout. Raises UsageProblem when it is not legal. Cost O(ranks x messages).

    Choices that move the same data between the same ranks, such as those of several transports, share the answer.
    """
    stages = range(len(core.step_of(choice).stages))
    return _kinds(layout, tuple(core.exchange_spec(choice, s) for s in stages))


@functools.lru_cache(maxsize=4)
def _kinds(layout: core.Layout, specs: tuple[core.ExchangeSpec, ...]) -> tuple[Kind, ...]:
    classes = core.plan_classes(layout)
    order = np.argsort(classes, kind="stable")
    found = []
    for members in np.split(order, np.flatnonzero(np.diff(classes[order])) + 1):
        plans = tuple(core.make_plan(layout, int(members[0]), spec) for spec in specs)
        traffic = tuple(core.message_traffic(plan, m) for plan in plans for m in range(len(plan.messages)))
        peers = np.concatenate([core.peers(layout, plan, members) for plan in plans], axis=1)
        found.append(Kind(plans, _joined(plans), traffic, members, peers))
    return tuple(found)


def _joined(plans: Sequence[core.Plan]) -> core.Plan:
    """Return one plan with the messages of all stages, their rounds one after another."""
    if len(plans) == 1:
        return plans[0]
    messages, rounds = [], 0
    for stage, plan in enumerate(plans):
        tags = stage << 20  # messages between two ranks have tags of their own
        messages += [dataclasses.replace(m, round=m.round + rounds, tag=m.tag + tags) for m in plan.messages]
        rounds += plan.rounds
    return dataclasses.replace(plans[0], messages=tuple(messages), rounds=rounds)


def classes_of(
    kinds: Sequence[Kind],
    placement: Placement,
    profile: Profile,
    at_once: float = 1.0,
    node: np.ndarray | None = None,
    singly: bool = False,
) -> list[RankClass]:
    """Return the classes of all ranks, in the order of their first ranks within each kind.

    at_once: part of a round's messages that are under way together. node: the node of each rank as transports see it
    (default: the placement's), which decides what is `far`. singly: every rank is a separate class.
    """
    node = placement.node if node is None else node
    near = [nearness(kind, placement) for kind in kinds]
    flights = _flights(kinds, near, placement, profile, at_once)
    socket_ranks = placement.active()
    far = [node[kind.members][:, None] != node[kind.peers] for kind in kinds]
    rows = [
        np.concatenate(
            [near[k].astype(np.uint64), far[k].astype(np.uint64), flights[k].view(np.uint64),
             socket_ranks[kind.members][:, None].astype(np.uint64)], axis=1,
        )
        for k, kind in enumerate(kinds)
    ]  # fmt: skip
    number, firsts, counts = _numbered(kinds, [np.arange(len(r)) if singly else hashed(r) for r in rows])
    # Ranks of a class should have peers of the same classes: their representative waits for what any of them waits for.
    while len(firsts) < MOST_APART and not singly:
        finer = _numbered(kinds, [hashed(number[np.c_[kind.members, kind.peers]].astype(np.uint64)) for kind in kinds])
        if not len(firsts) < len(finer[1]) <= MOST_APART:
            break
        number, firsts, counts = finer
    sources = _sources(kinds, number, len(firsts))
    return [
        RankClass(
            kind=k,
            rank=int(kinds[k].members[i]),
            count=count,
            ranks_on_socket=int(socket_ranks[kinds[k].members[i]]),
            near=tuple(CLASSES[c] for c in near[k][i]),
            far=tuple(far[k][i].tolist()),
            flights=tuple(flights[k][i].tolist()),
            sources=sources[c],
        )
        for c, ((k, i), count) in enumerate(zip(firsts, counts, strict=True))
    ]


def _numbered(kinds: Sequence[Kind], keys: Sequence[np.ndarray]) -> tuple[np.ndarray, list[tuple[int, int]], list[int]]:
    """Return classes of ranks of one kind with equal keys, by number: the class of each rank, and of each class its kind and
    first member, and how many it has."""
    number = np.empty(sum(len(kind.members) for kind in kinds), int)
    firsts: list[tuple[int, int]] = []
    counts: list[int] = []
    for k, kind in enumerate(kinds):
        _, first, inverse, count = np.unique(keys[k], return_index=True, return_inverse=True, return_counts=True)
        place = np.argsort(np.argsort(first))  # in the order of first ranks
        number[kind.members] = len(firsts) + place[inverse]
        firsts += [(k, int(i)) for i in np.sort(first)]
        counts += count[np.argsort(first)].tolist()
    return number, firsts, counts


def hashed(rows: np.ndarray) -> np.ndarray:
    """Return a 64-bit number per row, different for different rows (but for one case in 10^19)."""
    odd = np.random.default_rng(0).integers(0, 2**63, rows.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    mixed = rows * odd
    mixed ^= mixed >> np.uint64(29)
    found: np.ndarray = (mixed * np.uint64(0x9E3779B97F4A7C15)).sum(axis=1, dtype=np.uint64)
    return found


def nearness(kind: Kind, placement: Placement) -> np.ndarray:
    """Return the number of the locality class of each member's messages."""
    me, peers = kind.members[:, None], kind.peers
    same_node = placement.node[me] == placement.node[peers]
    same_socket = placement.socket[me] == placement.socket[peers]
    return np.where(same_socket, SOCKET, np.where(same_node, NODE, NETWORK))


def _flights(
    kinds: Sequence[Kind], near: Sequence[np.ndarray], placement: Placement, profile: Profile, at_once: float
) -> list[np.ndarray]:
    """Return the seconds that each message travels, given the other messages of the round on the same resource.

    Ranks of a socket share its memory, those of a node the way between its sockets and the one to other nodes. All messages
    of a batch take as long as the batch. Sources: contention as the module `network` says; max-rate: Gropp et al. 2016.
    """
    rounds = max((kind.plan.rounds for kind in kinds), default=1)
    resources = int(max(placement.socket.max(), placement.node.max())) + 1
    shape = (2, len(CLASSES), rounds, resources)  # in, out
    total, longest, count, volume = (np.zeros(shape) for _ in range(4))
    index = []  # per kind: place of each message in these arrays
    for kind, classes in zip(kinds, near, strict=True):
        of_places, of_times = [], []  # by message
        for m, message in enumerate(kind.plan.messages):
            c = classes[:, m]
            where = np.where(c == SOCKET, placement.socket[kind.members], placement.node[kind.members])
            of_places.append(
                np.ravel_multi_index(
                    (np.full(len(c), int(message.out)), c, np.full(len(c), message.round), where), shape
                )
            )
            of_times.append(np.array([network.message_time(profile, name, message.bytes) for name in CLASSES])[c])
        places = np.array(of_places, int).reshape(-1, len(kind.members)).T
        times = np.array(of_times).reshape(-1, len(kind.members)).T
        sizes = np.broadcast_to([float(m.bytes) for m in kind.plan.messages], places.shape)
        np.maximum.at(longest.reshape(-1), places, times)
        for array, weights in ((total, times), (count, np.ones_like(times)), (volume, sizes)):
            np.add(array, np.bincount(places.ravel(), weights.ravel(), array.size).reshape(shape), out=array)
        index.append(places)
    batch = _batches(profile, total, longest, count, volume, at_once).reshape(-1)
    both = np.stack([batch, batch]).reshape(-1)  # a message travels as long whichever end is asked
    return [both[places] for places in index]


def _batches(
    profile: Profile,
    total: np.ndarray,
    longest: np.ndarray,
    count: np.ndarray,
    volume: np.ndarray,
    at_once: float,
) -> np.ndarray:
    """Seconds of the messages of each class, round and resource when they travel together."""
    result = np.zeros(total.shape[1:])
    for c, name in enumerate(CLASSES):
        if not count[:, c].any():
            continue
        shared, duplex = network.contention(profile, name)
        together = np.maximum(0.0, total[:, c] * at_once - longest[:, c])
        if name == "network":  # what goes out and what comes in are its two directions
            ways = longest[:, c] + shared * together
            long, short = ways.max(axis=0), ways.min(axis=0)
        else:  # each message is counted at both ends; half of them go either way
            together = np.maximum(0.0, total[1, c] * at_once / 2 - longest[1, c])
            long = longest[1, c] + shared * together
            short = np.where(count[1, c] * at_once > 1, long, 0.0)
        result[c] = long + (duplex - 1) * short
    rate = profile.data.get("network", {}).get("injection_bytes_per_s")
    if rate:
        bound = network.message_time(profile, "network", 0) + volume[1, NETWORK] * at_once / rate
        result[NETWORK] = np.where(count[1, NETWORK] > 0, np.maximum(result[NETWORK], bound), 0.0)
    return result


def _sources(kinds: Sequence[Kind], number: np.ndarray, classes: int) -> list[dict[int, tuple[tuple[int, int], ...]]]:
    """Return for every class the sources of each of its incoming messages."""
    kind_of, place_of = np.empty(len(number), int), np.empty(len(number), int)
    for k, kind in enumerate(kinds):
        kind_of[kind.members], place_of[kind.members] = k, np.arange(len(kind.members))
    sources: list[dict] = [{} for _ in range(classes)]
    for kind in kinds:
        for m, message in enumerate(kind.plan.messages):
            if message.out:
                continue
            pairs = number[kind.members] * classes + number[kind.peers[:, m]]
            _, first = np.unique(pairs, return_index=True)
            for i in first.tolist():
                rank, peer = int(kind.members[i]), int(kind.peers[i, m])
                theirs = kinds[kind_of[peer]]
                out = _counterpart(theirs, int(place_of[peer]), rank, message)
                known = sources[number[rank]].setdefault(m, ())
                sources[number[rank]][m] = (*known, (int(number[peer]), out))
    return sources


def _counterpart(kind: Kind, place: int, receiver: int, message: core.Message) -> int:
    """Return the number of the outgoing message that arrives as `message` at `receiver`."""
    return next(
        m
        for m, sent in enumerate(kind.plan.messages)
        if sent.out and sent.tag == message.tag and sent.round == message.round and kind.peers[place, m] == receiver
    )
