"""The methods by name."""

from typing import TYPE_CHECKING

from kanon_spark.errors import NotYetError
from kanon_spark.methods.base import LocalMethod

if TYPE_CHECKING:
    from kanon_spark.config.models import Config


def method_for(config: "Config") -> LocalMethod:
    """The method that a configuration asks for; what `auto` is depends on its quasi-identifiers."""
    from kanon_spark.methods.kmember import PENALTY, KMember
    from kanon_spark.methods.lattice import Lattice
    from kanon_spark.methods.mst import Mst

    spec = config.method
    match config.resolved_method:
        case "lattice":
            return Lattice(effort=spec.effort)
        case "kmember":
            penalty = PENALTY if spec.penalty is None else spec.penalty
            return KMember(
                effort=spec.effort, order=spec.order or "cheapest", penalty=0.0 if spec.label is None else penalty
            )
        case "mst":
            return Mst(effort=spec.effort, cut=spec.cut or "loss")
    raise NotYetError(f"method '{spec.name}' is not built yet", where="method.name", fix="use lattice")
