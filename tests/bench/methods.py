"""The methods as they are measured: what each needs, and what it is given."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

TARGET = "income"


@dataclass(frozen=True)
class Variant:
    """A method in one of its forms.

    Attributes:
        method: The name that configurations use.
        hierarchies: Whether its quasi-identifiers have hierarchies here; else it publishes ranges and sets.
        options: More options of the method.
        max_suppression: Share of the rows that it may suppress: full-domain methods were measured so by their authors.
        target: Whether the table must hold the class label.
    """

    method: str
    hierarchies: bool
    options: Mapping[str, Any] = field(default_factory=dict)
    max_suppression: float = 0.0
    target: bool = False


VARIANTS: dict[str, Variant] = {
    "lattice": Variant("lattice", True),
    "kmember": Variant("kmember", False),
    "mst": Variant("mst", True),
    "sbca": Variant("sbca", False),
    "kactus": Variant("kactus", False, {"target": TARGET}, target=True),
    "prgain": Variant("prgain", True),
    "mondrian": Variant("mondrian", True),
    "mondrian-sets": Variant("mondrian", False),
    "datafly": Variant("datafly", True, max_suppression=0.1),
    "incognito": Variant("incognito", True, max_suppression=0.1),
}
ALL = "all"
