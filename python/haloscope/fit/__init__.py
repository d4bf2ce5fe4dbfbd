"""Fits: points to measure, models fitted to measurements of ours, and to tables of exchanges of others."""
