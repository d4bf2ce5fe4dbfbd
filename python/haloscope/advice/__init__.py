"""Advice: ranked choices, searches by measuring, and errors of predictions."""
