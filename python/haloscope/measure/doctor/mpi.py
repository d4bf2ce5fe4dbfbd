"""Checks of MPI: its functions, and messages in device memory."""

from __future__ import annotations

from collections.abc import Mapping

from haloscope import bridge
from haloscope.measure import devices, probes
from haloscope.measure.doctor.check import BROKEN, NOT_HERE, OK, WARNING, Check, nothing_started, worst_of
from haloscope.measure.doctor.runs import judge_runs, verified_runs

PROMISED_BY_NONE = ("shared-aligned",)  # probes of behaviour that the standard leaves open
TAKES_DEVICE = ("device-aware", "device-strided")


def judge_functions(findings: Mapping[str, Mapping], known: Mapping) -> list[Check]:
    """Judge the probes of MPI functions: on these ranks, and the known results of this MPI on other numbers of ranks.

    A function that is absent or not promised is a warning; one that gives wrong values, ends the program or hangs is
    broken.
    """
    if not findings:
        return [nothing_started("MPI functions")]
    failed = {name: reason for name, reason in known["failed"].items() if name not in findings or findings[name]["ok"]}
    failed |= {name: line["reason"] for name, line in findings.items() if not line["ok"]}
    tried = {*findings, *known["passed"], *known["failed"]} - {probes.FIRST, *TAKES_DEVICE}
    wrong = {name: reason for name, reason in failed.items() if name in tried}
    counts = f"{len(tried) - len(wrong)} of {len(tried)} probes pass"
    single = [_function(name, reason) for name, reason in wrong.items()]
    gravest = worst_of(single).verdict if single else OK
    return [Check("MPI functions", gravest, counts, "see below" if single else ""), *single]


def _function(name: str, reason: str) -> Check:
    verdict = WARNING if reason.startswith("this MPI has no ") or name in PROMISED_BY_NONE else BROKEN
    lost = transports_of(name)
    more = f" and {len(lost) - 3} more" if len(lost) > 3 else ""
    avoided = f"Haloscope leaves out {', '.join(lost[:3])}{more}" if lost else "Haloscope does without it"
    return Check(f"MPI: {name}", verdict, reason, f"{avoided}; avoid it in your code, or try a newer MPI")


def transports_of(probe: str) -> list[str]:
    """Return the transports, with their options, that rely on the subject of a probe."""
    strategies = [*bridge.strategy_names(), *bridge.device_strategy_names()]
    relying = [name for name in strategies if probe in bridge.find_strategy(name).probes]
    return list(dict.fromkeys(name.split("/")[-1] for name in relying))


def examine_device(ranks: int, option: str) -> list[Check]:
    """Run verified exchanges with fields on a device: through host memory, and with device memory passed to MPI."""
    backend = devices.default_device(option)
    if not backend:
        reasons = "; ".join(f"{b['name']}: {b['absent']}" for b in devices.backends() if b["absent"])
        return [Check("device", NOT_HERE, reasons, "'--device host' tries an imitated one")]
    findings = probes.by_name(probes.probe(ranks, ",".join((probes.FIRST, *TAKES_DEVICE))))
    checks = [judge_runs("device", verified_runs(ranks, "ordered/staged", backend)), judge_device_memory(findings)]
    if checks[-1].verdict == OK:
        checks.append(judge_runs("transport aware", verified_runs(ranks, "ordered/aware", backend)))
    return checks


def judge_device_memory(findings: Mapping[str, Mapping]) -> Check:
    """Judge whether MPI takes device memory, contiguous and strided."""
    name = "device memory in MPI"
    lines = [findings[probe] for probe in TAKES_DEVICE if probe in findings]
    if len(lines) < len(TAKES_DEVICE):
        return nothing_started(name)
    wrong = [line for line in lines if not line["ok"]]
    if not wrong:
        return Check(name, OK, f"contiguous and strided messages arrive whole, {lines[0]['reason']}")
    text = "; ".join(f"{line['probe']}: {line['reason']}" for line in wrong)
    if any("died" not in line for line in wrong):
        return Check(name, BROKEN, text, "send from host memory (strategies 'staged'); report it to the builder of MPI")
    remedy = "use strategies 'staged', or an MPI for devices: UCX with CUDA or ROCm, MPICH_GPU_SUPPORT_ENABLED=1"
    return Check(name, WARNING, f"this MPI does not take it: {text}", remedy)
