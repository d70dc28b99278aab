"""From exceptions to exit codes: a user meets one short message and never a stack trace."""

import functools
import os
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec

import typer

from kanon_spark.cli.output import emit, tell_error, tell_failure
from kanon_spark.errors import KanonError, RequestError

Parameters = ParamSpec("Parameters")
INTERRUPTED = 130


def guarded(command: Callable[Parameters, None]) -> Callable[Parameters, None]:
    """Wrap a command so that its errors end it with the documented exit code.

    `KANON_DEBUG=1` lets unexpected errors through with their stack trace.
    """

    @functools.wraps(command)
    def wrapper(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
        as_json = bool(kwargs.get("as_json", False))
        try:
            command(*args, **kwargs)
        except (typer.Exit, typer.Abort, typer.BadParameter, BrokenPipeError):
            raise
        except KanonError as error:
            tell_error(error, as_json=as_json)
            raise typer.Exit(error.exit_code) from None
        except KeyboardInterrupt:
            if as_json:
                emit({"event": "outcome", "outcome": "interrupted", "exit_code": INTERRUPTED})
            tell_failure("interrupted; nothing was published (a later run or `kanon gc` removes what is left)")
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:
            if os.environ.get("KANON_DEBUG"):
                raise
            known = from_spark(error)
            if known is not None:
                tell_error(known, as_json=as_json)
                raise typer.Exit(known.exit_code) from None
            trace = f"the full trace is in {write_trace(error)} (it may hold data values: keep it inside)"
            text = f"{describe(error)}\n  fix: {trace}"
            if as_json:
                emit({"event": "outcome", "outcome": "failed", "exit_code": 1, "code": "K101", "message": text})
            tell_failure(text, code="K101")
            raise typer.Exit(1) from None

    return wrapper


def from_spark(error: Exception) -> KanonError | None:
    """Spark's complaints about the request: names, paths and SQL, which are safe to show."""
    from kanon_spark.io.quiet import failed_expression

    names = {kind.__name__ for kind in type(error).__mro__}
    if not names & {"AnalysisException", "ParseException"}:
        return failed_expression(error)
    first = next((line for line in str(error).splitlines() if line.strip()), "Spark refused the request")
    return RequestError(first[:500], where="Spark", fix="check names, paths and SQL conditions in the configuration")


def describe(error: Exception) -> str:
    """An unexpected error in one line, without its text: Spark's run-time messages quote the values they met."""
    kind = type(error)
    condition = getattr(error, "getCondition", None) or getattr(error, "getErrorClass", None)
    name = condition() if callable(condition) else None
    if kind.__module__.split(".")[0] in {"pyspark", "py4j"}:
        return f"Spark failed ({name or kind.__name__})"
    return f"something unexpected happened ({kind.__name__})"


def write_trace(error: Exception) -> Path:
    """Keep the whole trace where only its owner can read it."""
    handle, name = tempfile.mkstemp(prefix="kanon_error_", suffix=".log")  # mkstemp: mode 0600
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write("".join(traceback.format_exception(error)))
    return Path(name)
