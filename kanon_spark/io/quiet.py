"""Spark's errors without the values they carry.

PySpark logs the text and the plan of a query that fails, and the offending value, to standard error on loggers of its
own, before anybody can catch the error. A run silences these loggers; our errors only name Spark's error condition.
"""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

from kanon_spark.errors import DataError

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
    named = path in text or quote(path) in text  # Spark writes places as URIs
    return named and any(mark in text for mark in _UNREADABLE)


# Conditions under which an expression fails on a value; Spark's message quotes the value.
_ON_A_VALUE = re.compile(
    r"\[?\b(CAST_INVALID_INPUT|CAST_OVERFLOW|DIVIDE_BY_ZERO|REMAINDER_BY_ZERO|ARITHMETIC_OVERFLOW|BINARY_ARITHMETIC_OVERFLOW"
    r"|NUMERIC_VALUE_OUT_OF_RANGE|INVALID_ARRAY_INDEX|CANNOT_PARSE_TIMESTAMP|CANNOT_PARSE_DATE)\b"
)


def failed_expression(error: Exception) -> DataError | None:
    """What a user is told where an SQL expression of the configuration fails on a value; None if it is something else.

    >>> failed_expression(ValueError("[CAST_INVALID_INPUT] The value 'secret' ...")).message
    'an SQL expression fails on a value of the table (CAST_INVALID_INPUT)'
    """
    found = _ON_A_VALUE.search(f"{condition_of(error)} {error}")
    if found is None:
        return None
    return DataError(
        f"an SQL expression fails on a value of the table ({found.group(1)})",
        where="source.where, source.query or privacy.personal_k.rule",
        fix="write it so that it suits every row: try_cast for cast, try_divide for /, or a CASE",
    )
