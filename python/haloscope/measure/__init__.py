"""Runs of the ranks: requests, campaigns, launches, probes of this MPI, and diagnosis of faults."""
