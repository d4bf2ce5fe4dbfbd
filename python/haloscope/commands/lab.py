"""`haloscope lab`: any command in an emulated cluster: hosts on one machine, joined by a network of set latency."""

from __future__ import annotations

from typing import Any

import click

from haloscope.options.command import subcommand
from haloscope.options.hosts import link_of, link_options


@subcommand(
    short_help="Run a command in an emulated cluster of set latency, bandwidth.",
    context_settings={"allow_interspersed_args": False},
)
@click.argument("words", nargs=-1, required=True, metavar="-- COMMAND [ARGS]...")
@link_options("--hosts", usual=2)
def command(words: tuple[str, ...], **options: Any) -> int:
    """Run COMMAND on the first host of an emulated cluster. Hosts are namespaces of this machine, each with a name, a
    network, shared memory and cores, and real MPI runs over real TCP between them. Ranks that COMMAND starts with
    mpiexec are spread over the hosts.

    \b
    haloscope lab --latency 50us --bandwidth 1Gbit -- mpiexec -n 2 ./my_program
    haloscope lab --latency 100us -- haloscope calibrate -o lab.json
    haloscope run laplace2d --lab 2 --latency 50us --cells 512x512 --depth 1..16*2     (shorter)

    Needs root, or a system on which users may create namespaces. COMMAND has the rights of the caller, so do not run
    untrusted programs as root. Exit code: the command's; 3 where the machine does not support it.
    """
    from haloscope.measure import cluster

    return cluster.inside(words, link_of(options))
