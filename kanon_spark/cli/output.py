"""What the command line says and where: results on standard output, progress and errors on standard error."""

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kanon_spark.errors import KanonError

if TYPE_CHECKING:
    from rich.console import Console

_PIPED_WIDTH = 120


def out_console() -> "Console":
    """The console for results; plain when piped, and then wide enough for a row of a table."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else _PIPED_WIDTH)


def error_console() -> "Console":
    """The console for progress and errors."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def emit(event: Mapping[str, Any]) -> None:
    """One JSON object on one line of standard output, at once, so that a scheduler can follow."""
    sys.stdout.write(json.dumps(event, default=str, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def tell_error(error: KanonError, *, as_json: bool) -> None:
    """An error as a user reads it, and for machines as the last JSON event."""
    if as_json:
        emit(
            {
                "event": "outcome",
                "outcome": "failed",
                "exit_code": error.exit_code,
                "code": error.code,
                "where": error.where,
                "message": error.message,
                "fix": error.fix,
            }
        )
    tell_failure(str(error), code=error.code)


def tell_failure(text: str, *, code: str = "") -> None:
    """A message in red, without any markup being read into it."""
    from rich.text import Text

    head = Text(f"error {code}".strip() + ": ", style="bold red")
    error_console().print(head.append(text, style="not bold default"), soft_wrap=True)
