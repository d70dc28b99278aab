"""Spark-free inner loops on numpy arrays."""
