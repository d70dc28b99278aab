"""Where things are: the checkout, the Adult table beside it, and the cache."""

import os
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
HIERARCHIES = CHECKOUT / "hierarchies" / "adult"
ADULT_BESIDE = CHECKOUT.parent / "shared" / "data" / "adult.csv"


def cache_folder() -> Path:
    """The folder for everything that is made or fetched once; the one `scripts/setup` keeps its jars in."""
    named = os.environ.get("KANON_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "kanon_spark"
