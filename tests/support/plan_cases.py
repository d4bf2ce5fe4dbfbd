"""Random layouts and exchanges, and a world of global identities in which plans run by hand."""

from __future__ import annotations

import dataclasses
import itertools
import math
from dataclasses import dataclass

from hypothesis import strategies as st

from haloscope import bridge

CENTRINGS = ("cell", "node", "face_x", "face_y", "face_z")


@dataclass(frozen=True)
class Case:
    """A layout and an exchange on it."""

    cells: tuple[int, ...]
    ranks: tuple[int, ...]
    periodic: tuple[bool, ...]
    spec: bridge.ExchangeSpec

    @property
    def layout(self) -> bridge.Layout:
        """The layout, made anew."""
        return bridge.Layout(self.cells, self.ranks, self.periodic)

    def plans(self) -> list[bridge.Plan]:
        """The plans of all ranks."""
        layout = self.layout
        return [bridge.make_plan(layout, rank, self.spec) for rank in range(layout.size)]


quantities = st.builds(
    bridge.Quantity,
    name=st.sampled_from("abc"),
    element_bytes=st.sampled_from((1, 4, 8, 24)),
    type=st.sampled_from(("real", "integer")),
    centring=st.sampled_from(CENTRINGS),
    edges=st.tuples(*[st.tuples(*[st.sampled_from(("fixed", "fixed", "even", "odd", "nearest"))] * 2)] * 3),
).filter(lambda q: "odd" not in itertools.chain(*q.edges) or (q.type == "real" and q.element_bytes in (4, 8)))


any_dims = st.integers(1, 3)


@st.composite
def cases(draw, dims=any_dims, most_ranks=12, **fixed):
    """Draw a case of at most `most_ranks` ranks on a grid of few cells; `fixed` sets fields of the exchange.

    own_widths: whether quantities have widths of their own.
    """
    d = draw(dims)
    ranks = draw(
        st.lists(st.sampled_from((1, 2, 1, 3, 2, 4)), min_size=d, max_size=d).filter(
            lambda p: math.prod(p) <= most_ranks
        )
    )
    low, high = (draw(st.lists(st.integers(0, 3), min_size=d, max_size=d)) for _ in range(2))
    smallest = [max(1, a, b) for a, b in zip(low, high, strict=True)]
    cells = [
        p * draw(st.integers(s, s + 2)) + draw(st.integers(0, p - 1)) for p, s in zip(ranks, smallest, strict=True)
    ]
    fields = {
        "quantities": st.lists(quantities, min_size=1, max_size=3).map(tuple),
        "pattern": st.sampled_from(("ordered", "direct")),
        "corners": st.booleans(),
        "merge_peers": st.booleans(),
        "merge": st.sampled_from(("all", "type", "none")),
        "order": st.permutations((0, 1, 2)).map(tuple),
    }
    chosen = {name: fixed.get(name, draw(strategy)) for name, strategy in fields.items()}
    pad = (0,) * (3 - d)
    widths = ()
    if fixed.get("own_widths", draw(st.booleans())):  # each quantity has its own, at most low and high

        def at_most(layers):
            return st.tuples(*(st.integers(0, most) for most in (*layers, *pad)))

        widths = tuple(draw(st.tuples(at_most(low), at_most(high))) for _ in chosen["quantities"])
    spec = bridge.ExchangeSpec(low=(*low, *pad), high=(*high, *pad), widths=widths, **chosen)
    periodic = draw(st.lists(st.sampled_from((True, False, True)), min_size=d, max_size=d))
    return Case(tuple(cells), tuple(ranks), tuple(periodic), spec)


def staggered(centring: str, d: int) -> int:
    """Return 1 where a quantity of this centring has one point more than cells in dimension d."""
    return int(centring == "node" or centring == "face_" + "xyz"[d])


def identity(layout: bridge.Layout, rank: int, point, quantity: bridge.Quantity) -> tuple:
    """Return the global point at a rank-local one, and whether it is negated.

    Periodic images are the same point, and so are mirror images at edges.
    """
    places, negated = [], False
    for d in range(3):
        at = layout.owned(rank).lo[d] + point[d]
        if d < layout.dims and layout.periodic[d]:
            at %= layout.cells[d]
        elif d < layout.dims:
            on_edge = staggered(quantity.centring, d)
            last = layout.cells[d] - 1 + on_edge
            edge = quantity.edges[d][at > last]
            if not 0 <= at <= last and edge == "nearest":
                at = min(max(at, 0), last)
            elif not 0 <= at <= last and edge != "fixed":
                negated ^= edge == "odd"
                at = on_edge - 1 - at if at < 0 else 2 * last + 1 - on_edge - at
        places.append(at)
    return (*places, negated)


def halo(plan: bridge.Plan, q: int) -> set:
    """Return the local points that an exchange must fill: ghost points, in one dimension or several, whose every ghost
    direction has a neighbour or an edge that is filled."""
    owned, allocated = plan.owned[q], plan.allocated[q]
    filled = [[edge != "fixed" for edge in pair] for pair in plan.spec.quantities[q].edges]

    def wanted(point) -> bool:
        low = [p < lo for p, lo in zip(point, owned.lo, strict=True)]
        high = [p >= hi for p, hi in zip(point, owned.hi, strict=True)]
        ghosts = sum(low) + sum(high)
        there = all(
            (not low[d] or filled[d][0] or plan.has_neighbour[d][0])
            and (not high[d] or filled[d][1] or plan.has_neighbour[d][1])
            for d in range(3)
        )
        return there and (ghosts >= 1 if plan.spec.corners else ghosts == 1)

    return {point for point in allocated.cells() if wanted(point)}


def exchange(layout: bridge.Layout, plans: list[bridge.Plan]) -> list[dict]:
    """Run one exchange, round by round; return per rank a map (quantity, local point) -> global identity."""
    fields = [
        {
            (q, point): identity(layout, plan.rank, point, plan.spec.quantities[q])
            for q in range(len(plan.spec.quantities))
            for point in plan.owned[q].cells()
        }
        for plan in plans
    ]
    for number in range(max(plan.rounds for plan in plans)):
        mail = {}
        filled = []
        for plan in plans:
            field = fields[plan.rank]
            for m in plan.messages:
                if m.out and m.round == number:
                    parcel = [field[r.quantity, p] for r in m.regions for p in r.box.cells()]
                    assert mail.setdefault((plan.rank, m.peer, m.tag), parcel) is parcel, "two messages share a tag"
            for c in plan.copies:
                if c.round == number:
                    source = c.to.shifted(c.shift)
                    pairs = zip(c.to.cells(), source.cells(), strict=True)
                    filled.append((field, {(c.quantity, to): field[c.quantity, at] for to, at in pairs}))
        for plan in plans:
            for m in plan.messages:
                if not m.out and m.round == number:
                    places = [(r.quantity, p) for r in m.regions for p in r.box.cells()]
                    filled.append(
                        (fields[plan.rank], dict(zip(places, mail.pop((m.peer, plan.rank, m.tag)), strict=True)))
                    )
        assert not mail, "sent, but received by nobody"
        for field, values in filled:
            field.update(values)
    for plan in plans:
        mirror_edges(plan, fields[plan.rank])
    return fields


def mirror_edges(plan: bridge.Plan, field: dict) -> None:
    """Run the copies beyond edges, each of which may read what an earlier one wrote."""
    for c in plan.copies:
        if c.round == plan.rounds:
            for to, at in zip(c.to.cells(), c.to.shifted(c.shift).cells(), strict=True):
                *point, negated = field[c.quantity, at]
                field[c.quantity, to] = (*point, negated ^ c.negate)


def program_of(choice: bridge.Choice, rank: int = 0) -> bridge.Program:
    """Return the program of a rank for the first stage of a choice."""
    plan = bridge.make_plan(bridge.make_layout(choice), rank, bridge.exchange_spec(choice))
    return bridge.make_program(choice.schedule, bridge.step_of(choice), plan, bridge.schedule_options(choice))


def without_ranks(plan: bridge.Plan) -> bridge.Plan:
    """The plan with every rank number taken out."""
    messages = tuple(dataclasses.replace(m, peer=-1) for m in plan.messages)
    return dataclasses.replace(plan, rank=-1, messages=messages)


def classes_of(plans: list[bridge.Plan]) -> list[list[int]]:
    """Return the ranks whose plans differ only in rank numbers, together."""
    classes: dict[bridge.Plan, list[int]] = {}
    for plan in plans:
        classes.setdefault(without_ranks(plan), []).append(plan.rank)
    return list(classes.values())
