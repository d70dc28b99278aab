"""Anonymization methods over shared kernels."""
