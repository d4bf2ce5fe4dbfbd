"""Advice: candidates ranked with reasons, equal ones named as equal, and changes that would lead to another answer."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest

from haloscope import bridge
from haloscope.advice import advise as model
from haloscope.bridge import apps, capi
from haloscope.errors import UnavailableError, UsageError
from haloscope.model import predict
from toy import TOY, changed, kernel_row, make_uncertain

SMALL = bridge.Choice(app="laplace2d", cells=(64, 64), ranks=4)


def test_candidates_are_ranked_by_their_predictions_and_every_legal_one_is_there(toy):
    advice = model.advise(SMALL, toy, depths=(1, 2))
    times = [c.time_s for c in advice.candidates]
    assert times == sorted(times)
    space = {"choice": SMALL.to_json(), "depths": [1, 2], "arrangements": [{}]}
    legal = [one for one in capi.answer("hs_expand", space) if not one["reason"]]
    lacking = sum(n for reason, n in advice.refused.items() if "no cost of" in reason)
    assert len(advice.candidates) + lacking == len(legal)
    best = advice.best.prediction
    assert best.time_s == predict.predict(best.choice, toy, samples=0).time_s


def test_candidates_that_the_app_itself_refuses_are_counted_by_its_reason(toy, monkeypatch):
    plain = model.advise(SMALL, toy, depths=(1,))
    monkeypatch.setitem(apps._declared, SMALL.app, lambda choice: "it is shallow" if choice.depth > 1 else "")
    advice = model.advise(SMALL, toy, depths=(1, 2))
    assert {c.choice for c in advice.candidates} == {c.choice for c in plain.candidates}
    assert advice.refused["it is shallow"] > 1 and advice.refused.keys() > plain.refused.keys()
    with pytest.raises(UsageError, match="it is shallow"):
        model.advise(SMALL, toy, depths=(2,))


def test_candidates_of_an_app_that_refuses_none_are_listed_by_the_library(monkeypatch):
    monkeypatch.setitem(apps._declared, SMALL.app, lambda choice: "")
    assert model.own_candidates(SMALL, (1, 2)) == (None, {})


def test_many_small_messages_are_called_latency_bound(toy):
    slow = changed(toy, lambda d: [r.update(latency_s=1e-4) for r in d["network"]["classes"]["socket"]["segments"]])
    found = predict.predict(bridge.Choice(cells=(12, 12, 12), ranks=8, strategy="direct/p2p"), slow, samples=0)
    text = found.reason
    assert text.startswith(f"latency-bound: {found.messages} messages of {found.message_bytes[0]} to")
    deep = model.advise(SMALL, slow, depths=(1, 8))
    assert deep.best.choice.depth == 8  # fewer messages


def test_large_blocks_are_called_compute_bound(toy):
    found = predict.predict(bridge.Choice(app="laplace2d", cells=(8192, 8192), ranks=4), toy, samples=0)
    assert found.reason.startswith("compute-bound")


def test_there_is_no_winner_among_candidates_within_the_margin(toy):
    advice = model.advise(bridge.Choice(app="laplace2d", cells=(4096, 4096), ranks=4), toy, depths=(1,))
    assert len(advice.equals) > 1
    assert all(c.time_s <= advice.best.prediction.time_s * 1.05 for c in advice.equals)


def test_intervals_decide_what_can_be_told_apart(toy):
    """An uncertain latency that all candidates pay alike leaves their order certain; one that only some pay does
    not.
    """

    def sure(data):
        make_uncertain(kernel_row(data), "per_cell_s", 0.001)

    def unsure(data):
        for row in data["network"]["classes"]["socket"]["segments"]:
            row["interval"] = {"latency_s": [0.0, 3 * row["latency_s"]]}

    certain = model.advise(SMALL, changed(toy, sure), depths=(1, 4), samples=40)
    uncertain = model.advise(SMALL, changed(toy, unsure), depths=(1, 4), samples=40)
    distinct = {round(c.time_s, 12) for c in certain.equals}
    assert len(distinct) == 1
    assert len(uncertain.equals) >= len(certain.equals)


def test_it_says_what_would_change_the_answer_and_is_right(toy):
    choice = bridge.Choice(app="laplace2d", cells=(192, 192), ranks=4)
    advice = model.advise(choice, toy, depths=(1, 2, 4))
    assert advice.best.choice.depth == 4
    text = next(text for text in advice.changes if "twice the time to sweep" in text)
    assert "depth 1 would be first" in text

    def slow(data):
        for table in data["kernels"].values():
            for row in (row for rows in table.values() for row in rows):
                row.update(fixed_s=2 * row["fixed_s"], per_cell_s=2 * row["per_cell_s"])

    assert model.advise(choice, changed(toy, slow), depths=(1, 2, 4)).best.choice.depth == 1


def test_shared_memory_is_not_advised_beyond_a_node(toy):
    advice = model.advise(bridge.Choice(app="laplace2d", cells=(64, 64), ranks=16), toy, depths=(1,))
    strategies = {c.choice.strategy for c in advice.candidates}
    assert "ordered/shared+p2p" in strategies
    assert "ordered/shared" not in strategies
    assert any("does not reach from node to node" in reason for reason in advice.refused)


def test_nothing_to_advise_is_an_error_with_its_reason(toy):
    with pytest.raises(UnavailableError, match="no cost of kernel"):
        model.advise(bridge.Choice(app="laplace3d", cells=(64,) * 3), toy)
    with pytest.raises(UsageError):
        model.advise(bridge.Choice(app="laplace2d", cells=(8, 8), ranks=4), toy, depths=(16,))


def test_the_command_prints_ranking_reasons_and_code(haloscope):
    done = haloscope("advise", "laplace2d", "--cells", "64", "--ranks", "4", "--depth", "1,2", "--profile", TOY)
    assert done.code == 0, done.err
    for text in (
        "times the best",
        "Best step by depth",
        "Stepper step{grid, {u}, choice, sweep",
        "haloscope run laplace2d",
        "Not priced",
    ):
        assert text in done.out
    plain = haloscope("advise laplace2d --cells 64 --ranks 4 --depth 1 --profile", TOY, "--json")
    document = json.loads(plain.out)
    assert document["candidates"][0]["equal_to_best"] is True


def test_the_code_it_prints_is_a_choice_that_can_run(haloscope):
    done = haloscope("advise", "laplace2d", "--cells", "64", "--ranks", "4", "--depth", "1,2", "--profile", TOY)
    words = done.out.split("`haloscope run ")[1].split("`")[0].split()
    again = haloscope("predict", *words, "--profile", TOY)
    assert again.code == 0, again.err


def uncertain(data):
    """Parameters with intervals, and a model whose exchanges are 30 % off."""
    data["discrepancy"] = {"compute": 0.05, "exchange": 0.3}
    for row in data["network"]["classes"]["socket"]["segments"]:
        make_uncertain(row, "latency_s", 0.1)


@pytest.mark.parametrize("change", [lambda data: None, uncertain])
def test_every_candidate_is_in_one_group_named_after_a_member(toy, change):
    advice = model.advise(SMALL, changed(toy, change), depths=(1, 4), samples=20)
    members = [c for g in advice.groups for c in g.members]
    assert sorted(map(id, members)) == sorted(map(id, advice.candidates))
    assert all(g.simplest in g.members for g in advice.groups)
    assert [g.members[0].time_s for g in advice.groups] == sorted(g.members[0].time_s for g in advice.groups)
    assert all(g.simplest.time_s <= 1.05 * g.members[0].time_s for g in advice.groups)
    assert advice.groups[0].members == advice.equals and advice.pick in advice.equals


def test_what_a_model_leaves_out_makes_groups_larger(toy):
    sharp, blunt = (
        model.advise(SMALL, changed(toy, c), depths=(1, 4), samples=20) for c in (lambda d: None, uncertain)
    )
    assert 1 < len(blunt.groups) < len(sharp.groups)


def test_equal_predictions_are_one_group(toy):
    advice = model.advise(SMALL, toy, depths=(1, 4))
    first = {}
    for candidate in advice.candidates:
        first.setdefault(candidate.time_s, candidate.group)
        assert candidate.group == first[candidate.time_s]


def test_what_is_assumed_of_nodes_is_said_before_the_answer(toy, haloscope, tmp_path):
    def answer(data):
        (tmp_path / "m.json").write_text(json.dumps(data))
        return haloscope("advise laplace2d --cells 64 --ranks 64 --depth 1 --profile m.json").out

    text = answer(toy.data)
    assert "Nodes: 64 ranks on 8 nodes of 2 x 4 cores, placed by rule fill. 8 nodes are needed" in text
    assert text.index("Nodes:") < text.index("times the best") and text.index("Nodes:") < text.index("**")
    assert "emulated" not in text
    lab = changed(
        toy, lambda d: d["machine"].update(emulated_network={"latency_s": 5e-5, "bandwidth_bytes_per_s": 1e9})
    )
    assert "emulated network (latency_s 5e-05, bandwidth_bytes_per_s 1000000000.0), not a real one" in answer(lab.data)


def test_a_row_lists_who_is_in_it_when_asked(haloscope):
    words = ("advise", "laplace2d", "--cells", "64", "--ranks", "4", "--depth", "1", "--profile", TOY, "--top", "2")
    plain, listed = haloscope(*words), haloscope(*words, "--members")
    assert "Members of each row" not in plain.out and "Row 2:" in listed.out
    groups = json.loads(haloscope(*words, "--json").out)["groups"]
    assert listed.out.count("\n- ordered") + listed.out.count("\n- direct") >= sum(g["members"] for g in groups[:2])


def test_process_grids_that_differ_and_can_be_are_tried_each_once(toy):
    flat = bridge.Choice("laplace2d", (512, 64), ranks=8)
    rules = ("", "square", "slabs", "prime-factors")
    found = [c.choice for c in model.advise(flat, toy, depths=(1,), samples=0, grids=rules).candidates]
    tried = {bridge.make_layout(choice).ranks[:2]: choice.process_grid for choice in found}
    assert set(tried) == {bridge.make_layout(dataclasses.replace(flat, process_grid=rule)).ranks[:2] for rule in rules}
    assert len(tried) == len({choice.process_grid for choice in found}), "none twice"
    own = model.advise(dataclasses.replace(flat, process_grid="8x1"), toy, depths=(1,), samples=0)
    assert {c.choice.process_grid for c in own.candidates} == {"8x1"}
    two = model.advise(flat, toy, depths=(1,), samples=0, grids=("8x1", "1x8", "3x3"))
    assert {c.choice.process_grid for c in two.candidates} == {"8x1", "1x8"}
    with pytest.raises(UsageError, match="3x3"):
        model.advise(flat, toy, depths=(1,), samples=0, grids=("3x3",))


def test_advice_names_the_process_grid_where_several_are_tried(haloscope):
    done = haloscope("advise laplace2d --cells 4096x64 -n 16 --process-grid 4x4,16x1 --depth 1 --profile", TOY)
    assert done.code == 0, done.err
    assert "process grid" in done.out and "| 16x1 " in done.out and "| 4x4 " in done.out
    picked = re.search(r"--process-grid (\w+)", done.out)[1]
    assert picked in ("4x4", "16x1") and f'.process_grid = "{picked}"' in done.out
