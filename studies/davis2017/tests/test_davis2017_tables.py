"""The 2017 study's tables that its model does not need: the ratios and compositions that follow from them."""

from __future__ import annotations

import pytest

from haloscope import studies
from haloscope_studies.davis2017.replay import observations, variants

SERIAL = {"B": (1.29, 1.33, 1.35, 1.33, 1.38, 1.43), "C": (1.06, 1.08, 1.12, 1.13, 1.18, 1.24)}


@pytest.mark.ids("DH2")
@pytest.mark.parametrize(("variant", "gains"), SERIAL.items())
def test_loop_orders_gain_what_the_digest_says(variant, gains):
    found = [variants.gain("OpenMPI-1.4.3", variant, "serial", side, 1) for side in variants.SIDES]
    assert found == pytest.approx(gains, abs=0.005)


@pytest.mark.parametrize(
    ("library", "variant", "scaling", "side", "pes", "gain"),
    [
        ("OpenMPI-1.4.3", "B", "weak", 100, 256, 700.35 / 512.26),
        ("OpenMPI-1.4.3", "F", "weak", 100, 256, 603.90 / 603.91),
        ("OpenMPI-1.4.3", "H", "weak", 100, 256, 658.24 / 766.49),
        ("OpenMPI-1.4.4", "L", "weak", 100, 192, 985.88 / 892.63),
        ("OpenMPI-1.4.4", "I", "strong", 150, 12, 219.24 / 261.11),
        ("OpenMPI-1.4.3", "G", "weak", 100, 1, None),
        ("OpenMPI-1.4.3", "L", "weak", 100, 192, None),  # printed with the other library only
    ],
)
def test_a_variant_is_compared_with_its_predecessor_and_one_mpi_library(library, variant, scaling, side, pes, gain):
    found = variants.gain(library, variant, scaling, side, pes)
    assert found == (None if gain is None else pytest.approx(gain))


def test_vector_gains_and_shares_are_those_of_the_digest():
    found = variants.vector_gain()
    assert [found["MDT1", side] for side in variants.SIDES] == pytest.approx(
        [1.57, 1.76, 1.80, 1.82, 1.83, 1.83], abs=0.006
    )
    assert [found["Madvmx1", side] for side in (30, 150)] == pytest.approx([1.11, 1.16], abs=0.006)
    shares = variants.vector_share()
    assert shares["MDT2"] == pytest.approx((0.50, 0.50), abs=0.005)
    assert shares["Madvmx1"] == pytest.approx((0.40, 0.42), abs=0.005)


def test_stalled_shares_follow_from_the_printed_cycles():
    for row in studies.published("davis2017", "kernels_x3430"):
        assert 100 * variants.stalled(row) == pytest.approx(float(row["stalled_percent"]), abs=0.6)


def test_the_master_thread_of_l_exchanges_longer_and_computes_less_than_that_of_k():
    means = variants.function_means()
    assert (means["MadvmxExch", "K", 192], means["MadvmxExch", "L", 192]) == (0.0849, 0.267)
    assert (means["Madvmx1", "K", 192], means["Madvmx1", "L", 192]) == (0.542, 0.237)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in variants.thread().splitlines()]
    assert ["MadvmxExch", "192", "84.90", "267.0", "3.14"] in rows


def test_walltimes_are_composed_of_longest_compute_and_shortest_communication():
    found = observations.compositions()
    assert len(found) == 28
    composed, measured = found["weak", 8]
    assert composed == pytest.approx(548.77 + 41.00 + 0.76 + 23.32 + 40.74) and measured == 655.61
    off = {case: composed / measured - 1 for case, (composed, measured) in found.items()}
    assert {case for case, error in off.items() if abs(error) > 0.0165} == {
        ("strong", 256)
    }  # its fastest run is printed


def test_barriers_cost_up_to_four_percent_and_hold_the_range_of_compute():
    found = {pes: (cost, share) for pes, cost, share in observations.barriers()}
    assert found[2][0] == pytest.approx(0.001, abs=0.0005) and found[256][0] == pytest.approx(0.039, abs=0.0005)
    assert found[1][1] is None and all(0.95 < share < 1.4 for _, share in found.values() if share is not None)


def test_the_clock_is_flagged_only_where_processes_idle():
    assert [(s, pes) for s, pes, _, flagged in observations.clocks() if flagged] == [("strong", 16), ("strong", 32)]


def test_process_grids_of_the_decomposition_table_are_ours_but_for_one():
    assert [pes for pes, printed, ours in observations.decompositions() if printed != ours] == [2048]


def test_the_longest_exchange_is_the_shortest_and_the_range_of_compute_before_it():
    for pes, stage, longest, explained in observations.synchronisation():
        if pes in (4, 8):
            assert explained == pytest.approx(longest, rel=0.03), stage
    assert len(observations.synchronisation()) == 39


@pytest.mark.ids("DH2")
def test_a_single_reduction_saves_less_in_dot_products_than_its_vectors_cost():
    """Digest, section 10.4: the sums, and what dot products save and the doubled AYPX costs."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in observations.solver_table().splitlines()[2:]]
    found = {name: [float(cell) for cell in cells] for name, *cells in rows}
    assert found["sum"] == pytest.approx([195.53, 217.11, 21.58], abs=0.006)
    assert found["VecDot"][2] == pytest.approx(-2.34, abs=0.006) and found["VecAYPX"][2] == pytest.approx(
        13.83, abs=0.006
    )
