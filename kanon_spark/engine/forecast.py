"""How long a run is going to take, told before its dear part begins.

A guess by rows and signatures, fitted to what `scripts/bench scale` measured on two cores; a job with a ledger is
expected to take what its last runs took per row. It is there for people who wait and for schedulers' time-outs, and
decides nothing.
"""

from kanon_spark.engine.solving import BLOCK_SIZE, LOCAL_LIMIT
from kanon_spark.methods.base import Effort

_START = 6.0  # seconds that a run takes however small the table is
_PER_ROW = 3.2e-6  # seconds of two cores: aggregate, join and write, verify
# Seconds of two cores per signature: in one process, where classes are refined, and over blocks.
_PER_SIGNATURE: dict[str, tuple[float, float]] = {
    "lattice": (2.4e-4, 1.5e-5),
    "kmember": (1.5e-4, 2.0e-4),
    "mst": (4.5e-4, 2.8e-4),
    "incognito": (2.8e-4, 1.0e-4),
}
_OTHER = (2.0e-5, 1.0e-4)
_EFFORT: dict[Effort, float] = {"fast": 0.2, "normal": 1.0, "high": 60.0}


def planned_blocks(signatures: int, *, block_size: int | None, local_limit: int | None) -> int:
    """Blocks that so many signatures will be cut into, about.

    >>> planned_blocks(80_000, block_size=None, local_limit=None)
    1
    >>> planned_blocks(120_000, block_size=None, local_limit=0)
    3
    """
    if signatures <= (LOCAL_LIMIT if local_limit is None else local_limit):
        return 1
    return -(-signatures // (block_size or BLOCK_SIZE))


def expected_seconds(*, method: str, effort: Effort, rows: int, signatures: int, blocks: int, cores: int) -> float:
    """Seconds of a whole run, Spark's own start apart.

    >>> expected_seconds(method="datafly", effort="normal", rows=0, signatures=0, blocks=1, cores=2)
    6.0
    """
    alone, blocked = _PER_SIGNATURE.get(method, _OTHER)
    solving = signatures * (alone * _EFFORT[effort] if blocks == 1 else blocked)
    # One process has one core; blocks and rows have them all.
    share = 2.0 / max(1, cores)
    return _START + rows * _PER_ROW * share + (solving if blocks == 1 else solving * share)
