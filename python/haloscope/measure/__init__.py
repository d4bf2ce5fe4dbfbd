"""Running things: choices into configurations, launches of the ranks, probes of this MPI, and what goes wrong."""
