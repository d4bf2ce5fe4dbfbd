"""Davis 2017, a hydrodynamics code and a CG solver: `measured` here, and `replay`, its model on its printed data."""
