"""Costs of exchanges and kernels: machine profiles, laws fitted to measurements, and predictions made from them."""
