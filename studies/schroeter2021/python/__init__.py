"""Schroeter 2021: a Poisson solver with two-sided, one-sided and shared-memory MPI."""
