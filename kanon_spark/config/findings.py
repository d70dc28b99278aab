"""One thing that a look at the real table has found."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["error", "warning"]


@dataclass(frozen=True)
class Finding:
    """One thing that was found.

    Attributes:
        level: An error stops a run; a warning deserves a thought.
        path: The place in the configuration it speaks of.
        message: What was found: columns and counts, values only where they were asked for.
        fix: What to do about it.
        exit_code: What a run would end with.
    """

    level: Level
    path: str
    message: str
    fix: str = ""
    exit_code: int | None = None
