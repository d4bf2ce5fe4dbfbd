"""Davis 2017: the analytic model of a 3D hydrodynamics code, replayed from its published data."""
