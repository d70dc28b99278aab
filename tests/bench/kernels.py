"""CPU seconds of the kernels alone: one core, compiled beforehand, on signatures made from Adult's joint distribution.

`lattice` closes the cheapest groups and attaches the rest, `kmember` grows the cheapest classes and attaches the rest,
`mst` builds the exact spanning tree. Refinement and bounds are not part of it.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.adult import QI5, QI8
from bench.jobs import ZIP, hierarchy_of
from bench.local import Prepared, config_of, prepare
from bench.tables import zip_codes
from kanon_spark.kernels.attaching import attach
from kanon_spark.kernels.kmember import cheapest_first
from kanon_spark.kernels.lattice import attach_rest, close_cheapest_first
from kanon_spark.kernels.measure import Measured
from kanon_spark.kernels.spanning import spanning_tree

ZIPS = 2_000
MORE = ("hours-per-week", "relationship", "education-num")  # three more columns, for twelve QIs
WIDTHS: dict[int, tuple[str, ...]] = {6: (ZIP, *QI5), 9: (ZIP, *QI8), 12: (ZIP, *QI8, *MORE)}
_MORE_HIERARCHIES: dict[str, object] = {
    "hours-per-week": {"interval": {"widths": [5, 10, 20, 40]}},
    "relationship": "flat",
    "education-num": {"interval": {"widths": [2, 4, 8]}},
}
_MOST_DRAWS = 40  # batches as large as the table; where so many hold too few distinct tuples, there are no more


@dataclass(frozen=True)
class Ask:
    """A kernel at one size; `limit` is what it may take, in CPU seconds."""

    kernel: str
    signatures: int
    width: int
    limit: float | None = None


US_PER_SIGNATURE = 100  # what `kmember` may take, at any size
DEFAULTS = (
    Ask("lattice", 875_000, 9, 10.0),
    Ask("lattice", 100_000, 12, 30.0),
    Ask("kmember", 100_000, 9, 100_000 * US_PER_SIGNATURE / 1e6),
    Ask("kmember", 700_000, 9, 700_000 * US_PER_SIGNATURE / 1e6),
    Ask("mst", 1_000_000, 6, 30.0),
)


def parse_ask(text: str) -> Ask:
    """An ask from the command line, `kernel:signatures:width`; sizes with a target keep it.

    >>> parse_ask("mst:1_000_000:6").limit, parse_ask("kmember:5000:9").limit, parse_ask("lattice:7:9").limit
    (30.0, 0.5, None)
    """
    parts = text.split(":")
    try:
        kernel, signatures, width = parts[0], int(parts[1]), int(parts[2])
    except (IndexError, ValueError):
        raise ValueError(f"'{text}' is not kernel:signatures:width") from None
    if kernel not in KERNELS or width not in WIDTHS or signatures < 1 or len(parts) != 3:
        raise ValueError(f"'{text}': there are {', '.join(KERNELS)}, over {', '.join(map(str, WIDTHS))} QIs")
    known = [ask for ask in DEFAULTS if (ask.kernel, ask.signatures, ask.width) == (kernel, signatures, width)]
    limit = signatures * US_PER_SIGNATURE / 1e6 if kernel == "kmember" else known[0].limit if known else None
    return Ask(kernel, signatures, width, limit)


@dataclass(frozen=True)
class Timed:
    """One measured kernel; `result` is its number of classes, or the tree's total weight."""

    ask: Ask
    signatures: int
    cpu_seconds: float
    result: int

    @property
    def micros(self) -> float:
        """Microseconds per signature."""
        return self.cpu_seconds / self.signatures * 1e6

    @property
    def reached(self) -> bool | None:
        """Whether it took no longer than it may."""
        return None if self.ask.limit is None else self.cpu_seconds <= self.ask.limit

    def to_json(self) -> dict[str, Any]:
        """All figures."""
        return {**asdict(self), "micros_per_signature": self.micros, "reached": self.reached}


def draw(base: pd.DataFrame, qis: Sequence[str], signatures: int, *, seed: int) -> pd.DataFrame:
    """Rows with exactly so many distinct tuples of the QIs (fewer where the columns hold no more), repeats included."""
    rng = np.random.default_rng(seed)
    names = list(qis)
    copied = base[[name for name in names if name != ZIP]].reset_index(drop=True)
    found = pd.DataFrame(columns=names)
    for _ in range(_MOST_DRAWS):
        rows = copied.iloc[rng.integers(0, len(copied), signatures)].reset_index(drop=True)
        if ZIP in names:
            rows[ZIP] = zip_codes(rng.random(signatures), ZIPS)
        if "age" in names:
            rows["age"] = np.clip(rows["age"] + rng.integers(-2, 3, signatures), 17, 90)
        found = pd.concat([found, rows[names]], ignore_index=True) if len(found) else rows[names]
        number = found.groupby(names, sort=False).ngroup().to_numpy()  # in the order of their first rows
        if number.max() + 1 >= signatures:
            return found[number < signatures].reset_index(drop=True)
    return found


def measure_kernels(
    base: pd.DataFrame, asks: Sequence[Ask], *, k: int, seed: int, tell: Callable[[str], None]
) -> list[Timed]:
    """Time each kernel on its table, after a small one has compiled it."""
    found: list[Timed] = []
    warm: set[tuple[str, int]] = set()
    for ask in asks:
        if (ask.kernel, ask.width) not in warm:
            _run(base, Ask(ask.kernel, min(3_000, ask.signatures), ask.width), k=k, seed=seed)
            warm.add((ask.kernel, ask.width))
        tell(f"{ask.kernel}: {ask.signatures:,} signatures x {ask.width} QIs")
        found.append(_run(base, ask, k=k, seed=seed))
    return found


def _run(base: pd.DataFrame, ask: Ask, *, k: int, seed: int) -> Timed:
    qis = WIDTHS[ask.width]
    by_sets = ask.kernel == "kmember"
    columns = {qi: {} if by_sets else {"hierarchy": _MORE_HIERARCHIES.get(qi) or hierarchy_of(qi)} for qi in qis}
    prepared = prepare(
        draw(base, qis, ask.signatures, seed=seed), config_of(columns, k=k, method={"name": ask.kernel}, seed=seed)
    )
    seconds, result = KERNELS[ask.kernel](prepared)
    return Timed(ask, len(prepared.frame), seconds, result)


def _classes(class_of: NDArray[np.int32]) -> int:
    return int(class_of.max(initial=-1)) + 1


def _lattice(prepared: Prepared) -> tuple[float, int]:
    problem = prepared.solver.problem(prepared.frame)
    begin = time.thread_time()
    class_of = attach_rest(problem, close_cheapest_first(problem))
    return time.thread_time() - begin, _classes(class_of)


def _kmember(prepared: Prepared) -> tuple[float, int]:
    problem = prepared.solver.problem(prepared.frame)
    begin = time.thread_time()
    measured = Measured.of(problem)
    class_of = attach(problem, measured, cheapest_first(problem, measured, stop=np.inf))
    return time.thread_time() - begin, _classes(class_of)


def _mst(prepared: Prepared) -> tuple[float, int]:
    levels, codes = prepared.solver.levels, prepared.solver.codes(prepared.frame)
    begin = time.thread_time()
    tree = spanning_tree(levels, np.asfortranarray(codes))
    return time.thread_time() - begin, tree.total


KERNELS: Mapping[str, Callable[[Prepared], tuple[float, int]]] = {"lattice": _lattice, "kmember": _kmember, "mst": _mst}
