"""Rows to integer-coded, counted signatures."""
