"""Stop a run because of what the pre-flight look at the table has found: all findings in one error."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kanon_spark.config.checking import exit_code_of
from kanon_spark.errors import DataError, RequestError

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
