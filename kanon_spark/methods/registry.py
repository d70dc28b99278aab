"""The methods by name."""

from typing import TYPE_CHECKING

from kanon_spark.errors import InternalError
from kanon_spark.methods.base import LocalMethod

if TYPE_CHECKING:
    from kanon_spark.config.models import Config


def method_for(config: "Config") -> LocalMethod:
    """The method that a configuration asks for; what `auto` is depends on its quasi-identifiers."""
    spec = config.method
    leftover = spec.leftover or "join"
    match config.resolved_method:
        case "lattice":
            from kanon_spark.methods.lattice import Lattice

            return Lattice(effort=spec.effort)
        case "kmember":
            from kanon_spark.methods.kmember import PENALTY, KMember

            penalty = PENALTY if spec.penalty is None else spec.penalty
            return KMember(
                effort=spec.effort, order=spec.order or "cheapest", penalty=0.0 if spec.label is None else penalty
            )
        case "mst":
            from kanon_spark.methods.mst import Mst

            return Mst(effort=spec.effort, cut=spec.cut or "loss")
        case "sbca":
            from kanon_spark.methods.sbca import Sbca

            return Sbca(leftover=leftover)
        case "mondrian":
            from kanon_spark.methods.mondrian import Mondrian

            return Mondrian()
        case "kactus":
            from kanon_spark.methods.kactus import Kactus

            return Kactus(
                leftover=leftover,
                dimension=spec.dimension or "multi",
                numeric=spec.numeric or "range",
                criterion=spec.criterion or "gain_ratio",
            )
        case "prgain":
            from kanon_spark.methods.prgain import BEAM, PrGain

            return PrGain(leftover=leftover, beam=spec.beam or BEAM)
        case "datafly":
            from kanon_spark.methods.datafly import Datafly

            return Datafly(max_suppression=config.privacy.max_suppression)
        case "incognito":
            from kanon_spark.methods.incognito import Incognito

            return Incognito(max_suppression=config.privacy.max_suppression)
    raise InternalError(f"no method is called '{config.resolved_method}'")
