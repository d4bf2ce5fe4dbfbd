"""Simulations of programs of 10^3 to 10^6 ranks, message by message, and exports for other simulators."""
