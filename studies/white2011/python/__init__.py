"""White & Dongarra 2011: 3D advection in nine versions."""
