"""The model of the task queue against printed numbers that it was not fitted to, and its speed-ups elsewhere."""

from __future__ import annotations

from haloscope.report import tables
from haloscope.studies import checks
from haloscope.studies.checks import Check
from haloscope_studies.vanecek2020 import matrix, model, printed

XL_WHY = (
    "messages of XL that take 10 % longer in the baseline than at the rate of M would give both gains, but no time of "
    "XL is printed"
)
DOCUMENTED = {
    "model: speed-up XL, pinned, nonblocking": XL_WHY,
    "model: speed-up XL, device, nonblocking": XL_WHY,
    "model: speed-up XS, device, nonblocking": "calls of copies are added up; some run while blocks pack",
    "model: packing 8 B among large blocks, pinned, us": "the model has no delay of a small block by large ones",
}


def results() -> list[Check]:
    """NE1, NE2: predictions against printed speed-ups and packing times."""
    return [*map(_speedup, model.predictions()), _winners(), *_packing()]


def _speedup(one: model.Prediction) -> Check:
    deviation = printed.claims()["deviation of a task queue L"].high or 0.0
    off = 100 * (one.model / one.printed - 1)
    return Check(
        "NE1",
        f"model: speed-up {one.what}",
        f"{one.printed:.3f}",
        f"{one.model:.3f}",
        f"within {deviation:g} %",
        checks.state(abs(off) <= deviation),
        f"{off:+.1f} %; the bar is the printed deviation of L",
    )


def _winners() -> Check:
    """Return whether the faster one of pinned buffers and copies is the printed one."""
    gains = {one.what: one for one in model.predictions()}
    pairs = [
        (gains[f"{name}, pinned, {send}"], gains[f"{name}, device, {send}"])
        for name, send in (("M", "blocking"), ("L", "nonblocking"), ("L", "blocking"), ("XL", "nonblocking"))
    ]
    agreeing = [(a.printed > b.printed) == (a.model > b.model) for a, b in pairs]
    state = checks.state(all(agreeing))
    return Check("NE1", "model: the faster buffer", str(len(pairs)), f"{sum(agreeing)} agree", "all", state, "M, L, XL")


def _packing() -> list[Check]:
    """Return the packing times of L, in which rates fitted to XL are used."""
    fitted, sizes = model.fitted(), printed.sizes("L")
    ready = {"pinned": fitted.pinned_ready(sizes), "device": fitted.device_ready(sizes)}
    cases = (
        ("largest block of L, pinned", "pack largest block, pinned", ready["pinned"][-1]),
        ("largest block of L, device", "pack largest block, device buffer (upper bound)", ready["device"][-1]),
        ("8 B among large blocks, pinned", "pack 8 B block, pinned", ready["pinned"][0]),
    )
    return [_packing_time(name, printed.observed("v100", "L", quantity), 1e6 * at) for name, quantity, at in cases]


def _packing_time(name: str, stated: tuple[float, float], ours: float) -> Check:
    low, high = stated
    bound = "upper bound" if "device" in name else "range"
    reached = ours <= high and (bound == "upper bound" or ours >= low)
    text = printed.range_text(low, high)
    return Check(
        "NE2",
        f"model: packing {name}, us",
        text,
        f"{ours:.4g}",
        f"stated {bound}",
        checks.state(reached),
        "rates of XL",
    )


def table() -> str:
    """Return the parameters, the speed-ups by blocks, sizes and networks, and a sentence about the best network."""
    fitted = model.fitted()
    parameters = (
        f"Parameters of the V100: {1e6 * fitted.fixed_s:.1f} us of an iteration, {1e6 * fitted.launch_s:.1f} us of a "
        f"second kernel; packing {1e-9 * fitted.pinned_rate:.2f} GB/s of all blocks into pinned memory, "
        f"{1e-9 * fitted.device_rate:.2f} GB/s of a block into device memory; messages {1e-9 * fitted.send_rate:.2f} "
        f"GB/s, {100 * fitted.overlap:.0f} % of it while blocks pack into pinned memory; copies "
        f"{1e-9 * fitted.copy_rate:.1f} GB/s. Each follows from one printed number of M, XS or XL."
    )
    headers = ["blocks", "largest (B)", *(f"network x {factor:g}" for factor in model.NETWORKS)]
    gains = tables.markdown(model.gain_rows(), headers, right=headers)
    return f"{parameters}\n\n{gains}\n\n{advice()}"


def advice() -> str:
    """Return the model's answer for workload L: where the task queue gains most, and its limits."""
    sizes = printed.sizes("L")
    best, gain = model.best_network(sizes)
    slow, fast = (model.on_network(factor).gain(sizes) for factor in (0.01, 1000))
    plain = model.gain_of(matrix.PLAIN, "L")
    return (
        f"Workload L, by the model: {plain:.3f} on the network of the V100; most, {gain:.3f}, on one {best:.0f} times "
        f"as fast, where sending and packing take about as long; {slow:.3f} on one a hundredth as fast, where messages "
        f"take most of the time, and {fast:.3f} on one a thousand times as fast, where packing does. The model has no "
        "loss by polling: in it the task queue with pinned buffers never loses."
    )
