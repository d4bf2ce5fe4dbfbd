"""Exchanges that others have measured, from a table: read, fitted with the model's terms, predicted and judged."""
