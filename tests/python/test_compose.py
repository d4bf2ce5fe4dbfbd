"""The clock that carries out priced programs: lanes, dependencies, messages and waits give the time, no formula per schedule."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haloscope.model.compose import TERMS, Action, Flight, Stuck, Track, compose

times = st.floats(0.0, 50.0).map(lambda t: round(t, 3))


def work(term: str, seconds: float, comm: bool = True, after: tuple[int, ...] = ()) -> Action:
    """Work of one kind."""
    return Action("work", comm, after, ((term, seconds),))


def sweep(seconds: float, after: tuple[int, ...], shared: tuple[float, float, float] | None = None) -> Action:
    """Sweep on the main lane."""
    return Action("sweep", False, after, sweep=shared or (seconds, seconds, seconds))


def exchange(pack: float, unpack: float, out: int = 1, incoming: int = 0) -> list[Action]:
    """One message each way: pack, send, wait, unpack, complete."""
    return [
        work("pack", pack),
        Action("send", True, messages=(out,)),
        Action("wait", True, messages=(incoming,)),
        work("unpack", unpack),
        Action("complete", True, messages=(out,)),
    ]


def bulk(pack, flight, unpack, inner, outer, **more) -> Track:
    """Exchange, then the whole sweep; peers do the same at the same time."""
    body = (*exchange(pack, unpack), sweep(inner + outer, (3,)))
    return Track(body, {1: Flight(flight, more.pop("by_itself", True))}, {0: ((0, 1),)}, **more)


def split(pack, flight, unpack, inner, outer, tiles: int = 1, **more) -> Track:
    """Interior after the send, in tiles with calls for progress between them, then the boundary."""
    body = list(exchange(pack, unpack))
    done = []
    for tile in range(tiles):
        body.append(sweep(inner / tiles, (1,)))
        done.append(len(body) - 1)
        if tile + 1 < tiles:
            body.append(Action("progress", False))
    body.append(sweep(outer, (3,)))
    return Track(tuple(body), {1: Flight(flight, more.pop("by_itself", True))}, {0: ((0, 1),)}, **more)


def seconds(track: Track) -> float:
    """Pace of a track whose peers are like it."""
    return compose([track])[0].seconds


@given(times, times, times, times, times)
def test_without_overlap_the_time_is_the_sum_of_all_parts(pack, flight, unpack, inner, outer):
    pace = compose([bulk(pack, flight, unpack, inner, outer)])[0]
    assert pace.seconds == pytest.approx(pack + flight + unpack + inner + outer)
    expected = {"pack": pack, "message": flight, "unpack": unpack, "compute": inner + outer}
    assert pace.terms == pytest.approx(dict.fromkeys(TERMS, 0.0) | expected)


@given(times, times, times, times, times)
def test_overlap_hides_the_message_behind_the_interior_and_no_more(pack, flight, unpack, inner, outer):
    pace = compose([split(pack, flight, unpack, inner, outer)])[0]
    assert pace.seconds == pytest.approx(pack + max(inner, flight) + unpack + outer)
    assert pace.terms["message"] == pytest.approx(max(0.0, flight - inner), abs=1e-9)
    assert pace.busy["message"] == pytest.approx(flight)


@given(times, times, times, times, times, st.integers(1, 6))
def test_overlap_is_never_slower_than_bulk_and_never_faster_than_its_longest_part(p, f, u, i, o, tiles):
    for by_itself in (True, False):
        overlapped = seconds(split(p, f, u, i, o, tiles, by_itself=by_itself))
        assert overlapped <= seconds(bulk(p, f, u, i, o, by_itself=by_itself)) * (1 + 1e-9) + 1e-9
        assert overlapped >= max(p + i + o + u, f) * (1 - 1e-9)


@given(times, times, times, times, st.integers(1, 5))
def test_the_breakdown_adds_up_to_the_time(pack, flight, unpack, inner, tiles):
    thread = dataclasses.replace(split(pack, flight, unpack, inner, 1.0), comm_thread=True)
    tracks = [split(pack, flight, unpack, inner, 1.0, tiles), bulk(pack, flight, unpack, inner, 1.0), thread]
    for track in tracks:
        pace = compose([track])[0]
        assert sum(pace.terms.values()) == pytest.approx(pace.seconds)
        assert min(pace.terms.values()) >= 0


@given(times, times, st.floats(0, 1))
def test_messages_progress_while_computing_as_far_as_the_efficiency_says(flight, inner, efficiency):
    track = split(1.0, flight, 1.0, inner, 1.0, efficiency=efficiency)
    assert seconds(track) == pytest.approx(3.0 + inner + max(0.0, flight - efficiency * inner))


def test_a_message_that_needs_calls_travels_from_the_first_call_on():
    """Interior of 8 in 4 tiles: the first call is after 2; without tiles it is the wait itself."""
    flight = 5.0
    assert seconds(split(1, flight, 1, 8, 1, tiles=4, by_itself=False)) == pytest.approx(1 + 8 + 1 + 1)
    assert seconds(split(1, 7.0, 1, 8, 1, tiles=4, by_itself=False)) == pytest.approx(1 + (2 + 7) + 1 + 1)
    assert seconds(split(1, flight, 1, 8, 1, tiles=1, by_itself=False)) == pytest.approx(1 + 8 + flight + 1 + 1)


@given(times, times, times)
def test_what_the_receiver_must_do_itself_is_not_hidden(flight, held, inner):
    held = min(held, flight)
    track = dataclasses.replace(split(1.0, flight, 1.0, inner, 1.0), flights={1: Flight(flight, held=held)})
    assert seconds(track) == pytest.approx(3.0 + inner + max(held, flight - inner))


def two_rounds(overlapped: bool, flight: float) -> Track:
    """Two rounds of an ordered pattern, each a message both ways, beside one sweep."""
    first, second = exchange(1.0, 1.0, 1, 0)[:4], exchange(1.0, 1.0, 3, 2)[:4]
    body = [*first, *second]
    main = [sweep(10.0, (1,) if overlapped else (7,)), sweep(2.0, (7,))]
    return Track(
        (*body, *main), {1: Flight(flight), 3: Flight(flight)}, {0: ((0, 1),), 2: ((0, 3),)}
    )  # fmt: skip


def test_a_round_that_follows_another_starts_only_when_the_control_thread_gets_to_it():
    """Nobody calls for progress in the sweep: the second message leaves after it and is not hidden."""
    assert seconds(two_rounds(False, 4.0)) == pytest.approx(4 * 1 + 2 * 4 + 12)
    assert seconds(two_rounds(True, 4.0)) == pytest.approx(4 * 1 + 10 + 4 + 2)


def test_a_communication_thread_serves_every_round_beside_the_sweep():
    track = dataclasses.replace(two_rounds(True, 4.0), comm_thread=True)
    pace = compose([track])[0]
    assert pace.seconds == pytest.approx(4 * 1 + 2 * 4 + 2)  # the exchange is the longer lane: 12, sweep 1 to 11
    assert pace.terms["compute"] == pytest.approx(10 + 2)
    assert pace.busy["message"] == pytest.approx(8)


def test_a_sweep_goes_faster_while_the_communication_thread_waits_and_once_it_helps():
    """Packing 2 s at pace 1/20, then waiting 4 s at 1/16, then helping at 1/8: 2/20 + 4/16 leave 0.65 x 8 s."""
    body = (work("pack", 2.0), Action("send", True, messages=(1,)), Action("wait", True, messages=(0,)),
            sweep(0.0, (), (20.0, 16.0, 8.0)))  # fmt: skip
    track = Track(body, {1: Flight(4.0)}, {0: ((0, 1),)}, comm_thread=True)
    assert seconds(track) == pytest.approx(6.0 + 0.65 * 8.0)


def test_a_slow_rank_sets_the_pace_and_its_neighbours_wait_for_it():
    fast, slow = bulk(1.0, 2.0, 1.0, 3.0, 1.0), bulk(1.0, 2.0, 1.0, 8.0, 1.0)
    tracks = [dataclasses.replace(t, sources={0: ((1 - i, 1),)}) for i, t in enumerate((fast, slow))]
    paces = compose(tracks)
    assert [pace.seconds for pace in paces] == pytest.approx([11.0, 11.0])
    assert paces[1].terms["message"] == paces[1].terms["wait"] == pytest.approx(0.0, abs=1e-9)  # its peer is early
    assert paces[0].terms["wait"] == pytest.approx(11.0 - (1 + 2 + 1 + 4))


def test_of_several_possible_senders_the_last_counts():
    tracks = [bulk(1.0, 2.0, 1.0, inner, 1.0) for inner in (1.0, 2.0, 9.0)]
    tracks = [dataclasses.replace(t, sources={0: tuple((i, 1) for i in range(3))}) for t in tracks]
    assert [pace.seconds for pace in compose(tracks)] == pytest.approx([14.0] * 3)


def test_barriers_make_all_wait_for_the_slowest():
    tracks = [Track((Action("barrier", True), sweep(s, (0,)))) for s in (1.0, 5.0)]
    paces = compose(tracks)
    assert [pace.seconds for pace in paces] == pytest.approx([5.0, 5.0])
    assert paces[0].terms["wait"] == pytest.approx(4.0)


def test_ranks_that_all_wait_before_they_send_are_reported():
    body = (Action("wait", True, messages=(0,)), Action("send", True, messages=(1,)))
    with pytest.raises(Stuck):
        compose([Track(body, {1: Flight(1.0)}, {0: ((0, 1),)})])


def test_a_chain_that_takes_turns_runs_at_the_pace_of_one_link():
    """Three ranks, each waits for the one before, sweeps and sends on: in step they work side by side."""
    first = Track((sweep(4.0, ()), work("pack", 1.0), Action("send", True, messages=(1,))), {1: Flight(2.0)})
    body = (
        Action("wait", True, messages=(0,)),
        sweep(4.0, (0,)),
        work("pack", 1.0),
        Action("send", True, messages=(1,)),
    )
    rest = [Track(body, {1: Flight(2.0)}, {0: ((i, 1),)}) for i in (0, 1)]
    assert [pace.seconds for pace in compose([first, *rest])] == pytest.approx([5.0] * 3)


@given(times, times, times, st.integers(0, 4), times)
def test_no_part_can_grow_and_make_the_step_shorter(pack, flight, inner, which, more):
    parts = [pack, flight, 1.0, inner, 1.0]
    longer = [part + more * (i == which) for i, part in enumerate(parts)]
    for make in (bulk, split):
        assert seconds(make(*longer)) >= seconds(make(*parts)) * (1 - 1e-9) - 1e-9
