"""What privacy models beyond k cost on Adult: the same runs with and without them.

QI8 without occupation, which is the sensitive column; k = 10. Losses are those of the neutral judge.
"""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.adult import Adult
from bench.jobs import settings
from bench.quality import Figure, measure_one

SENSITIVE = "occupation"
QI_SET, K = "QI8", 10
METHODS = ("lattice", "kmember", "mst", "mondrian")


@dataclass(frozen=True)
class Demand:
    """Something that is asked beyond k.

    Attributes:
        privacy: As a configuration says it.
        arx: Loss and suppressed rows of ARX 3.9.2, local recoding, the better of steps of 1% and 0.1%.
        target: What `lattice` is to reach.
    """

    privacy: dict[str, Any]
    arx: tuple[float, int] | None = None
    target: float | None = None


DEMANDS: dict[str, Demand] = {
    "k alone": Demand({}),
    "distinct l = 3": Demand({"l_diversity": 3}, (0.0478, 0), 0.045),
    "entropy l = 3": Demand({"l_diversity": {"l": 3, "kind": "entropy"}}),
    "t = 0.2": Demand({"t_closeness": 0.2, "max_suppression": 0.1}, (0.4147, 3109), 0.35),
}


@dataclass(frozen=True)
class Cost:
    """One judged run."""

    demand: str
    figure: Figure

    @property
    def target(self) -> float | None:
        """What is to be reached."""
        return DEMANDS[self.demand].target if self.figure.method == "lattice" else None

    @property
    def reached(self) -> bool | None:
        """Whether it is, on the four digits that targets have."""
        return None if self.target is None else round(self.figure.loss, 4) <= self.target


def measure_privacy(
    adult: Adult, *, methods: Sequence[str], effort: str, way: str, memory: str, tell: Callable[[str], None]
) -> list[Cost]:
    """Every method under every demand, in one Spark session."""
    from kanon_spark.engine.session import get_spark

    costs = []
    with tempfile.TemporaryDirectory(prefix="kanon_bench_") as name:
        folder = Path(name)
        spark = get_spark("kanon bench", extra=settings(folder, memory=memory), graphs=way == "graphframes")
        try:
            for method in methods:
                for demand, asked in DEMANDS.items():
                    tell(f"{method}: {demand}, {way}")
                    figure = measure_one(
                        spark,
                        adult,
                        folder,
                        qi_set=QI_SET,
                        k=K,
                        way=way,
                        effort=effort,
                        method=method,
                        sensitive=[SENSITIVE],
                        privacy=asked.privacy,
                    )
                    costs.append(Cost(demand, figure))
        finally:
            spark.stop()
    return costs
