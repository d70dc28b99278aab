"""Spark's errors without the values they carry.

PySpark logs the text and the plan of a query that fails, and the offending value, to standard error on loggers of its
own, before anybody can catch the error. A run silences these loggers; our errors only name Spark's error condition.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


@contextmanager
def quiet_query_errors() -> Iterator[None]:
    """Keep PySpark from logging failing queries, which may hold values, while the body runs."""
    from pyspark.logger import PySparkLogger

    # Asked for through PySpark: a plain logger of the same name would break PySpark's own calls later.
    loggers: list[logging.Logger] = [PySparkLogger.getLogger(name) for name in _LOGGERS]
    before = [log.disabled for log in loggers]
    for log in loggers:
        log.disabled = True
    try:
        yield
    finally:
        for log, disabled in zip(loggers, before, strict=True):
            log.disabled = disabled


def condition_of(error: Exception) -> str:
    """Spark's name for what went wrong, which never holds values: `PARSE_SYNTAX_ERROR` and the like."""
    getter = getattr(error, "getCondition", None)
    name = getter() if getter is not None else None
    return str(name) if name else type(error).__name__


# What Spark says of files that are not what they should be: by name where it has one, else the text of what it called.
_UNREADABLE = (
    "FAILED_READ_FILE",
    "CANNOT_READ_FILE_FOOTER",
    "CANNOT_MERGE_SCHEMAS",
    "MALFORMED_RECORD_IN_PARSING",
    "ChecksumException",
    "is not a Parquet file",
)


def is_unreadable(error: Exception, path: str) -> bool:
    """Whether Spark failed because files at a path are damaged, or of another form than they should be."""
    text = str(error)
    return path in text and any(mark in text for mark in _UNREADABLE)
