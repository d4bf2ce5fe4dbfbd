"""A model of the task queue: one server sends blocks while others still pack; fitted to a few printed numbers."""

from __future__ import annotations

import functools
import itertools
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from haloscope_studies.vanecek2020 import matrix, printed, replay, variants

# Speed-ups by largest buffer in bytes, by blocks, and by network over the V100's message rate (`gain_rows`).
LARGEST, BLOCKS, NETWORKS = (1e3, 1e4, 1e5, 1e6, 1e7), (4, 9, 27), (0.1, 1, 10, 100)


@dataclass(frozen=True)
class QueueModel:
    """Parameters of a GPU and its network. Rates are in bytes a second.

    fixed_s: of an iteration, with its first launch. launch_s: of the second kernel and its end. pinned_rate: packing
    into pinned memory, all blocks together. device_rate: packing into device memory, each block. send_rate: messages;
    overlap: the part of that rate that is left while blocks pack into pinned memory. copy_rate: copies, during which
    no message moves. call_s: of one asynchronous copy.
    """

    fixed_s: float
    launch_s: float
    pinned_rate: float
    device_rate: float
    send_rate: float
    overlap: float
    copy_rate: float
    call_s: float

    def pinned_ready(self, sizes: Sequence[int]) -> list[float]:
        """Return the times at which blocks have packed, smallest first: all that still pack share the rate."""
        ready, at, before = [], 0.0, 0
        for number, size in enumerate(sorted(sizes)):
            at += (size - before) * (len(sizes) - number) / self.pinned_rate
            before = size
            ready.append(at)
        return ready

    def device_ready(self, sizes: Sequence[int]) -> list[float]:
        """Return the times at which blocks have packed into device memory, smallest first; each has its own rate."""
        return [size / self.device_rate for size in sorted(sizes)]

    def baseline(self, sizes: Sequence[int]) -> float:
        """Return the seconds of an iteration of the baseline: packing, all messages, a second kernel."""
        return self.fixed_s + self.launch_s + self.pinned_ready(sizes)[-1] + sum(sizes) / self.send_rate

    def pinned_queue(self, sizes: Sequence[int]) -> float:
        """Return the seconds of an iteration of the task queue with pinned buffers."""
        ready = self.pinned_ready(sizes)
        end = ready[0]
        for at, size in zip(ready, sorted(sizes), strict=True):
            end = self._sent(max(end, at), size / self.send_rate, ready[-1])
        return self.fixed_s + end

    def _sent(self, begin: float, seconds: float, packed: float) -> float:
        """Return the end of a message: it is slower until all blocks have packed."""
        slow = max(packed - begin, 0.0) * self.overlap  # seconds of sending that fit in before
        return begin + seconds / self.overlap if seconds <= slow else max(begin, packed) + seconds - slow

    def copied_queue(self, sizes: Sequence[int]) -> float:
        """Return the seconds of an iteration of the task queue with device memory, copied in and out."""
        end = 0.0
        for at, size in zip(self.device_ready(sizes), sorted(sizes), strict=True):
            copies = 2 * (self.call_s + size / self.copy_rate)
            end = max(end, at) + copies + size / self.send_rate
        return self.fixed_s + end

    def gain(self, sizes: Sequence[int]) -> float:
        """Return the speed-up of the task queue with pinned buffers over the baseline."""
        return self.baseline(sizes) / self.pinned_queue(sizes)

    def copied_gain(self, sizes: Sequence[int]) -> float:
        """Return the speed-up of the task queue with copies over the baseline."""
        return self.baseline(sizes) / self.copied_queue(sizes)


@functools.cache
def fitted(blocking: bool = False) -> QueueModel:
    """Return the model of the V100: each parameter follows from one printed number of XS, M, L or XL.

    blocking: with sends of that kind, whose rate follows from the baselines of M; all else is as with nonblocking ones.
    """
    queue, copies = (_printed("4.4", variant) for variant in (matrix.PLAIN, matrix.STAGED))
    sizes = printed.sizes("M")
    plain = _with_rate(_of_packing(), replay.fastest("1", False))
    plain = replace(plain, overlap=_solved(plain, "overlap", 0.01, 1.0, lambda m: m.pinned_queue(sizes) - queue))
    plain = replace(plain, copy_rate=_solved(plain, "copy_rate", 1e9, 1e12, lambda m: m.copied_queue(sizes) - copies))
    return _with_rate(plain, replay.fastest("1", True)) if blocking else plain


def _of_packing() -> QueueModel:
    """Return the model with its parameters of XS, of packing, and of calls; messages come later."""
    sizes = printed.sizes("XL")
    _, sent = printed.observed("v100", "XS", "baseline MPI phase end")
    tiny = statistics.mean(
        h.speedup for h in printed.headlines() if (h.gpu, h.workload) == ("v100", "XS") and "pinned" in h.text
    )
    pinned, device, call = (
        1e-6 * statistics.mean(printed.observed("v100", workload, name))
        for workload, name in (
            ("XL", "pack largest block, pinned"),
            ("XL", "pack largest block, device buffer"),
            ("XS", "async copy call"),
        )
    )
    return QueueModel(
        fixed_s=1e-6 * sent,
        launch_s=1e-6 * sent * (tiny - 1),
        pinned_rate=sum(sizes) / pinned,
        device_rate=max(sizes) / device,
        send_rate=1e9,
        overlap=1.0,
        copy_rate=1e10,
        call_s=call,
    )


def _with_rate(model: QueueModel, baseline_s: float) -> QueueModel:
    """Return the model with the message rate that gives a time of the baseline of workload M."""
    sizes = printed.sizes("M")
    rest = baseline_s - model.fixed_s - model.launch_s - model.pinned_ready(sizes)[-1]
    return replace(model, send_rate=sum(sizes) / rest)


def _solved(model: QueueModel, name: str, low: float, high: float, excess: Callable[[QueueModel], float]) -> float:
    """Return the value of a parameter at which `excess` of the model, which falls with the parameter, is zero."""
    from scipy.optimize import brentq

    return float(brentq(lambda value: excess(replace(model, **{name: value})), low, high))


def _printed(table: str, variant: str) -> float:
    [row] = [row for row in printed.of_table(table) if row.variant == variant]
    return row.seconds


# ---- predictions -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Prediction:
    """A printed speed-up of a channel per block that no parameter was fitted to, and the model's."""

    what: str
    printed: float
    model: float


def predictions() -> list[Prediction]:
    """Return the speed-ups of M with blocking sends, and of L, XL and XS."""
    made = []
    for table, workload in (("4.4", "M"), ("4.5", "L")):
        for row in printed.of_table(table):
            used = workload == "M" and not row.blocking  # in the fit
            if "channel" in variants.words_of(row.variant) and not used and row.speedup is not None:
                made.append(
                    Prediction(f"{workload}, {_short(row.variant)}", row.speedup, gain_of(row.variant, workload))
                )
    stated = {("XL", matrix.PLAIN): "XL", ("XL", matrix.STAGED): "XL", ("XS", matrix.STAGED): "XS"}
    made += [
        Prediction(f"{workload}, {_short(variant)}", _stated(variant, workload), gain_of(variant, workload))
        for workload, variant in stated
    ]
    return made


def gain_of(variant: str, workload: str) -> float:
    """Return the speed-up of a task queue over the baseline with the same sends."""
    model, sizes = fitted("blocking" in variants.words_of(variant)), printed.sizes(workload)
    return model.copied_gain(sizes) if "device" in variants.words_of(variant) else model.gain(sizes)


def _short(variant: str) -> str:
    return ", ".join(variants.words_of(variant)[1:])


def _stated(variant: str, workload: str) -> float:
    """Return the mean of the stated speed-ups of a variant."""
    return statistics.mean(
        h.speedup for h in printed.headlines() if (h.gpu, h.workload) == ("v100", workload) and h.is_of(variant)
    )


def on_network(factor: float) -> QueueModel:
    """Return the model of the V100 with a network that is faster by a factor."""
    return replace(fitted(), send_rate=fitted().send_rate * factor)


def best_network(sizes: Sequence[int]) -> tuple[float, float]:
    """Return the factor of the network on which the pinned task queue gains most, and its speed-up there."""
    factors = [1.05**k for k in range(-100, 150)]
    return max(((factor, on_network(factor).gain(sizes)) for factor in factors), key=lambda pair: pair[1])


def gain_rows() -> list[list[str]]:
    """Return the model's speed-ups of the pinned task queue, blocks of equal steps as in table 4.1."""
    rows = []
    for count, largest in itertools.product(BLOCKS, LARGEST):
        sizes = [max(int(largest * number / (count - 1)), 8) for number in range(count)]
        gains = [on_network(factor).gain(sizes) for factor in NETWORKS]
        rows.append([str(count), f"{largest:g}", *(f"{gain:.3f}" for gain in gains)])
    return rows
