"""Why a run stops: what the pre-flight look at the table has found, and what Spark's errors mean to a user."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kanon_spark.config.checking import exit_code_of
from kanon_spark.errors import DataError, InternalError, KanonError, RequestError, SourceChangedError

if TYPE_CHECKING:
    from kanon_spark.config.preflight import Finding


def refuse_errors(findings: "Iterable[Finding]") -> None:
    """Raise if any finding is an error: a request error where the request is wrong, else a data error."""
    errors = [finding for finding in findings if finding.level == "error"]
    if not errors:
        return
    kind = RequestError if exit_code_of(errors) == RequestError.exit_code else DataError
    if len(errors) == 1:
        raise kind(errors[0].message, where=errors[0].path, fix=errors[0].fix)
    listed = "\n".join(f"  {one.path}: {one.message}\n    fix: {one.fix}" for one in errors)
    raise kind(f"{len(errors)} problems between the configuration and the table:\n{listed}")


_GONE = re.compile(r"FAILED_READ_FILE\.FILE_NOT_EXIST\].*?reading file (\S+)", re.DOTALL)


def as_known(error: Exception, *, run_id: str) -> KanonError:
    """What an error means to a user; an `InternalError` without the error's text, which may hold values, if nothing."""
    if isinstance(error, KanonError):
        return error
    gone = _GONE.search(str(error))
    if gone is not None and run_id not in gone.group(1):
        return SourceChangedError(
            "files of the source went away while it was being read; nothing was published",
            where="source",
            fix="run again when it is at rest, or set source.snapshot: copy",
        )
    return InternalError(f"something unexpected happened ({type(error).__name__})")
