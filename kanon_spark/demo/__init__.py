"""The demo: a generated table of hospital admissions, and the job that anonymizes it."""

from kanon_spark.demo.job import run_demo

__all__ = ["run_demo"]
