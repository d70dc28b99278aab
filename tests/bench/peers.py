"""What others reach on Adult, and what we set out to reach: hierarchy GCP on its 30,162 complete training rows.

ARX is version 3.9.2, local recoding with our hierarchies, in steps of 0.1% (the best peer) and of 1%. The bound is a
dual one, suppression included. "Best trial" is what minutes of search have found.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Known:
    """Figures for one QI set and one k."""

    arx_fine: float
    arx_coarse: float
    best_trial: float
    target_normal: float
    target_high: float

    def target(self, effort: str) -> float | None:
        """What `lattice` is to reach with this effort; nothing is promised for `fast`."""
        return {"normal": self.target_normal, "high": self.target_high}.get(effort)


KNOWN = {
    ("QI8", 5): Known(0.0563, 0.0603, 0.0517, 0.0525, 0.0518),
    ("QI8", 10): Known(0.0809, 0.0855, 0.0759, 0.0770, 0.0760),
    ("QI8", 50): Known(0.1520, 0.1579, 0.1485, 0.1500, 0.1487),
    ("QI5", 5): Known(0.0249, 0.0273, 0.0214, 0.0221, 0.0215),
    ("QI5", 10): Known(0.0409, 0.0423, 0.0365, 0.0374, 0.0366),
    ("QI5", 50): Known(0.0986, 0.1004, 0.0931, 0.0948, 0.0933),
}

# One core with warm kernels, default effort.
SOLVE_CPU_SECONDS = {"QI8": 5.0, "QI5": 3.0}


def bound_cpu_seconds(qi_set: str, k: int) -> float:
    """How long the dual bound may take."""
    return {"QI5": 1.0}.get(qi_set, 30.0 if k >= 50 else 10.0)
