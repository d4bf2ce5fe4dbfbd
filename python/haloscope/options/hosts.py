"""Options of the hosts that ranks run on, in a cluster or an emulated one."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from haloscope.errors import UsageError, unknown_name
from haloscope.options.kinds import Decorator, of_machine, options_of
from haloscope.terminal import shown

if TYPE_CHECKING:
    from haloscope.measure.host_mapping import HostMapping
    from haloscope.model.link import Link


def link_options(hosts: str, usual: int | None = None) -> Decorator:
    """Return the decorator that adds the options of an emulated cluster.

    hosts: name of the option for the number of hosts.
    """
    from haloscope.model.link import MOST_HOSTS

    number = f" [{usual}]" if usual else ""
    return options_of(
        of_machine(
            hosts,
            "lab",
            type=click.IntRange(2, MOST_HOSTS),
            default=usual,
            help=f"Run on an emulated cluster of N hosts on this machine.{number}",
        ),
        of_machine(
            "--latency",
            default="0",
            metavar="TIME",
            help="One-way latency added to every message: 50us, 1ms. [0]",
        ),
        of_machine(
            "--bandwidth",
            default="0",
            metavar="RATE",
            help="Bandwidth of each host's link, each way: 1Gbit, 100MB. [unlimited]",
        ),
        of_machine("--jitter", default="0", metavar="TIME", help="Mean random delay of each frame. [0]"),
    )


def link_of(options: Mapping) -> Link:
    """Return the network of the options of an emulated cluster. Raises UsageError for a malformed time or rate."""
    from haloscope.model import link

    return link.Link(
        options["lab"],
        link.time_of(options["latency"]),
        link.rate_of(options["bandwidth"]),
        link.time_of(options["jitter"]),
    )


OF_LAB = ("--lab", "--latency", "--bandwidth", "--jitter")  # each takes a value


def starts_ranks(function: Callable[..., int | None]) -> Callable[..., int | None]:
    """Add the options of hosts to a command that starts ranks, and apply them."""

    @functools.wraps(function)
    def wrapped(*arguments: Any, hosts: str | None, **options: Any) -> int | None:
        from haloscope.measure import hosts as where

        of_lab = {name: options.pop(name) for name in (word.removeprefix("--") for word in OF_LAB)}
        if of_lab["lab"]:
            return _run_in_lab(click.get_current_context().meta["haloscope.words"], link_of(of_lab))
        if set(of_lab.values()) != {None, "0"}:
            raise UsageError("--latency, --bandwidth and --jitter describe an emulated cluster; add --lab 2")
        with where.host_list(hosts):
            return function(*arguments, **options)

    of_hosts = of_machine(
        "--hosts",
        metavar="A,B|FILE",
        help="Hosts of a cluster to spread the ranks over. [this machine, or the hosts of the batch job]",
    )
    return of_hosts(link_options("--lab")(wrapped))


def _run_in_lab(words: Sequence[str], link: Link) -> int:
    """Run this command, without the options of the cluster, inside the cluster."""
    from haloscope.bridge import build
    from haloscope.measure import cluster

    return cluster.inside(build.python("-m", "haloscope.cli", *options_without(words, OF_LAB)), link)


def options_without(words: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return a command line without some options and their values."""
    kept, is_value = [], False
    for word in words:
        if is_value:
            is_value = False
        elif word in names:
            is_value = True
        elif not word.startswith(tuple(f"{name}=" for name in names)):
            kept.append(word)
    return kept


def maps_ranks(function: Callable[..., int | None]) -> Callable[..., int | None]:
    """Add the options of a mapping to sockets to a command that measures, and apply them."""

    @functools.wraps(function)
    def wrapped(*arguments: Any, mapping: str | None, sockets: str | None, **options: Any) -> int | None:
        from haloscope.measure import host_mapping

        if sockets and not mapping:
            raise UsageError("--sockets describes the hosts of a mapping; add --mapping fill")
        with host_mapping.applied(_mapping_of(mapping, sockets) if mapping else None):
            return function(*arguments, **options)

    rules = of_machine(
        "--mapping",
        metavar="RULE",
        help="Ranks to hosts and sockets: fill, balanced (over hosts), by-socket. [equal blocks, a core each]",
    )
    shape = of_machine(
        "--sockets",
        metavar="SxC",
        help="Sockets of a host, and ranks that fill one; more than it has are emulated. [the machine's]",
    )
    return rules(shape(wrapped))


def _mapping_of(rule: str, sockets: str | None) -> HostMapping:
    """Return the mapping of the options. Raises UsageError for an unknown rule, and for other text than SxC."""
    from haloscope.measure import host_mapping

    if rule not in host_mapping.RULES:
        raise UsageError(unknown_name("mapping", rule, host_mapping.RULES))
    if sockets is None:
        return host_mapping.of_this_machine(rule)
    if not (found := re.fullmatch(r"([1-9]\d{0,4})x([1-9]\d{0,4})", sockets)):
        raise UsageError(f"--sockets {shown(sockets)} is not sockets x ranks of each; give 2x6")
    return host_mapping.HostMapping(rule, int(found[1]), int(found[2]))
