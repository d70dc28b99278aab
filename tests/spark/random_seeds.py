"""Seeds of random tables: a few are tried each time, all of them with `scripts/test --slow`."""

from typing import Any

import pytest


def seeds(number: int, *, always: int) -> list[Any]:
    """Seeds 0, 1, 2, …; those from `always` on are slow tests."""
    return [pytest.param(seed, marks=() if seed < always else pytest.mark.slow) for seed in range(number)]
