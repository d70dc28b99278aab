"""What others reach on Adult, and what we set out to reach, on its 30,162 complete training rows.

With hierarchies the loss is hierarchy GCP, without them GCP by ranges and sets. ARX is version 3.9.2, local recoding,
in steps of 0.1% (the best peer) and of 1%. "Best trial" is what minutes of search have found.
"""

from dataclasses import dataclass, replace

from bench.methods import VARIANTS


@dataclass(frozen=True)
class Known:
    """Figures for one QI set and one k."""

    arx_fine: float
    arx_coarse: float
    best_trial: float
    target_normal: float | None
    target_high: float | None

    def target(self, effort: str) -> float | None:
        """What is to be reached with this effort; nothing is promised for `fast`."""
        return {"normal": self.target_normal, "high": self.target_high}.get(effort)


# Methods that are measured without hierarchies, and those for which something is to be reached.
BY_SETS = frozenset(name for name, variant in VARIANTS.items() if not variant.hierarchies)
WITH_TARGETS = frozenset({"lattice", "kmember", "mst"})

KNOWN = {
    ("QI8", 5): Known(0.0563, 0.0603, 0.0517, 0.0525, 0.0518),
    ("QI8", 10): Known(0.0809, 0.0855, 0.0759, 0.0770, 0.0760),
    ("QI8", 50): Known(0.1520, 0.1579, 0.1485, 0.1500, 0.1487),
    ("QI5", 5): Known(0.0249, 0.0273, 0.0214, 0.0221, 0.0215),
    ("QI5", 10): Known(0.0409, 0.0423, 0.0365, 0.0374, 0.0366),
    ("QI5", 50): Known(0.0986, 0.1004, 0.0931, 0.0948, 0.0933),
}

# Without hierarchies, by ranges and sets.
KNOWN_SETS = {
    ("QI8", 5): Known(0.0341, 0.0373, 0.0193, 0.0205, 0.0195),
    ("QI8", 10): Known(0.0561, 0.0584, 0.0357, 0.0375, 0.0360),
    ("QI8", 50): Known(0.1278, 0.1311, 0.0977, 0.1020, 0.0985),
    ("QI5", 5): Known(0.0187, 0.0199, 0.0100, 0.0109, 0.0102),
    ("QI5", 10): Known(0.0340, 0.0346, 0.0203, 0.0223, 0.0207),
    ("QI5", 50): Known(0.0886, 0.0895, 0.0679, 0.0725, 0.0690),
}


MST_TARGETS = {("QI5", 10): 0.0440}  # merged by loss along the tree


def known(method: str, qi_set: str, k: int) -> Known | None:
    """Figures for the measure that a method is judged by; None where nothing is known."""
    found = (KNOWN_SETS if method in BY_SETS else KNOWN).get((qi_set, k))
    if found is not None and method == "mst":
        return replace(found, target_normal=MST_TARGETS.get((qi_set, k)), target_high=None)
    if found is not None and method not in WITH_TARGETS:
        return replace(found, target_normal=None, target_high=None)
    return found


def solve_cpu_seconds(method: str, qi_set: str, k: int) -> float | None:
    """How long the kernel may take: one core, compiled beforehand, default effort; None where nothing is set."""
    if method == "kmember":
        return 10.0 if k >= 50 else 3.0
    return {"QI8": 5.0, "QI5": 3.0}[qi_set] if method == "lattice" else None


def bound_cpu_seconds(qi_set: str, k: int) -> float:
    """How long the dual bound may take."""
    return {"QI5": 1.0}.get(qi_set, 30.0 if k >= 50 else 10.0)
