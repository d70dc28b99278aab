"""The methods by name."""

from typing import TYPE_CHECKING

from kanon_spark.errors import NotYetError
from kanon_spark.methods.base import LocalMethod

if TYPE_CHECKING:
    from kanon_spark.config.models import MethodSpec


def method_for(spec: "MethodSpec") -> LocalMethod:
    """The method that a configuration asks for; `auto` is `lattice`."""
    from kanon_spark.methods.lattice import Lattice

    if spec.name in {"auto", "lattice"}:
        return Lattice(effort=spec.effort)
    raise NotYetError(f"method '{spec.name}' is not built yet", where="method.name", fix="use lattice")
